//! What a score fusion promises beyond its formulas, which the golden cases check.
#![allow(clippy::unwrap_used)]

use std::slice;

use super::*;

type List = Vec<(&'static str, f64)>;

const METHODS: [ScoreFusion; 4] = [
    ScoreFusion::ReciprocalRank { k: 60 },
    ScoreFusion::MaxScore,
    ScoreFusion::RelativeScore,
    ScoreFusion::DistributionScore,
];

fn fuse(method: ScoreFusion, lists: &[List], weights: &[f64]) -> Result<Vec<Fused<&'static str>>, FusionError> {
    method.fuse(lists, weights, |item| item.0, |item| item.1)
}

fn keys(ranking: &[Fused<&'static str>]) -> String {
    ranking.iter().map(|fused| fused.key).collect()
}

#[test]
fn a_match_knows_its_places() {
    let ranking = fuse(METHODS[0], &[vec![("a", 9.0), ("b", 8.0)], vec![("b", 0.5)]], &[]).unwrap();
    assert_eq!(keys(&ranking), "ba");
    assert_eq!(ranking[0].places, [Place { list: 0, rank: 2 }, Place { list: 1, rank: 1 }]);
    assert_eq!(ranking[0].score, 1.0 / 62.0 + 1.0 / 61.0);
}

#[test]
fn no_match_vanishes_with_score_zero() {
    for method in METHODS {
        let single_hit_of_no_worth = fuse(method, &[vec![("a", 3.0), ("b", 1.0)], vec![("c", -1.0)]], &[]).unwrap();
        assert_eq!(single_hit_of_no_worth.len(), 3, "{method:?}");
    }
    let ranking = fuse(ScoreFusion::RelativeScore, &[vec![("a", 3.0)], vec![("c", 4.0)]], &[1.0, 0.0]).unwrap();
    assert_eq!((keys(&ranking).as_str(), ranking[1].score), ("ac", 0.0));
}

#[test]
fn ties_are_in_the_order_of_keys_whatever_the_order_of_lists() {
    let (one, other) = (vec![("c", 1.0), ("a", 1.0)], vec![("b", 1.0), ("d", 1.0)]);
    for method in METHODS {
        let forth = fuse(method, &[one.clone(), other.clone()], &[]).unwrap();
        let back = fuse(method, &[other.clone(), one.clone()], &[]).unwrap();
        assert_eq!(keys(&forth), keys(&back), "{method:?}");
    }
    assert_eq!(keys(&fuse(METHODS[1], &[vec![("b", 0.0)], vec![("a", -0.0)]], &[]).unwrap()), "ab");
}

#[test]
fn a_repetition_counts_for_nothing() {
    let once: List = vec![("a", 5.0), ("b", 4.0), ("c", 1.0)];
    let twice: List = [once.clone(), vec![("a", -7.0), ("b", 0.0)]].concat();
    for method in METHODS {
        assert_eq!(fuse(method, slice::from_ref(&once), &[]), fuse(method, slice::from_ref(&twice), &[]), "{method:?}");
    }
}

#[test]
fn weights_multiply_reciprocal_ranks() {
    let ranking = fuse(METHODS[0], &[vec![("a", 1.0)], vec![("b", 1.0)]], &[0.5, 2.0]).unwrap();
    assert_eq!((keys(&ranking).as_str(), ranking[0].score, ranking[1].score), ("ba", 2.0 / 61.0, 0.5 / 61.0));
}

#[test]
fn weights_of_scores_count_by_their_proportion() {
    let lists = [vec![("a", 1.0)], vec![("b", 1.0)]];
    let ranking = fuse(ScoreFusion::RelativeScore, &lists, &[2.0, 6.0]).unwrap();
    assert_eq!((keys(&ranking).as_str(), ranking[0].score, ranking[1].score), ("ba", 0.75, 0.25));
}

#[test]
fn weights_are_honoured_or_refused() {
    let lists = [vec![("a", 1.0)], vec![]];
    assert_eq!(fuse(ScoreFusion::MaxScore, &lists, &[1.0, 1.0]), Err(FusionError::WeightsRefused));
    for method in METHODS {
        assert!(fuse(method, &lists, &[]).is_ok());
        assert_eq!(fuse(method, &lists, &[1.0]), Err(FusionError::WeightCount { given: 1, lists: 2 }));
        assert_eq!(fuse(method, &lists, &[0.0, 0.0]), Err(FusionError::WeightsAllZero));
    }
}

#[test]
fn nothing_to_fuse_is_an_empty_ranking() {
    for method in METHODS {
        assert_eq!(fuse(method, &[], &[]), Ok(vec![]));
        assert_eq!(fuse(method, &[vec![], vec![]], &[]), Ok(vec![]));
    }
}
