//! Graphs built, stored, opened and searched, against a full sort.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::mapped::Blob;
use crate::vectors::{Extent, Metric, Scorer, norm};

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
    let extent = Extent::of(params.metric, vectors.iter().map(|vector| (&vector[..], norm(vector))));
    let mut builder = GraphBuilder::new(params, vectors.len(), extent).unwrap();
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

fn recall(metric: Metric, graph: &Graph, vectors: &[Vec<f32>], queries: &[Vec<f32>]) -> f64 {
    let mut hits = 0;
    for query in queries {
        let found = graph.search(query, 128, Admitted::All).unwrap();
        assert_eq!(found.len(), 128);
        hits += exact(metric, vectors, query, 10)
            .iter()
            .filter(|slot| found.contains(slot) || graph.strays().contains(slot))
            .count();
    }
    hits as f64 / (queries.len() * 10) as f64
}

#[test]
fn recall_at_ten_is_high_for_every_metric_and_element_type() {
    let vectors = clustered(1, 1_500, 24, 40);
    let queries = clustered(2, 50, 24, 40);
    for metric in METRICS {
        for element in ELEMENTS {
            let params = params(24, metric, element);
            let graph = open(&params, &build(&params, &vectors), vectors.len(), 1);
            let recall = recall(metric, &graph, &vectors, &queries);
            assert!(recall >= 0.95, "{metric:?} {element:?}: {recall}");
        }
    }
}

#[test]
fn lengths_far_from_one_change_nothing() {
    let vectors = clustered(3, 600, 16, 10);
    let queries = clustered(4, 30, 16, 10);
    for metric in METRICS {
        for element in ELEMENTS {
            for factor in [1e-15f32, 1e6, 1e15] {
                let scale = |rows: &[Vec<f32>]| -> Vec<Vec<f32>> {
                    rows.iter().map(|row| row.iter().map(|x| x * factor).collect()).collect()
                };
                let (vectors, queries) = (scale(&vectors), scale(&queries));
                let params = params(16, metric, element);
                let graph = open(&params, &build(&params, &vectors), vectors.len(), 1);
                let recall = recall(metric, &graph, &vectors, &queries);
                assert!(recall >= 0.95, "{metric:?} {element:?} × {factor}: {recall}");
            }
        }
    }
}

#[test]
fn two_builds_give_the_same_bytes() {
    let vectors = clustered(5, 800, 20, 8);
    for metric in METRICS {
        let params = params(20, metric, ElementType::BFloat16);
        assert!(build(&params, &vectors) == build(&params, &vectors), "{metric:?}");
    }
}

#[test]
fn what_is_written_to_a_file_is_what_is_built_in_memory() {
    let vectors = clustered(6, 100, 8, 4);
    let params = params(8, Metric::Cosine, ElementType::Float16);
    let mut builder = GraphBuilder::new(&params, 1, Extent { max_norm: 10.0, max_element: 10.0 }).unwrap();
    for (slot, vector) in (0..).zip(&vectors) {
        builder.add(slot * 3, vector).unwrap();
    }
    let built = builder.check().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph");
    built.write_to(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), built.to_bytes().unwrap());
    assert!(built.write_to(&dir.path().join("no/such/folder")).is_err());
}

#[test]
fn every_vector_is_found_or_a_stray() {
    // Near-equal vectors, the worst case for rounded unit vectors under the inner product.
    let mut rng = StdRng::seed_from_u64(7);
    let centres = clustered(8, 30, 8, 30);
    let vectors: Vec<Vec<f32>> =
        (0..1_500).map(|at| centres[at % 30].iter().map(|x| x + rng.random_range(-2e-3..2e-3)).collect()).collect();
    for metric in METRICS {
        let params = params(8, metric, ElementType::BFloat16);
        let graph = open(&params, &build(&params, &vectors), vectors.len(), 1);
        for (slot, vector) in (0u32..).zip(&vectors) {
            let found = graph.search(vector, 100, Admitted::All).unwrap();
            let is_found = found.contains(&slot) || graph.strays().contains(&slot);
            // Under the inner product a vector is not the best match of itself.
            assert!(is_found || metric == Metric::Dot, "{metric:?} {slot}, strays {}", graph.strays().len());
        }
    }
}

