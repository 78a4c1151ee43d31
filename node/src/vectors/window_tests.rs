//! Windows by scan and by graph, against a full sort.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use roaring::RoaringBitmap;

use super::*;
use crate::attributes::{RowSet, Selection};
use crate::graph::{Graph, GraphBuilder, GraphParams};
use crate::mapped::Blob;

const METRICS: [Metric; 3] = [Metric::Cosine, Metric::Dot, Metric::Euclidean];

struct Field {
    rows: BTreeMap<u32, Vec<f32>>,
    file: VectorFile,
    graph: Option<Graph>,
}

impl Field {
    fn new(metric: Metric, rows: BTreeMap<u32, Vec<f32>>, with_graph: bool) -> Self {
        Self::of_element(metric, ElementType::BFloat16, rows, with_graph)
    }

    fn of_element(metric: Metric, element: ElementType, rows: BTreeMap<u32, Vec<f32>>, with_graph: bool) -> Self {
        let dims = rows.values().next().map_or(1, Vec::len);
        let num_rows = rows.keys().last().map_or(0, |row| row + 1);
        let params = VectorFileParams { dims, metric, graph_element: Some(element) };
        let pairs = rows.iter().map(|(&row, vector)| (row, &vector[..]));
        let bytes = vector_file_in_memory(params, pairs, num_rows).unwrap();
        let file = VectorFile::open(Blob::from_bytes(&bytes), dims, num_rows).unwrap();
        let graph = with_graph.then(|| {
            let params = GraphParams { dims, metric, element, connectivity: 16, expansion_add: 128 };
            let count = file.num_graph_nodes() as usize;
            let mut builder = GraphBuilder::new(&params, count, file.extent()).unwrap();
            for slot in (0..file.len()).filter(|&slot| file.is_graph_node(slot)) {
                builder.add(slot, file.vector(slot).unwrap()).unwrap();
            }
            Graph::open(Blob::from_bytes(&builder.finish().unwrap()), &params, count, 1).unwrap()
        });
        Self { rows, file, graph }
    }

    fn window(&self, query: &[f32], depth: usize, dead: &RoaringBitmap, n: usize, exact: bool) -> Vec<(u32, f64)> {
        let scorer = Scorer::new(self.file.metric(), query);
        let window = |rows| {
            vector_window(&self.file, self.graph.as_ref(), &scorer, depth, rows, None, n, exact, &|| false).unwrap()
        };
        let found = window(Selection::living(dead));
        // The living rows as a set, as a filter gives them, are found alike where both go by graph or both by scan.
        let mut living = RowSet::all(self.file.num_rows());
        living.remove_all(dead);
        assert_eq!(window(Selection::only(&living)), found);
        // So are they by a search that left its nodes behind, and by one that finds them.
        let nodes = OnceLock::new();
        for _ in 0..2 {
            let rows = Selection::only(&living);
            let (file, graph) = (&self.file, self.graph.as_ref());
            let again = vector_window(file, graph, &scorer, depth, rows, Some(&nodes), n, exact, &|| false);
            assert_eq!(again.unwrap(), found);
        }
        found
    }

    /// The answer by definition.
    fn model(&self, query: &[f32], dead: &RoaringBitmap, n: usize) -> Vec<(u32, f64)> {
        let scorer = Scorer::new(self.file.metric(), query);
        let live = self.rows.iter().filter(|(row, _)| !dead.contains(**row));
        let mut scored: Vec<_> = live.map(|(&row, vector)| (row, scorer.score(vector, norm(vector)))).collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.truncate(n);
        scored
    }
}

