//! Builds the graph of one vector field of one segment, on one thread.
//!
//! Not for searching. Invariants: the same vectors in the same order give the same bytes on one kind of processor; a
//! finished graph holds every vector that was added, and finds each by itself or lists it as a stray.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use usearch::{Index, MetricKind};

use crate::graph::encoder::Encoder;
use crate::graph::footer::Footer;
use crate::graph::{GraphError, GraphParams, repair};
use crate::vectors::{Extent, Metric, norm};

/// A graph being built.
pub struct GraphBuilder {
    params: GraphParams,
    encoder: Encoder,
    index: Index,
    slots: Vec<u32>,
    /// The vectors' lengths, in the order of the slots, where they matter.
    lengths: Vec<f32>,
}

impl GraphBuilder {
    /// Begins a graph for about `capacity` vectors, none beyond `extent` (see [`crate::vectors::VectorFile::extent`]).
    ///
    /// # Errors
    /// [`GraphError::Library`] for parameters that usearch does not take, or when memory runs out.
    pub fn new(params: &GraphParams, capacity: usize, extent: Extent) -> Result<Self, GraphError> {
        Ok(Self {
            params: *params,
            encoder: Encoder::for_extent(*params, extent),
            index: empty_index(params, params.metric_kind(), capacity)?,
            slots: Vec::with_capacity(capacity),
            lengths: Vec::new(),
        })
    }

    /// Adds the vector of `slot`. Slots are unlike one another, and so are the vectors (see
    /// [`crate::vectors::VectorFile::is_graph_node`]).
    ///
    /// # Errors
    /// [`GraphError::Mismatch`] for another number of elements, [`GraphError::Library`] when usearch refuses.
    pub fn add(&mut self, slot: u32, vector: &[f32]) -> Result<(), GraphError> {
        if vector.len() != self.params.dims {
            return Err(GraphError::Mismatch {
                what: "number of dimensions",
                expected: self.params.dims.to_string(),
                found: vector.len().to_string(),
            });
        }
        if self.slots.len() >= self.index.capacity() {
            let capacity = self.index.capacity().max(64).saturating_mul(2);
            reserve(&self.index, capacity)?;
        }
        self.encoder.encode_vector(vector).add_to(&self.index, slot)?;
        self.slots.push(slot);
        if self.params.metric == Metric::Dot {
            self.lengths.push(norm(vector));
        }
        Ok(())
    }

    /// Checks the graph as [`GraphBuilder::check`] does, and gives its file's bytes.
    ///
    /// # Errors
    /// As [`GraphBuilder::check`].
    pub fn finish(self) -> Result<Vec<u8>, GraphError> {
        self.check()?.to_bytes()
    }

    /// Checks that every vector is found by itself, mends the graph where one is not, and lists as strays those for which
    /// that does not help (see [`crate::graph::Graph::strays`]). Takes some tenth of the time that adding took; where the
    /// graph has to be built anew, about twice that time.
    ///
    /// # Errors
    /// [`GraphError::Empty`]; [`GraphError::Unreachable`] where too many strays are left: the caller does without a
    /// graph; [`GraphError::Library`].
    pub fn check(self) -> Result<BuiltGraph, GraphError> {
        if self.slots.is_empty() {
            return Err(GraphError::Empty);
        }
        if self.index.size() != self.slots.len() {
            return Err(GraphError::Mismatch {
                what: "number of nodes",
                expected: self.slots.len().to_string(),
                found: self.index.size().to_string(),
            });
        }
        let checked = repair::make_findable(self.index, &self.params, &self.slots, &self.lengths)?;
        let footer = Footer {
            // Slots are u32 and unlike one another, so they can be counted by one.
            count: self.slots.len() as u32,
            scale: self.encoder.scale(),
            distance: checked.index.metric_kind(),
            strays: checked.strays,
        };
        Ok(BuiltGraph { index: checked.index, footer: footer.to_bytes(&self.params), num_strays: footer.strays.len() })
    }
}

impl std::fmt::Debug for GraphBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphBuilder").field("params", &self.params).field("num_nodes", &self.slots.len()).finish()
    }
}

/// A checked graph, ready to be stored.
pub struct BuiltGraph {
    index: Index,
    footer: Vec<u8>,
    num_strays: usize,
}

impl BuiltGraph {
    /// Vectors that searches of the graph do not find; each search scores them besides.
    pub fn num_strays(&self) -> usize {
        self.num_strays
    }

    /// The graph file's bytes.
    ///
    /// # Errors
    /// [`GraphError::Library`] when memory runs out.
    pub fn to_bytes(&self) -> Result<Vec<u8>, GraphError> {
        let mut bytes = vec![0; self.index.serialized_length()];
        self.index.save_to_buffer(&mut bytes).map_err(GraphError::library("serialize the index"))?;
        bytes.extend_from_slice(&self.footer);
        Ok(bytes)
    }

    /// Writes the graph file to `path` without a copy in memory, replacing what is there. Does not sync it.
    ///
    /// # Errors
    /// [`GraphError::Library`] or [`GraphError::Io`] when the file cannot be written.
    pub fn write_to(&self, path: &Path) -> Result<(), GraphError> {
        let name = path.to_str().ok_or_else(|| std::io::Error::from(std::io::ErrorKind::InvalidFilename))?;
        self.index.save(name).map_err(GraphError::library("write the index"))?;
        let mut file = OpenOptions::new().append(true).open(path)?;
        if file.metadata()?.len() != self.index.serialized_length() as u64 {
            return Err(GraphError::Corrupt { reason: "the written index is not whole" });
        }
        file.write_all(&self.footer)?;
        Ok(())
    }
}

impl std::fmt::Debug for BuiltGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuiltGraph").field("num_nodes", &self.index.size()).finish()
    }
}

/// An index without vectors, for one thread.
pub(super) fn empty_index(params: &GraphParams, distance: MetricKind, capacity: usize) -> Result<Index, GraphError> {
    let index = Index::new(&params.options(distance)).map_err(GraphError::library("make an index"))?;
    reserve(&index, capacity)?;
    Ok(index)
}

fn reserve(index: &Index, capacity: usize) -> Result<(), GraphError> {
    index.reserve_capacity_and_threads(capacity.max(1), 1).map_err(GraphError::library("reserve memory"))
}
