//! Views: one consistent set of segments and tombstones that a search runs on, and the pure steps from one to the next.
//!
//! INV-4: over the segments of a view a folded key is live in at most one row.
//! INV-5: a view never changes; a write, a fold or a manifest makes another.

mod apply;
mod fold;
mod install;
mod segment_view;
mod view;
mod view_table;

pub(crate) use apply::wire_metric;
pub use apply::{Applied, OpGroup, apply};
pub use fold::fold;
pub use install::{install, tombstones_by_ops};
pub use segment_view::{FieldTotals, SegmentView};
pub use view::{RowAddress, View};
pub use view_table::ViewTable;
