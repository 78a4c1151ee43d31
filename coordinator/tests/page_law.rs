//! The page law against a model: one ranking made from whole channels, of which pages are consecutive pieces.
//!
//! Channels repeat no key of their own, as those of a search never do; they share keys with one another.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use antiphon_coordinator::fusion::{ScoreFusion, take_turns};
use antiphon_coordinator::page::{PageCut, PageError, PageLaw};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Hit {
    key: u8,
    score: f64,
}

type Channels = Vec<Vec<Hit>>;

/// Up to four channels of up to 60 hits, best first, ties in the order of keys.
fn channels() -> impl Strategy<Value = Channels> {
    let channel = prop::collection::btree_map(0_u8..80, 0_u8..20, 0..60).prop_map(|scores| {
        let mut hits: Vec<Hit> =
            scores.into_iter().map(|(key, score)| Hit { key, score: f64::from(score) / 7.0 - 1.0 }).collect();
        hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.key.cmp(&other.key)));
        hits
    });
    prop::collection::vec(channel, 1..5)
}

fn law() -> impl Strategy<Value = PageLaw> {
    (0_u32..70).prop_map(|max_result_window| PageLaw { max_result_window, max_page_size: 1_000 })
}

fn method() -> impl Strategy<Value = ScoreFusion> {
    prop_oneof![
        (0_u32..100).prop_map(|k| ScoreFusion::ReciprocalRank { k }),
        Just(ScoreFusion::MaxScore),
        Just(ScoreFusion::RelativeScore),
        Just(ScoreFusion::DistributionScore),
    ]
}

/// What channels truncated to `window` hold.
fn truncated(channels: &Channels, window: usize) -> Vec<&[Hit]> {
    channels.iter().map(|hits| &hits[..window.min(hits.len())]).collect()
}

/// The page as a server gives it: channels asked for the window that the cut names, then fused and cut.
fn answer(channels: &Channels, law: PageLaw, cut: PageCut, method: Option<ScoreFusion>) -> (Vec<u8>, bool) {
    let ranking: Vec<u8> = match method {
        None => {
            let lists = truncated(channels, cut.window());
            let places = take_turns(&lists, |hit: &Hit| Some(hit.key), cut.window());
            places.iter().map(|place| place.of(&lists).key).collect()
        }
        Some(method) => {
            let lists = truncated(channels, cut.fusion_window(law.max_result_window));
            let ranking = method.fuse(&lists, &[], |hit: &Hit| hit.key, |hit| hit.score).unwrap();
            ranking.iter().map(|fused| fused.key).collect()
        }
    };
    let page = cut.cut(&ranking);
    (page.matches.to_vec(), page.has_more)
}

