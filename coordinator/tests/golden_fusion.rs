//! Score fusion against the golden cases computed by llama-index-core 0.14.25.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashMap;

use antiphon_coordinator::fusion::ScoreFusion;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    weights: Option<Vec<f64>>,
    queries: usize,
    channels: Vec<Channel>,
    expect_scores: HashMap<String, HashMap<String, f64>>,
}

#[derive(Deserialize)]
struct Channel {
    retriever: usize,
    query: usize,
    matches: Vec<Match>,
}

#[derive(Deserialize)]
struct Match {
    key: String,
    score: f64,
}

const TOLERANCE: f64 = 1e-9;

fn check(case: &Case, method: ScoreFusion, name: &str, takes_weights: bool) {
    assert!(case.channels.iter().all(|channel| channel.query < case.queries));
    let lists: Vec<&[Match]> = case.channels.iter().map(|channel| channel.matches.as_slice()).collect();
    let weights: Vec<f64> = match &case.weights {
        Some(weights) if takes_weights => case.channels.iter().map(|channel| weights[channel.retriever]).collect(),
        _ => Vec::new(),
    };
    let key = |item: &Match| antiphon_proto::key::fold(&item.key).into_owned();
    let ranking = method.fuse(&lists, &weights, key, |item| item.score).unwrap();

    let expect = &case.expect_scores[name];
    let mut order: Vec<(&str, f64)> = expect.iter().map(|(key, score)| (key.as_str(), *score)).collect();
    order.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
    let given: Vec<&str> = ranking.iter().map(|fused| fused.places[0].of(&lists).key.as_str()).collect();
    assert_eq!(given, order.iter().map(|(key, _)| *key).collect::<Vec<_>>(), "{} {name}", case.name);
    for (fused, (key, score)) in ranking.iter().zip(&order) {
        assert!((fused.score - score).abs() <= TOLERANCE, "{} {name} {key}: {} != {score}", case.name, fused.score);
    }
}

#[test]
fn every_case_is_met_by_every_method() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/fusion.json")).unwrap();
    assert_eq!(cases.len(), 150);
    for case in &cases {
        assert_eq!(case.expect_scores.len(), 4, "{}", case.name);
        check(case, ScoreFusion::ReciprocalRank { k: 59 }, "reciprocal_rerank", false);
        check(case, ScoreFusion::MaxScore, "simple", false);
        check(case, ScoreFusion::RelativeScore, "relative_score", true);
        check(case, ScoreFusion::DistributionScore, "dist_based_score", true);
    }
}