#[test]
fn only_a_graph_of_the_same_shape_is_opened() {
    let vectors = clustered(9, 50, 8, 4);
    let built_with = params(8, Metric::Cosine, ElementType::BFloat16);
    let bytes = build(&built_with, &vectors);
    let try_open = |params: &GraphParams, count| Graph::open(Blob::from_bytes(&bytes), params, count, 1);
    assert!(try_open(&built_with, 50).is_ok());
    for (params, count) in [
        (params(9, Metric::Cosine, ElementType::BFloat16), 50),
        (params(8, Metric::Dot, ElementType::BFloat16), 50),
        (params(8, Metric::Cosine, ElementType::Float16), 50),
        (built_with, 49),
    ] {
        assert!(matches!(try_open(&params, count), Err(GraphError::Mismatch { .. })), "{params:?} {count}");
    }
    let truncated = Blob::from_bytes(&bytes[..bytes.len() - 1]);
    assert!(matches!(Graph::open(truncated, &built_with, 50, 1), Err(GraphError::Corrupt { .. })));
}

#[test]
fn odd_questions_are_answered_or_refused() {
    let vectors = clustered(10, 50, 8, 4);
    let params = params(8, Metric::Euclidean, ElementType::Float16);
    let graph = open(&params, &build(&params, &vectors), 50, 1);
    let query = &vectors[3];
    assert_eq!(graph.len(), 50);
    assert_eq!(graph.search(query, usize::MAX, Admitted::All).unwrap().len(), 50);
    assert_eq!(graph.search(query, 0, Admitted::All).unwrap().len(), 1);
    assert_eq!(graph.search(&[9e18; 8], 5, Admitted::All).unwrap().len(), 5);
    assert!(matches!(graph.search(&query[..7], 5, Admitted::All), Err(GraphError::Mismatch { .. })));
    assert!(graph.search(query, 50, Admitted::By(&|_| false)).unwrap().is_empty());
    assert_eq!(graph.search(query, 10, Admitted::By(&|slot| slot == 17)).unwrap(), [17]);
    assert!(matches!(GraphBuilder::new(&params, 0, Extent::default()).unwrap().finish(), Err(GraphError::Empty)));
}

#[test]
fn a_panicking_predicate_is_an_error() {
    let vectors = clustered(11, 50, 8, 4);
    let params = params(8, Metric::Cosine, ElementType::BFloat16);
    let graph = open(&params, &build(&params, &vectors), 50, 1);
    let result = graph.search(&vectors[0], 5, Admitted::By(&|_| panic!("expected by the test")));
    assert!(matches!(result, Err(GraphError::PredicatePanicked)));
    assert_eq!(graph.search(&vectors[0], 5, Admitted::All).unwrap().len(), 5);
}

#[test]
fn as_many_searches_run_at_once_as_threads_were_reserved_and_more_are_an_error() {
    const THREADS: usize = 3;
    let vectors = clustered(12, 200, 8, 4);
    let params = params(8, Metric::Cosine, ElementType::BFloat16);
    let graph = open(&params, &build(&params, &vectors), 200, THREADS);
    let (entered, all_asked) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let calls = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let first = std::cell::Cell::new(true);
                let hold = |_| {
                    if first.replace(false) {
                        entered.wait();
                        all_asked.wait();
                    }
                    true
                };
                assert_eq!(graph.search(&vectors[0], 10, Admitted::By(&hold)).unwrap().len(), 10);
                calls.fetch_add(1, Ordering::Relaxed);
            });
        }
        entered.wait();
        let refused = graph.search(&vectors[0], 10, Admitted::All);
        all_asked.wait();
        assert!(matches!(refused, Err(GraphError::Library { .. })), "{refused:?}");
    });
    assert_eq!(calls.into_inner(), THREADS);
    assert_eq!(graph.search(&vectors[0], 10, Admitted::All).unwrap().len(), 10);
}

