//! Attributes: a column of sorted values for each, and the rows of a segment that meet a filter.
//!
//! Not for storing documents: values are returned from their payload. One builder and one reader for live and sealed
//! segments. Row numbers are those of the segment (INV-3).

mod column;
mod column_builder;
mod evaluate;
mod matches;
mod row_set;
mod selection;

pub use column::{Column, ColumnError};
pub use column_builder::ColumnBuilder;
pub use evaluate::evaluate;
pub use matches::{Matches, NodeSet};
pub use row_set::RowSet;
pub use selection::Selection;

#[cfg(test)]
mod evaluate_tests;
