//! A node among others: which shards it holds and owns, and what it tells the others of them.
//!
//! - `steward`: opens and closes shards as the members come and go, and announces them.
//! - `outbox`: log entries on their way to the other nodes that hold a shard.
//!
//! All of it is a hint. A node that believes that it owns a shard seals and merges it; should two believe so, the store's
//! create-if-absent lets one of them win, and the other has worked in vain.

mod outbox;
mod steward;

pub(crate) use outbox::{Outbox, Peers};
pub(crate) use steward::{Steward, Wanted};
