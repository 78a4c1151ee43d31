//! One shard on this node: its log, its views, and the background work that turns one into the other.
//!
//! - [`Shard`]: the handle; reads and writes.
//! - `core`: the state that writer and background work share, and its transitions.
//! - `writer`: group commit. `seal`, `merge`, `garbage`: background work. `recover`: opening.
//! - `follow`: what others wrote, sealed and merged. `rebuild`: views of other nodes.
//! - `merge_policy`: which segments to merge, a pure function.

mod core;
#[cfg(test)]
mod filter_tests;
mod follow;
mod garbage;
mod maintain;
mod manifest_entry;
mod merge;
mod merge_policy;
mod rebuild;
mod recover;
mod seal;
mod segment_files;
mod shard;
#[cfg(test)]
mod shard_tests;
mod writer;

pub use shard::{Shard, ShardContext};
pub use writer::WriteDone;
