//! Immutable index units of a shard. Sealed segments (files, with graphs) and live ones (in memory, without) are built by
//! the same builder and read by the same code.

mod builder;
mod error;
mod file_names;
mod output;
mod payload;
mod row_table;
mod segment;
mod source;

pub use builder::{BuiltFile, BuiltSegment, SegmentBuilder};
pub use error::SegmentError;
pub use file_names::FORMAT_VERSION;
pub use output::Destination;
pub use row_table::RowTable;
pub use segment::{Segment, SegmentBlobs};
pub use source::{BuildRow, merge_segments};
