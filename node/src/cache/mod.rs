//! The disk of a node as a bounded cache of segment files, and the place where segments are built.
//!
//! Files of segments that a local store has are mapped where they lie and are not here; their builds are. What is found at
//! the start is used again; a file is verified whenever it is mapped, and fetched again where it is damaged.
//!
//! - [`SegmentCache`]: the whole. [`Lease`]: a segment in use, which keeps its room. [`BuildRoom`]: room for a build.
//! - `ledger`: which segments are held and which go, numbers alone. `folder`: one node's folder. `fetch`: downloads.
//!
//! Invariants: bytes held and promised stay within the limit; files of a segment that a view has open are not dropped to
//! make room. INV-7: a file gets its name when it is whole, by a rename, and a name that holds a damaged file is given up
//! before it is taken again, so no mapped byte ever changes.

mod cache;
mod fetch;
mod folder;
mod key;
mod ledger;
mod usage;

pub use cache::{BuildRoom, CacheConfig, Lease, SegmentCache};
pub(crate) use fetch::FetchError;
pub use key::CacheKey;
pub use usage::CacheUsage;