#[test]
fn an_index_gives_back_what_the_encoder_made() {
    let values = [1.0f32, -0.333, 6.1e-5, 3.0e-8, 5.96e-8, 1e-7, 0.99951, -2.2e-6, 0.5];
    for element in [&ELEMENTS[..], &[ElementType::Int8, ElementType::Bit]].concat() {
        let params = params(9, Metric::Euclidean, element);
        let index = builder::empty_index(&params, params.metric_kind(), 1).unwrap();
        let encoded =
            encoder::Encoder::for_extent(params, Extent { max_norm: 0.9, max_element: 1.0 }).encode_vector(&values);
        encoded.add_to(&index, 0).unwrap();
        let mut held = code::Code::empty(&params);
        held.load(&index, 0).unwrap();
        assert_eq!(held, encoded, "{element:?}");
        assert!(held.load(&index, 1).is_err());
    }
}

#[test]
fn whole_numbers_find_nearly_as_many() {
    let (vectors, queries) = (clustered(13, 1_500, 24, 40), clustered(14, 50, 24, 40));
    let unit = |rows: &[Vec<f32>]| -> Vec<Vec<f32>> {
        rows.iter().map(|row| row.iter().map(|x| x / norm(row)).collect()).collect()
    };
    for metric in METRICS {
        // One step for all vectors is for vectors of about one length; only the cosine has them by itself.
        let vectors = if metric == Metric::Cosine { vectors.clone() } else { unit(&vectors) };
        let params = params(24, metric, ElementType::Int8);
        let graph = open(&params, &build(&params, &vectors), vectors.len(), 1);
        let recall = recall(metric, &graph, &vectors, &queries);
        assert!(recall >= 0.95, "{metric:?}: {recall}");
    }
}

#[test]
fn whole_numbers_of_lengths_far_from_one_are_no_worse() {
    let (vectors, queries) = (clustered(3, 600, 16, 10), clustered(4, 30, 16, 10));
    let scale = |rows: &[Vec<f32>], factor: f32| -> Vec<Vec<f32>> {
        rows.iter().map(|row| row.iter().map(|x| x * factor).collect()).collect()
    };
    for metric in METRICS {
        let params = params(16, metric, ElementType::Int8);
        let recall = [1.0, 1e-15f32, 1e15].map(|factor| {
            let (vectors, queries) = (scale(&vectors, factor), scale(&queries, factor));
            let graph = open(&params, &build(&params, &vectors), vectors.len(), 1);
            recall(metric, &graph, &vectors, &queries)
        });
        assert!(recall.iter().all(|other| (other - recall[0]).abs() < 0.05), "{metric:?}: {recall:?}");
    }
}

#[test]
fn bits_find_the_fewest_differences_and_most_of_the_nearest_directions() {
    let mut vectors = clustered(15, 1_550, 128, 40);
    let queries = vectors.split_off(1_500);
    let mut codes = std::collections::HashSet::new();
    let distinct: Vec<Vec<f32>> = vectors
        .into_iter()
        .filter(|vector| codes.insert(vector.iter().map(|x| *x > 0.0).collect::<Vec<_>>()))
        .collect();
    for (metric, least) in
        [(Metric::Hamming, 0.95), (Metric::Cosine, 0.95), (Metric::Euclidean, 0.9), (Metric::Dot, 0.9)]
    {
        let params = params(128, metric, ElementType::Bit);
        let graph = open(&params, &build(&params, &distinct), distinct.len(), 1);
        let recall = recall(metric, &graph, &distinct, &queries);
        assert!(recall >= least, "{metric:?}: {recall}");
    }
}
