//! A stored graph, opened for searching.
//!
//! Not for changing: usearch's mutators crash on a viewed index, so this type shows none. Invariants: the bytes outlive
//! the index that points into them; a search depends on the query, the graph, the depth and the predicate alone.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use usearch::Index;

use crate::attributes::RowSet;
use crate::graph::encoder::Encoder;
use crate::graph::footer::Footer;
use crate::graph::{GraphError, GraphParams};
use crate::mapped::Blob;

/// Which nodes a search may give.
#[derive(Clone, Copy)]
pub enum Admitted<'a> {
    /// Every node.
    All,
    /// Nodes whose slots are in the set.
    Among(&'a RowSet),
    /// Nodes whose slots the predicate lets pass: dearer, since it may panic.
    By(&'a dyn Fn(u32) -> bool),
}

/// A graph over the bytes of its file. Reading it copies no vectors; usearch keeps some 64 bytes of heap a node.
pub struct Graph {
    // Declared, and so dropped, before the bytes that it points into.
    index: Index,
    _bytes: Blob,
    encoder: Encoder,
    dims: usize,
    count: usize,
    strays: Vec<u32>,
}

impl Graph {
    /// Opens a graph of `expected_count` nodes for up to `threads` searches at once.
    ///
    /// The caller has compared the file's length and checksum with the manifest: usearch does not survive damaged bytes.
    ///
    /// # Errors
    /// [`GraphError::Corrupt`] and [`GraphError::Mismatch`] where the file is not a graph of these parameters,
    /// [`GraphError::Library`] where usearch refuses it.
    pub fn open(blob: Blob, params: &GraphParams, expected_count: usize, threads: usize) -> Result<Self, GraphError> {
        let count = u32::try_from(expected_count).map_err(|_| GraphError::Corrupt { reason: "too many nodes" })?;
        let (index_len, footer) = Footer::read(&blob, params, count)?;
        let encoder =
            Encoder::with_scale(*params, footer.scale).ok_or(GraphError::Corrupt { reason: "impossible scale" })?;
        let bytes = blob.slice(0..index_len).ok_or(GraphError::Corrupt { reason: "shorter than its footer says" })?;
        check_metadata(&bytes, params, &footer)?;

        let index = Index::new(&params.options(footer.distance)).map_err(GraphError::library("make an index"))?;
        // A view keeps the number of threads that was reserved before it.
        index
            .reserve_capacity_and_threads(0, threads.max(1))
            .map_err(GraphError::library("reserve threads for searching"))?;
        // SAFETY: the index points into `bytes` from here on. A Blob's bytes never move or change while a handle to them
        // lives; the handle is kept beside the index, private, and dropped after it.
        unsafe { index.view_from_buffer(&bytes) }.map_err(GraphError::library("view the index"))?;
        // A viewed index has forgotten the setting, which must not outweigh the depth asked for.
        index.change_expansion_search(1);
        if let Some(distance) = params.search_kind() {
            index.change_metric_kind(distance).map_err(GraphError::library("set the distance"))?;
        }
        expect("number of nodes", expected_count, index.size())?;
        expect("number of dimensions", params.dims, index.dimensions())?;
        Ok(Self { index, _bytes: bytes, encoder, dims: params.dims, count: expected_count, strays: footer.strays })
    }

    /// Nodes in the graph.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the graph has no nodes; a graph that was built has some.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Slots of nodes, ascending, that searches are not sure to find: a caller scores them besides.
    pub fn strays(&self) -> &[u32] {
        &self.strays
    }

    /// The slots of up to `depth` nodes near `query`, nearest first as the graph measures it, of those that are
    /// `admitted`. Fewer where fewer pass, or where dead ends hide the rest.
    ///
    /// # Errors
    /// [`GraphError::Mismatch`] for a query of another number of elements; [`GraphError::Library`] where more searches
    /// are under way than threads were reserved; [`GraphError::PredicatePanicked`].
    pub fn search(&self, query: &[f32], depth: usize, admitted: Admitted<'_>) -> Result<Vec<u32>, GraphError> {
        expect("number of dimensions", self.dims, query.len())?;
        let query = self.encoder.encode_query(query);
        // usearch allocates what is asked for, whatever the index holds.
        let depth = depth.clamp(1, self.count.max(1));
        let panicked = Cell::new(false);
        let found = match admitted {
            Admitted::All => query.search(&self.index, depth),
            Admitted::Among(nodes) => query.filtered_search(&self.index, depth, |slot| nodes.contains(slot)),
            // A panic must not unwind into C++: that ends the process.
            Admitted::By(predicate) => query.filtered_search(&self.index, depth, |slot| {
                !panicked.get()
                    && catch_unwind(AssertUnwindSafe(|| predicate(slot))).unwrap_or_else(|_| {
                        panicked.set(true);
                        false
                    })
            }),
        };
        if panicked.get() {
            return Err(GraphError::PredicatePanicked);
        }
        found
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("dims", &self.dims).field("count", &self.count).finish_non_exhaustive()
    }
}

/// Compares the index's own header with what is expected, before usearch follows anything in it.
fn check_metadata(bytes: &[u8], params: &GraphParams, footer: &Footer) -> Result<(), GraphError> {
    let metadata = Index::metadata_from_buffer(bytes).map_err(GraphError::library("read the index's header"))?;
    expect("number of dimensions", params.dims as u64, metadata.dimensions)?;
    expect("distance", footer.distance, metadata.metric)?;
    expect("element type", params.scalar_kind(), metadata.quantization)?;
    expect("number of nodes", u64::from(footer.count), metadata.count_present)?;
    expect("number of removed nodes", 0, metadata.count_deleted)?;
    expect("kind of keys", false, metadata.multi)
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &'static str, expected: T, found: T) -> Result<(), GraphError> {
    if expected == found {
        return Ok(());
    }
    Err(GraphError::Mismatch { what, expected: format!("{expected:?}"), found: format!("{found:?}") })
}
