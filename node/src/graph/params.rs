//! What a graph is built and opened with, and what can go wrong.
//!
//! Not for anything that depends on usearch's types: nothing of it shows outside this folder.

use std::error::Error;
use std::io;

use usearch::{IndexOptions, MetricKind, ScalarKind};

use crate::vectors::{ElementType, Metric};

/// The kind of a graph: fixed by the field's schema, the same when it is built and when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphParams {
    /// Elements of the field's vectors.
    pub dims: usize,
    /// How they are compared.
    pub metric: Metric,
    /// What the graph holds of them.
    pub element: ElementType,
    /// Links of a node on the upper levels; twice as many on the base level.
    pub connectivity: usize,
    /// Candidates that are looked at for the links of a new node.
    pub expansion_add: usize,
}

impl GraphParams {
    /// The distance that graphs are built with at first; see `repair` for the other.
    pub(super) fn metric_kind(&self) -> MetricKind {
        match (self.element, self.metric) {
            (ElementType::Bit, _) => MetricKind::Hamming,
            // Whole numbers cannot be rounded to unit length, as the inner product would need.
            (ElementType::Int8, _) => MetricKind::L2sq,
            (_, Metric::Cosine) => MetricKind::IP,
            (_, Metric::Dot | Metric::Euclidean | Metric::Hamming) => MetricKind::L2sq,
        }
    }

    /// The distance that graphs are searched with, where it is not the one that they were built with.
    pub(super) fn search_kind(&self) -> Option<MetricKind> {
        // A query of whole numbers has no room to be far out in its direction (see `encoder`); by inner product it needs none.
        (self.element == ElementType::Int8 && self.metric == Metric::Dot).then_some(MetricKind::IP)
    }

    pub(super) fn scalar_kind(&self) -> ScalarKind {
        match self.element {
            ElementType::Float32 => ScalarKind::F32,
            ElementType::Float16 => ScalarKind::F16,
            ElementType::BFloat16 => ScalarKind::BF16,
            ElementType::Int8 => ScalarKind::I8,
            ElementType::Bit => ScalarKind::B1,
        }
    }

    pub(super) fn options(&self, metric: MetricKind) -> IndexOptions {
        IndexOptions {
            dimensions: self.dims,
            metric,
            quantization: self.scalar_kind(),
            connectivity: self.connectivity,
            expansion_add: self.expansion_add,
            // usearch searches with the greater of this and the count asked for; only the count may decide.
            expansion_search: 1,
            multi: false,
        }
    }
}

/// Why a graph could not be built, opened or searched.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// usearch refused. With a search this means more searches at once than threads were reserved for.
    #[error("usearch could not {action}")]
    Library {
        /// What was tried.
        action: &'static str,
        /// What it said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A vector, or a graph, of another shape than the parameters say.
    #[error("the graph has another {what}: expected {expected}, found {found}")]
    Mismatch {
        /// What differs.
        what: &'static str,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The bytes are no graph of ours, or not all of one.
    #[error("the graph file is damaged: {reason}")]
    Corrupt {
        /// What was found.
        reason: &'static str,
    },
    /// Too many vectors cannot be found by themselves, even after repair: do without a graph.
    #[error("{lost} of {count} vectors cannot be found in the graph")]
    Unreachable {
        /// Vectors that are not found.
        lost: usize,
        /// Vectors in the graph.
        count: usize,
    },
    /// A graph needs a vector.
    #[error("a graph of no vectors")]
    Empty,
    /// The file could not be written.
    #[error("the graph file could not be written")]
    Io {
        /// What the system said.
        #[from]
        source: io::Error,
    },
    /// The predicate panicked; the search was given up.
    #[error("the predicate of a graph search panicked")]
    PredicatePanicked,
}

impl GraphError {
    pub(super) fn library<E: Error + Send + Sync + 'static>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Library { action, source: Box::new(source) }
    }
}