/// The ranking of which every page of size `page_size` is a piece.
fn model(channels: &Channels, law: PageLaw, page_size: u32, method: Option<ScoreFusion>) -> Vec<u8> {
    match method {
        None => take_turns(channels, |hit: &Hit| Some(hit.key), usize::MAX)
            .iter()
            .map(|place| place.of(channels).key)
            .collect(),
        Some(method) => {
            let window = if page_size >= law.max_result_window { page_size + 1 } else { law.max_result_window };
            let lists = truncated(channels, window as usize);
            let ranking = method.fuse(&lists, &[], |hit: &Hit| hit.key, |hit| hit.score).unwrap();
            ranking.iter().map(|fused| fused.key).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn pages_put_together_are_the_head_of_one_ranking(
        channels in channels(), law in law(), page_size in 1_u32..40, method in prop::option::of(method()),
    ) {
        let ranking = model(&channels, law, page_size, method);
        let last_page = law.resolve(1, page_size, 0).unwrap().last_page();
        let mut read = Vec::new();
        for page in 1..=last_page {
            let cut = law.resolve(page, page_size, 0).unwrap();
            prop_assert_eq!(cut.last_page(), last_page);
            prop_assert!(page == 1 || cut.window() <= law.max_result_window as usize);
            let (matches, has_more) = answer(&channels, law, cut, method);
            read.extend(matches);
            let beyond = ranking.len() > (page * page_size) as usize;
            prop_assert_eq!(has_more, page < last_page && beyond);
        }
        prop_assert_eq!(&read, &ranking[..ranking.len().min((last_page * page_size) as usize)]);
        let beyond = law.resolve(last_page + 1, page_size, 0);
        prop_assert_eq!(beyond, Err(PageError::OutOfRange { last_page }));
    }

    #[test]
    fn a_skip_gives_the_stretch_behind_it_or_is_out_of_range(
        channels in channels(), law in law(), page_size in 1_u32..40, skip in 0_u32..80,
        method in prop::option::of(method()),
    ) {
        let legal = skip == 0 || skip + page_size < law.max_result_window;
        let cut = match law.resolve(1, page_size, skip) {
            Ok(cut) => cut,
            Err(error) => {
                prop_assert!(!legal);
                let last_page = law.resolve(1, page_size, 0).unwrap().last_page();
                prop_assert_eq!(error, PageError::OutOfRange { last_page });
                return Ok(());
            }
        };
        prop_assert!(legal);
        let ranking = model(&channels, law, page_size, method);
        let (matches, has_more) = answer(&channels, law, cut, method);
        let expect: Vec<u8> = ranking.iter().skip(skip as usize).take(page_size as usize).copied().collect();
        prop_assert_eq!(matches, expect);

        let next = law.resolve(1, page_size, skip + page_size);
        let next_holds = next.is_ok_and(|next| !answer(&channels, law, next, method).0.is_empty());
        prop_assert_eq!(has_more, next_holds);
    }

    #[test]
    fn a_page_is_the_skip_over_the_pages_before_it(law in law(), page in 1_u32..80, page_size in 1_u32..80) {
        let skip = (page - 1) * page_size;
        prop_assert_eq!(law.resolve(page, page_size, 0), law.resolve(0, page_size, skip));
    }

    #[test]
    fn no_numbers_overflow(
        max_result_window: u32, max_page_size: u32, page: u32, page_size: u32, skip: u32, wide_page: i64, wide_size: i64,
    ) {
        let law = PageLaw { max_result_window, max_page_size };
        for answer in [law.resolve(page, page_size, skip), law.resolve(page, page_size, 0), law.page(wide_page, wide_size)] {
            match answer {
                Ok(cut) => {
                    prop_assert!(cut.start() <= cut.end() && cut.end() < cut.window());
                    prop_assert!(cut.start() == 0 || cut.window() <= max_result_window as usize);
                    prop_assert!(cut.cut(&[1, 2, 3]).matches.len() <= 3);
                }
                Err(PageError::OutOfRange { last_page }) => prop_assert!(last_page >= 1),
                Err(PageError::PageAndSkip) => prop_assert!(page > 1 && skip > 0),
                Err(PageError::PageSizeTooLarge { max, .. }) => prop_assert_eq!(max, max_page_size),
            }
        }
    }

    #[test]
    fn fused_scores_are_finite_and_no_match_is_lost(
        lists in prop::collection::vec(prop::collection::vec((0_u8..9, prop::num::f64::ANY), 0..9), 0..5), method in method(),
    ) {
        let ranking = method.fuse(&lists, &[], |hit: &(u8, f64)| hit.0, |hit| hit.1).unwrap();
        let mut keys: Vec<u8> = lists.iter().flatten().map(|hit| hit.0).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut fused: Vec<u8> = ranking.iter().map(|fused| fused.key).collect();
        fused.sort_unstable();
        prop_assert_eq!(fused, keys);
        prop_assert!(ranking.iter().all(|fused| fused.score.is_finite() && !fused.places.is_empty()));
        prop_assert!(ranking.is_sorted_by(|one, other| one.score > other.score
            || one.score == other.score && one.key < other.key));
    }
}
