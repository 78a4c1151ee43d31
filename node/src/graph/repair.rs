//! Finds vectors that a search for themselves does not find, and mends the graph.
//!
//! Not for a graph that is in use: usearch's viewed indexes cannot be changed. Invariant: an index that leaves here finds
//! every one of its vectors by itself at a depth of [`DEEPEST`], but for the listed strays.
//!
//! HNSW gives no promise that a node can be reached: a node's links to it may all be given up for nearer neighbours. Most
//! such nodes are found again once they are taken out and put back. Where many are not, the distance does not suit the
//! data and the graph is built once more: rounding gives unit vectors unequal lengths, which among near-equal vectors
//! outweigh the angle in the inner product (40% of vectors in clusters of spread 0.001 were lost), not in the Euclidean
//! distance, which takes half as long again to search; graphs of other metrics get twice the links. What is left are
//! strays, which a search scores one by one.

use usearch::{Index, MetricKind};

use crate::graph::builder::empty_index;
use crate::graph::{GraphError, GraphParams};
use crate::vectors::{Metric, kernel};

/// Depths at which a vector is searched for, one after another until it is found: most are at the first, which makes the
/// check of every vector cheap beside the build.
const DEPTHS: [usize; 3] = [8, 32, DEEPEST];
const DEEPEST: usize = 100;

/// By how much usearch's distance of vectors not longer than 1 may differ from ours.
const TOLERANCE: f32 = 1e-5;

/// How often lost vectors are taken out and put back.
const ROUNDS: usize = 2;

/// One vector in so many may be a stray without the graph being built once more.
const FEW: usize = 50;

/// With one stray in so many vectors, a graph is hardly better than a scan.
const TOO_MANY: usize = 4;

/// An index, and the slots that it holds but does not find, ascending.
pub(super) struct Checked {
    pub(super) index: Index,
    pub(super) strays: Vec<u32>,
}

/// Makes as many vectors findable as can be. `slots` are the index's keys in the order in which they were added.
pub(super) fn make_findable(index: Index, params: &GraphParams, slots: &[u32]) -> Result<Checked, GraphError> {
    let count = slots.len();
    let mut best = mend(index, params, slots)?;
    if best.strays.len() > count / FEW {
        tracing::debug!(lost = best.strays.len(), count, "building a graph once more");
        let other = mend(build_once_more(&best.index, params, slots)?, params, slots)?;
        if other.strays.len() < best.strays.len() {
            best = other;
        }
    }
    if best.strays.len() > count / TOO_MANY {
        return Err(GraphError::Unreachable { lost: best.strays.len(), count });
    }
    Ok(best)
}

/// Takes lost vectors out and puts them back: by now their neighbours are there to link to them.
fn mend(index: Index, params: &GraphParams, slots: &[u32]) -> Result<Checked, GraphError> {
    let mut vector = vec![0.0f32; params.dims];
    let mut lost = find_lost(&index, &mut vector, slots)?;
    for round in 0..ROUNDS {
        if lost.is_empty() {
            break;
        }
        tracing::debug!(round, lost = lost.len(), count = slots.len(), "linking lost vectors again");
        for &slot in &lost {
            load(&index, slot, &mut vector)?;
            let key = u64::from(slot);
            index.remove(key).map_err(GraphError::library("remove a vector"))?;
            index.add(key, &vector).map_err(GraphError::library("add a vector again"))?;
        }
        lost = find_lost(&index, &mut vector, slots)?;
    }
    lost.sort_unstable();
    Ok(Checked { index, strays: lost })
}

/// The slots whose vectors a search for them misses. `vector` is scratch space.
fn find_lost(index: &Index, vector: &mut [f32], slots: &[u32]) -> Result<Vec<u32>, GraphError> {
    let mut lost = Vec::new();
    for &slot in slots {
        load(index, slot, vector)?;
        if misses(index, slot, slots.len(), vector)? {
            lost.push(slot);
        }
    }
    Ok(lost)
}

/// Whether a search for a node's own vector at [`DEEPEST`] does not find it although it belongs among the found.
fn misses(index: &Index, slot: u32, count: usize, vector: &[f32]) -> Result<bool, GraphError> {
    for depth in DEPTHS {
        let depth = depth.min(count);
        let found = index.search(vector, depth).map_err(GraphError::library("search for a vector"))?;
        if found.keys.contains(&u64::from(slot)) {
            return Ok(false);
        }
        // Under the inner product longer vectors may stand before a vector in its own list: then it is not missed.
        let own_distance = 1.0 - kernel::squared_norm(vector);
        let furthest = found.distances.last().copied().unwrap_or(f32::INFINITY);
        let outdone = found.keys.len() == depth && furthest <= own_distance + TOLERANCE;
        if index.metric_kind() == MetricKind::IP && outdone {
            return Ok(false);
        }
    }
    Ok(true)
}

fn build_once_more(old: &Index, params: &GraphParams, slots: &[u32]) -> Result<Index, GraphError> {
    let mut params = *params;
    if params.metric != Metric::Cosine {
        params.connectivity = params.connectivity.saturating_mul(2);
        params.expansion_add = params.expansion_add.saturating_mul(2);
    }
    let distance = if params.metric == Metric::Cosine { MetricKind::L2sq } else { params.metric_kind() };
    let index = empty_index(&params, distance, slots.len())?;
    let mut vector = vec![0.0f32; params.dims];
    for &slot in slots {
        load(old, slot, &mut vector)?;
        index.add(u64::from(slot), &vector).map_err(GraphError::library("add a vector once more"))?;
    }
    Ok(index)
}

/// Reads back what the index holds; exact, for the encoder rounded it.
fn load(index: &Index, slot: u32, vector: &mut [f32]) -> Result<(), GraphError> {
    let found = index.get(u64::from(slot), vector).map_err(GraphError::library("read a vector back"))?;
    if found == 1 { Ok(()) } else { Err(GraphError::Corrupt { reason: "a vector that was added is gone" }) }
}
