//! Finds vectors that a search for themselves does not find, and mends the graph.
//!
//! Not for a graph that is in use: usearch's viewed indexes cannot be changed. Invariant: an index that leaves here finds
//! every one of its vectors by itself at a depth of [`DEEPEST`].

use usearch::Index;

use crate::graph::builder::empty_index;
use crate::graph::{GraphError, GraphParams};
use crate::vectors::{Metric, kernel};

/// Depths at which a vector is searched for, one after another until it is found: most are at the first, which makes the
/// check of every vector cheap beside the build.
const DEPTHS: [usize; 3] = [8, 32, DEEPEST];
const DEEPEST: usize = 100;

/// By how much usearch's distance of unit vectors may differ from ours.
const TOLERANCE: f32 = 1e-3;

/// How often lost vectors are linked again before the graph is built anew.
const ROUNDS: usize = 4;

/// How often the graph is built anew, with twice the connectivity and expansion each time.
const REBUILDS: usize = 2;

/// Makes every vector findable: links lost ones again, and if that does not help builds the graph anew with more links.
pub(super) fn make_reachable(mut index: Index, params: &GraphParams, slots: &[u32]) -> Result<Index, GraphError> {
    let mut params = *params;
    for rebuild in 0..=REBUILDS {
        let mut lost = find_lost(&index, &params, slots)?;
        eprintln!("LOST {} of {}", lost.len(), slots.len());
        for round in 0..ROUNDS {
            if lost.is_empty() {
                return Ok(index);
            }
            tracing::debug!(rebuild, round, lost = lost.len(), count = slots.len(), "linking lost vectors again");
            relink(&index, &params, &lost)?;
            lost = find_lost(&index, &params, slots)?;
            eprintln!("  LOST {} of {}", lost.len(), slots.len());
        }
        if lost.is_empty() {
            return Ok(index);
        }
        if rebuild == REBUILDS {
            return Err(GraphError::Unreachable { lost: lost.len(), count: slots.len() });
        }
        params.connectivity = params.connectivity.saturating_mul(2);
        params.expansion_add = params.expansion_add.saturating_mul(2);
        index = build_anew(&index, &params, slots)?;
    }
    Err(GraphError::Unreachable { lost: 0, count: slots.len() })
}

/// The slots, in the order of `slots`, whose vectors a search for them misses.
fn find_lost(index: &Index, params: &GraphParams, slots: &[u32]) -> Result<Vec<u32>, GraphError> {
    let mut vector = vec![0.0f32; params.dims];
    let mut lost = Vec::new();
    for &slot in slots {
        load(index, slot, &mut vector)?;
        if misses(index, params, slot, slots.len(), &vector)? {
            lost.push(slot);
        }
    }
    Ok(lost)
}

/// Whether a search for a node's own vector at [`DEEPEST`] does not find it although it belongs among the found.
fn misses(
    index: &Index,
    params: &GraphParams,
    slot: u32,
    count: usize,
    vector: &[f32],
) -> Result<bool, GraphError> {
    let key = u64::from(slot);
    for depth in DEPTHS {
        let found = index.search(vector, depth.min(count)).map_err(GraphError::library("search for a vector"))?;
        if found.keys.contains(&key) {
            return Ok(false);
        }
        // Under the inner product longer vectors may stand before a vector in its own list: then it is not missed.
        let own_distance = 1.0 - kernel::squared_norm(vector);
        let furthest = found.distances.last().copied().unwrap_or(f32::INFINITY);
        if params.metric == Metric::Dot && found.keys.len() == depth && furthest <= own_distance + TOLERANCE {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes vectors out and puts them in again: by now their neighbours are there, and have room or find them nearer.
fn relink(index: &Index, params: &GraphParams, lost: &[u32]) -> Result<(), GraphError> {
    let mut vector = vec![0.0f32; params.dims];
    for &slot in lost {
        load(index, slot, &mut vector)?;
        let key = u64::from(slot);
        index.remove(key).map_err(GraphError::library("remove a vector"))?;
        index.add(key, &vector).map_err(GraphError::library("add a vector again"))?;
    }
    Ok(())
}

fn build_anew(old: &Index, params: &GraphParams, slots: &[u32]) -> Result<Index, GraphError> {
    let index = empty_index(params, slots.len())?;
    let mut vector = vec![0.0f32; params.dims];
    for &slot in slots {
        load(old, slot, &mut vector)?;
        index.add(u64::from(slot), &vector).map_err(GraphError::library("add a vector anew"))?;
    }
    Ok(index)
}

/// Reads back what the index holds; exact, for the encoder rounded it.
fn load(index: &Index, slot: u32, vector: &mut [f32]) -> Result<(), GraphError> {
    let found = index.get(u64::from(slot), vector).map_err(GraphError::library("read a vector back"))?;
    if found == 1 { Ok(()) } else { Err(GraphError::Corrupt { reason: "a vector that was added is gone" }) }
}
