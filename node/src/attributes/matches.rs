//! What a filter finds in a segment: the living rows that meet it, and, once a graph is searched among them, its nodes.
//!
//! Not for evaluating filters. Invariant: made once and never changed, so that searches can share it.

use std::sync::OnceLock;

use super::{RowSet, Selection};

/// The rows that a filter leaves of a segment, as one view sees it.
#[derive(Debug)]
pub struct Matches {
    rows: RowSet,
    len: u32,
    /// For each vector field.
    nodes: Vec<OnceLock<NodeSet>>,
}

/// The nodes of a graph that stand for rows that may be found, by slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSet {
    /// The nodes' slots.
    pub slots: RowSet,
    /// How many they are.
    pub len: u32,
}

impl Matches {
    /// Of these rows, in a segment with so many vector fields.
    pub fn new(rows: RowSet, num_vector_fields: usize) -> Self {
        let len = rows.len();
        let mut nodes = Vec::new();
        nodes.resize_with(num_vector_fields, OnceLock::new);
        Self { rows, len, nodes }
    }

    /// The rows.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// How many they are.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same as a search takes it.
    pub fn selection(&self) -> Selection<'_> {
        Selection::Only { rows: &self.rows, len: self.len }
    }

    /// Where the nodes of a field's graph are kept.
    pub fn nodes(&self, field: usize) -> Option<&OnceLock<NodeSet>> {
        self.nodes.get(field)
    }

    /// Bytes of memory that it takes at most: slots are no more than rows.
    pub fn max_size_bytes(&self) -> usize {
        size_of::<Self>() + (1 + self.nodes.len()) * (self.rows.size_bytes() + size_of::<OnceLock<NodeSet>>())
    }
}
