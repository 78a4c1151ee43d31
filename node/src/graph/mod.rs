//! Approximate nearest neighbours: the only folder that knows usearch.
//!
//! Not for scores: a graph proposes candidates, [`crate::vectors`] scores them. Invariants: a graph is built by one
//! thread, checked, and never changed afterwards; nothing of usearch's types, crashes or panics shows outside.

mod builder;
mod code;
mod encoder;
mod footer;
#[expect(clippy::module_inception, reason = "the folder is named for what it is about, the file for its main type")]
mod graph;
mod params;
mod repair;

#[cfg(test)]
mod encoder_tests;
#[cfg(test)]
mod graph_tests;

pub use crate::vectors::ElementType;
pub use builder::{BuiltGraph, GraphBuilder};
pub use graph::{Admitted, Graph};
pub use params::{GraphError, GraphParams};