fn random_rows(seed: u64, count: u32, dims: usize) -> BTreeMap<u32, Vec<f32>> {
    let mut rng = StdRng::seed_from_u64(seed);
    // Sixteen clusters.
    let centres: Vec<Vec<f32>> = (0..16).map(|_| (0..dims).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
    (0..count)
        .map(|row| (row, centres[row as usize % 16].iter().map(|x| x + rng.random_range(-0.4..0.4)).collect()))
        .collect()
}

proptest! {
    #[test]
    fn a_scan_is_the_head_of_a_full_sort(
        rows in proptest::collection::btree_map(0u32..300, proptest::collection::vec((1i8..4).prop_map(f32::from), 2), 1..80),
        query in proptest::collection::vec((-3i8..=3).prop_map(|x| f32::from(x) + 0.5), 2),
        dead in proptest::collection::btree_set(0u32..400, 0..200),
        n in 0usize..100,
    ) {
        let dead: RoaringBitmap = dead.into_iter().collect();
        for metric in METRICS {
            let field = Field::new(metric, rows.clone(), false);
            prop_assert_eq!(field.window(&query, 1, &dead, n, false), field.model(&query, &dead, n));
        }
    }
}

proptest! {
    #[test]
    fn nodes_of_rows_are_those_with_a_row_in_their_group(
        rows in proptest::collection::btree_map(0u32..200, proptest::collection::vec((1i8..3).prop_map(f32::from), 2), 1..80),
        is_dense in any::<bool>(),
        found in proptest::collection::btree_set(0u32..200, 0..120),
    ) {
        let rows = if is_dense { (0..).zip(rows.into_values()).collect() } else { rows };
        let file = Field::new(Metric::Cosine, rows, false).file;
        let mut set = RowSet::none(file.num_rows());
        found.iter().for_each(|row| set.insert(*row));
        let has_row = |slot: &u32| file.group_of(*slot).filter_map(|slot| file.row_of_slot(slot)).any(|row| found.contains(&row));
        let expected: Vec<u32> = (0..file.len()).filter(|slot| file.is_graph_node(*slot)).filter(has_row).collect();
        let nodes = file.nodes_of_rows(&set);
        prop_assert_eq!(nodes.slots.iter().collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(nodes.len as usize, expected.len());
    }
}

#[test]
fn a_graph_window_has_high_recall_and_true_scores_and_is_the_head_of_longer_ones() {
    let queries: Vec<Vec<f32>> = random_rows(2, 40, 12).into_values().collect();
    let none = RoaringBitmap::new();
    for metric in METRICS {
        let field = Field::new(metric, random_rows(1, 6_000, 12), true);
        let mut hits = 0;
        for query in &queries {
            let window = field.window(query, 128, &none, 100, false);
            let model = field.model(query, &none, 10);
            hits += model.iter().filter(|scored| window.contains(scored)).count();
            for n in [0, 1, 10, 11, 99] {
                assert_eq!(field.window(query, 128, &none, n, false), window[..n]);
            }
        }
        let recall = hits as f64 / (queries.len() * 10) as f64;
        assert!(recall >= 0.95, "{metric:?}: {recall}");
    }
}

#[test]
fn codes_only_propose_and_every_row_of_a_node_is_scored() {
    let mut rows = random_rows(1, 12_040, 24);
    let queries: Vec<Vec<f32>> = rows.split_off(&12_000).into_values().collect();
    let none = RoaringBitmap::new();
    for (metric, element, least) in [
        (Metric::Cosine, ElementType::Int8, 0.95),
        (Metric::Dot, ElementType::Int8, 0.95),
        (Metric::Euclidean, ElementType::Int8, 0.95),
        (Metric::Cosine, ElementType::Bit, 0.95),
        (Metric::Hamming, ElementType::Bit, 0.95),
    ] {
        let field = Field::of_element(metric, element, rows.clone(), true);
        let mut hits = 0;
        for query in &queries {
            let window = field.window(query, 256, &none, 100, false);
            let scores: Vec<f64> = window.iter().map(|(_, score)| *score).collect();
            let scorer = Scorer::new(metric, query);
            for (row, score) in &window {
                assert_eq!(scorer.score(&field.rows[row], norm(&field.rows[row])), *score, "{metric:?} {element:?}");
            }
            // Rows that are as good may stand for one another.
            let model = field.model(query, &none, 10);
            hits += model.iter().filter(|(_, score)| scores.contains(score)).count();
            assert_eq!(field.window(query, 256, &none, 11, false), window[..11]);
        }
        let recall = hits as f64 / (queries.len() * 10) as f64;
        assert!(recall >= least, "{metric:?} {element:?}: {recall}");
    }
    // Few elements give few codes, and each stands for many rows.
    let field = Field::of_element(Metric::Cosine, ElementType::Bit, random_rows(12, 6_000, 6), true);
    assert!(field.file.num_graph_nodes() <= 64);
    let query = &queries[0][..6];
    assert_eq!(field.window(query, 64, &none, 500, false), field.model(query, &none, 500));
}

#[test]
fn every_live_row_is_found_by_its_own_vector_after_half_have_died() {
    let mut rng = StdRng::seed_from_u64(3);
    // Enough rows that half of them are still looked for by graph.
    let rows = random_rows(4, 3_000, 12);
    let dead: RoaringBitmap = rows.keys().copied().filter(|_| rng.random_bool(0.5)).collect();
    for metric in [Metric::Cosine, Metric::Euclidean] {
        let field = Field::new(metric, rows.clone(), true);
        for (&row, vector) in rows.iter().filter(|(row, _)| !dead.contains(**row)) {
            let window = field.window(vector, 24, &dead, 1, false);
            assert_eq!(window, field.model(vector, &dead, 1), "{metric:?} {row}");
        }
    }
}

#[test]
fn inner_products_keep_their_recall_after_the_longest_have_died() {
    let mut rng = StdRng::seed_from_u64(5);
    let lengths: Vec<f32> = (0..3_000).map(|_| rng.random_range(-2.0f32..2.0).exp()).collect();
    let rows: BTreeMap<u32, Vec<f32>> = random_rows(6, 3_000, 12)
        .into_iter()
        .map(|(row, vector)| (row, vector.iter().map(|x| x * lengths[row as usize]).collect()))
        .collect();
    let queries: Vec<Vec<f32>> = random_rows(7, 40, 12).into_values().collect();
    let field = Field::new(Metric::Dot, rows, true);
    let dead: RoaringBitmap = (0u32..).zip(&lengths).filter(|(_, length)| **length > 1.0).map(|(row, _)| row).collect();
    let mut hits = 0;
    for query in &queries {
        // Of a depth at which filtered and deleted rows alike are looked for by graph.
        let window = field.window(query, 20, &dead, 10, false);
        hits += field.model(query, &dead, 10).iter().filter(|scored| window.contains(scored)).count();
    }
    let recall = hits as f64 / (queries.len() * 10) as f64;
    assert!(recall >= 0.9, "{recall}");
}

#[test]
fn five_hundred_equal_vectors_all_come_back() {
    let mut rows = random_rows(8, 5_500, 12);
    let equal = rows[&0].clone();
    for row in (0..5_500).step_by(11) {
        // Under the cosine, a longer vector of the same direction is equal too.
        let factor = if row % 2 == 0 { 1.0 } else { 2.0 };
        rows.insert(row, equal.iter().map(|x| x * factor).collect());
    }
    let field = Field::new(Metric::Cosine, rows, true);
    assert_eq!(field.file.num_graph_nodes(), 5_001);
    let mut dead = RoaringBitmap::new();
    let rows_of = |window: Vec<(u32, f64)>| window.into_iter().map(|(row, _)| row).collect::<Vec<_>>();
    let expected: Vec<u32> = (0..5_500).step_by(11).collect();
    assert_eq!(rows_of(field.window(&equal, 100, &dead, 500, false)), expected);
    // The node's own row is dead; the others are not hidden by it.
    dead.insert(0);
    assert_eq!(rows_of(field.window(&equal, 100, &dead, 499, false)), expected[1..]);
}

#[test]
fn a_graph_that_finds_too_few_gives_way_to_the_scan() {
    let rows = random_rows(9, 5_000, 12);
    let field = Field::new(Metric::Euclidean, rows.clone(), true);
    // All the neighbours of the query's cluster are dead.
    let dead: RoaringBitmap = rows.keys().copied().filter(|row| row % 16 == 0).collect();
    let query = &rows[&0];
    let window = field.window(query, 100, &dead, 50, false);
    assert_eq!(window.len(), 50);
    let hits = field.model(query, &dead, 50).iter().filter(|scored| window.contains(scored)).count();
    assert!(hits >= 48, "{hits}");
    // One row is left.
    let dead: RoaringBitmap = (1..5_000).collect();
    assert_eq!(field.window(&rows[&9], 100, &dead, 10, false), field.model(&rows[&9], &dead, 10));
    let dead: RoaringBitmap = (0..5_000).collect();
    assert!(field.window(&rows[&9], 100, &dead, 10, false).is_empty());
}

#[test]
fn a_zero_query_gives_the_first_rows_under_the_inner_product() {
    let field = Field::new(Metric::Dot, random_rows(10, 4_500, 6), true);
    let window = field.window(&[0.0; 6], 100, &RoaringBitmap::new(), 3, false);
    assert_eq!(window, [(0, 0.0), (1, 0.0), (2, 0.0)]);
}

#[test]
fn a_search_stops_when_told() {
    let field = Field::new(Metric::Cosine, random_rows(11, 5_000, 6), false);
    let scorer = Scorer::new(Metric::Cosine, &[1.0; 6]);
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let result = vector_window(&field.file, None, &scorer, 10, Selection::All, None, 10, true, &stop);
    assert!(matches!(result, Err(VectorError::Stopped)));
    assert_eq!(asked.get(), 4);
}
