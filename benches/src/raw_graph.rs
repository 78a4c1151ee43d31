//! usearch as one would use it alone: what the vector channel is compared with.

use std::time::{Duration, Instant};

use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use crate::Outcome;
use crate::npy::Matrix;
use crate::queries::normalise;

/// Parameters, the same as a collection's defaults.
#[derive(Debug, Clone, Copy)]
pub struct GraphOptions {
    /// Edges of a node.
    pub connectivity: usize,
    /// Candidates while building.
    pub expansion_add: usize,
    /// Candidates while searching.
    pub expansion_search: usize,
}

impl Default for GraphOptions {
    fn default() -> Self {
        Self { connectivity: 16, expansion_add: 128, expansion_search: 384 }
    }
}

/// A graph in memory: bfloat16, inner product of unit vectors.
pub struct RawGraph {
    index: Index,
    /// How long one thread took to build it.
    pub build_time: Duration,
}

impl RawGraph {
    /// Builds it on this thread; up to `threads` may search at once.
    ///
    /// # Errors
    /// usearch's.
    pub fn build(vectors: &Matrix, options: GraphOptions, threads: usize) -> Outcome<Self> {
        let begun = Instant::now();
        let index = Index::new(&IndexOptions {
            dimensions: vectors.dims,
            metric: MetricKind::IP,
            quantization: ScalarKind::BF16,
            connectivity: options.connectivity,
            expansion_add: options.expansion_add,
            expansion_search: options.expansion_search,
            multi: false,
        })?;
        index.reserve_capacity_and_threads(vectors.rows, threads)?;
        let mut vector = vec![0.0; vectors.dims];
        for row in 0..vectors.rows {
            vector.copy_from_slice(vectors.row(row));
            normalise(&mut vector);
            index.add(row as u64, &vector)?;
        }
        Ok(Self { index, build_time: begun.elapsed() })
    }

    /// The keys of the `count` nearest.
    ///
    /// # Errors
    /// usearch's.
    pub fn search(&self, query: &[f32], count: usize) -> Outcome<Vec<u64>> {
        Ok(self.index.search(query, count)?.keys)
    }

    /// The keys of the `count` nearest of those that pass.
    ///
    /// # Errors
    /// usearch's.
    pub fn filtered_search(&self, query: &[f32], count: usize, passes: impl Fn(u64) -> bool) -> Outcome<Vec<u64>> {
        Ok(self.index.filtered_search(query, count, passes)?.keys)
    }
}
