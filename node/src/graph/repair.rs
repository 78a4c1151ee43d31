//! Finds vectors that a search for themselves does not find, and mends the graph.
//!
//! Not for a graph that is in use: usearch's viewed indexes cannot be changed. Invariant: an index that leaves here finds
//! every one of its vectors by itself at a depth of [`DEEPEST`], but for the listed strays.
//!
//! HNSW gives no promise that a node can be reached: the links to it may all be given up for nearer neighbours. Most such
//! nodes are found again once they are taken out and put back. Where many are not, the graph is built once more: where
//! inner products compare unit vectors, by distance instead, which takes half as long again to search but suits near-equal
//! vectors; else with twice the links. What is left are strays, which a search scores one by one.
//!
//! Under the inner product of vectors of different lengths, the longest are among the best for many queries and lie
//! where a graph has few links, so some of them are listed with the strays.

use usearch::{Index, MetricKind};

use crate::graph::builder::empty_index;
use crate::graph::code::Code;
use crate::graph::{GraphError, GraphParams};
use crate::vectors::Metric;

/// Depths at which a vector is searched for, one after another until it is found: most are at the first, which makes the
/// check of every vector cheap beside the build.
const DEPTHS: [usize; 3] = [8, 32, DEEPEST];
const DEEPEST: usize = 100;

/// How often lost vectors are taken out and put back.
const ROUNDS: usize = 2;

/// One vector in so many may be a stray without the graph being built once more.
const FEW: usize = 50;

/// With one stray in so many vectors, a graph is hardly better than a scan.
const TOO_MANY: usize = 4;

/// At most so many of the longest vectors, and one in [`FEW`], are listed with the strays.
const MAX_LONGEST: usize = 1_000;

/// An index, and the slots that are to be scored besides what it finds, ascending.
pub(super) struct Checked {
    pub(super) index: Index,
    pub(super) strays: Vec<u32>,
}

/// Makes as many vectors findable as can be. `slots` are the index's keys in the order in which they were added, `lengths`
/// their vectors' under [`Metric::Dot`].
pub(super) fn make_findable(
    index: Index,
    params: &GraphParams,
    slots: &[u32],
    lengths: &[f32],
) -> Result<Checked, GraphError> {
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
    if params.metric == Metric::Dot {
        best.strays.extend(longest(slots, lengths));
        best.strays.sort_unstable();
        best.strays.dedup();
    }
    Ok(best)
}

/// Takes lost vectors out and puts them back: by now their neighbours are there to link to them.
fn mend(index: Index, params: &GraphParams, slots: &[u32]) -> Result<Checked, GraphError> {
    let mut code = Code::empty(params);
    let mut lost = find_lost(&index, &mut code, slots)?;
    for round in 0..ROUNDS {
        if lost.is_empty() {
            break;
        }
        tracing::debug!(round, lost = lost.len(), count = slots.len(), "linking lost vectors again");
        for &slot in &lost {
            code.load(&index, slot)?;
            index.remove(u64::from(slot)).map_err(GraphError::library("remove a vector"))?;
            code.add_to(&index, slot)?;
        }
        lost = find_lost(&index, &mut code, slots)?;
    }
    lost.sort_unstable();
    Ok(Checked { index, strays: lost })
}

/// The slots whose vectors a search for them misses. `code` is scratch space.
fn find_lost(index: &Index, code: &mut Code, slots: &[u32]) -> Result<Vec<u32>, GraphError> {
    let mut lost = Vec::new();
    for &slot in slots {
        code.load(index, slot)?;
        if misses(index, slot, slots.len(), code)? {
            lost.push(slot);
        }
    }
    Ok(lost)
}

/// Whether a search for a node's own vector, to which nothing is nearer, does not find it.
fn misses(index: &Index, slot: u32, count: usize, code: &Code) -> Result<bool, GraphError> {
    for depth in DEPTHS {
        if code.search(index, depth.min(count))?.contains(&slot) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The longest vectors, where lengths differ: where half of the vectors are not half as long as the longest.
fn longest(slots: &[u32], lengths: &[f32]) -> Vec<u32> {
    let mut longest: Vec<(f32, u32)> = lengths.iter().copied().zip(slots.iter().copied()).collect();
    longest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let differ = longest.first().zip(longest.get(longest.len() / 2)).is_some_and(|(max, mid)| mid.0 * 2.0 < max.0);
    longest.truncate(if differ { MAX_LONGEST.min(slots.len() / FEW) } else { 0 });
    longest.into_iter().map(|(_, slot)| slot).collect()
}

fn build_once_more(old: &Index, params: &GraphParams, slots: &[u32]) -> Result<Index, GraphError> {
    let mut params = *params;
    let by_angle = params.metric_kind() == MetricKind::IP;
    if !by_angle {
        params.connectivity = params.connectivity.saturating_mul(2);
        params.expansion_add = params.expansion_add.saturating_mul(2);
    }
    let distance = if by_angle { MetricKind::L2sq } else { params.metric_kind() };
    let index = empty_index(&params, distance, slots.len())?;
    let mut code = Code::empty(&params);
    for &slot in slots {
        code.load(old, slot)?;
        code.add_to(&index, slot)?;
    }
    Ok(index)
}
