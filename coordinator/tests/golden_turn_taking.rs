//! Turn-taking and the page law against the golden cases of an independent program.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use antiphon_coordinator::fusion::take_turns;
use antiphon_coordinator::page::{PageError, PageLaw};
use antiphon_proto::key::{fold, is_blank};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    channels: Vec<Vec<String>>,
    page: i64,
    page_size: i64,
    max_window: u32,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expect {
    Error { error: String, last_page: u32 },
    Page { matches: Vec<ExpectMatch>, has_more: bool, last_page: u32, window: usize },
}

#[derive(Debug, Deserialize, PartialEq)]
struct ExpectMatch {
    key: String,
    channel: usize,
    rank: usize,
}

fn check(case: &Case) {
    let law = PageLaw { max_result_window: case.max_window, max_page_size: u32::MAX };
    let cut = law.page(case.page, case.page_size);
    let (matches, has_more, last_page, window) = match &case.expect {
        Expect::Error { error, last_page } => {
            assert_eq!(error, "OUT_OF_RANGE", "{}", case.name);
            return assert_eq!(cut, Err(PageError::OutOfRange { last_page: *last_page }), "{}", case.name);
        }
        Expect::Page { matches, has_more, last_page, window } => (matches, *has_more, *last_page, *window),
    };

    let cut = cut.unwrap();
    let identity = |key: &String| (!is_blank(key)).then(|| fold(key).into_owned());
    let ranking = take_turns(&case.channels, identity, cut.window());
    let page = cut.cut(&ranking);
    let given: Vec<ExpectMatch> = page
        .matches
        .iter()
        .map(|place| ExpectMatch { key: place.of(&case.channels).clone(), channel: place.list, rank: place.rank })
        .collect();
    assert_eq!(&given, matches, "{}", case.name);
    assert_eq!((page.has_more, cut.last_page(), cut.window()), (has_more, last_page, window), "{}", case.name);
}

#[test]
fn every_case_is_met() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/turn_taking.json")).unwrap();
    assert_eq!(cases.len(), 429);
    cases.iter().for_each(check);
}
