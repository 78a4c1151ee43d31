//! The layout of the object store, the only place where Antiphon's data lives: shared by nodes and coordinators.
//!
//! - [`Store`] is the store itself: objects created if absent, read, listed, deleted; whole files up and down.
//! - [`Log`] and [`LogCursor`]: one shard's durable writes, ordered by create-if-absent.
//! - [`Manifests`]: one shard's sealed segments. [`CatalogStore`]: all collections.
//! - [`backup`]: copies of collections in another store, and back.
//!
//! The layout is described in docs/formats/store-layout.md, the bytes of objects in docs/formats/objects.md. This crate
//! knows neither schemas nor segments' contents, and keeps nothing on local disk.

pub mod backup;
pub mod catalog;
pub mod cursor;
pub mod error;
pub mod failing;
pub mod frame;
mod framed;
pub mod ids;
mod local;
mod local_dir;
pub mod log;
pub mod manifest;
pub mod manifest_check;
mod moment;
pub mod object;
mod open;
mod path;
pub mod pieces;
pub mod retention;
mod retry;
mod transfer;

pub use catalog::{CatalogStore, UpdateError, VersionedCatalog};
pub use cursor::{LogCursor, LogPoll, Written};
pub use error::{StoreError, StoreErrorKind};
pub use ids::{CatalogVersion, CollectionUid, ManifestVersion, SegmentId, Seq, ShardId};
pub use log::{Append, Log};
pub use manifest::{Commit, Manifests};
pub use manifest_check::{ManifestFault, check_manifest};
pub use object::{Created, Limits, Listed, Store};
pub use pieces::FileSum;
pub use retention::{FENCE_AFTER, LOG_GRACE, LogRetention};
