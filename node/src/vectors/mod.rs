//! Vectors of a field: their file, the score, and the exact scan.
//!
//! Not for the graph, which lives in [`crate::graph`] and only proposes candidates. Invariant: whatever the graph holds, a
//! score comes from the float32 rows as sent, by one kernel of one summation order.

mod element;
mod extent;
mod file;
mod floats;
pub mod kernel;
mod layout;
mod metric;
mod top;
mod window;
mod writer;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod window_tests;

pub use element::ElementType;
pub(crate) use element::INT8_MAX;
pub use extent::Extent;
pub use file::{VectorFile, VectorFileError};
pub use metric::{Metric, Scorer, norm};
pub use window::{VectorError, vector_window};
pub use writer::{VectorFileBuilder, VectorFileParams, vector_file_in_memory};
