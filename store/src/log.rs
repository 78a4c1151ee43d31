//! [`Log`]: one shard's write batches, one object each, ordered by create-if-absent.
//!
//! The bare operations. Whether an append at some position is *in effect*, or came to a position that was collected long
//! ago, they don't know: use [`crate::LogCursor`] to write and to follow.
//!
//! Invariants: an entry is never changed. No entry exists before its predecessor existed, so the log has no holes above
//! what was collected.

use antiphon_proto::store::LogEntry;

use crate::error::StoreError;
use crate::frame::{Kind, Nonce};
use crate::framed::{self, Outcome};
use crate::ids::{Seq, ShardId};
use crate::object::Store;

/// What is at the position after [`Log::append`].
#[derive(Debug, Clone, PartialEq)]
pub enum Append {
    /// This entry.
    Appended,
    /// Another: of another writer, or an earlier one of this writer whose outcome was unknown. Apply it, and try the next
    /// position.
    Taken(Box<LogEntry>),
}

/// The log of one shard.
#[derive(Debug, Clone)]
pub struct Log {
    store: Store,
    shard: ShardId,
    prefix: String,
}

impl Log {
    /// The log of `shard`; makes no request.
    pub fn new(store: Store, shard: ShardId) -> Self {
        let prefix = format!("{}/log", shard.path());
        Self { store, shard, prefix }
    }

    /// Whose log it is.
    pub fn shard(&self) -> &ShardId {
        &self.shard
    }

    /// A nonce for a new entry.
    pub fn new_nonce() -> Vec<u8> {
        rand::random::<Nonce>().to_vec()
    }

    /// Creates `entry` at exactly `seq`, where the caller has seen every entry before. The entry's nonce must be its own
    /// ([`Log::new_nonce`]): by it a second call with the same entry finds that the first one did it.
    ///
    /// # Errors
    /// After `Unavailable` the entry may be there, now or later. The caller must come back to **the same** `seq`, with
    /// this entry or any other: create-if-absent then decides.
    pub async fn append(&self, seq: Seq, entry: &LogEntry) -> Result<Append, StoreError> {
        if seq == Seq(0) {
            return Err(StoreError::invalid("log position", "the first is 1"));
        }
        if entry.nonce.len() != size_of::<Nonce>() {
            return Err(StoreError::invalid("log entry", "the nonce must have 16 bytes"));
        }
        match framed::create(&self.store, &self.path(seq), Kind::Log, entry).await? {
            Outcome::Created => Ok(Append::Appended),
            Outcome::Taken(found) if found == *entry => Ok(Append::Appended),
            Outcome::Taken(found) => Ok(Append::Taken(Box::new(found))),
        }
    }

    /// Reads the entry at `seq`; nothing if there is none (yet, or any more).
    pub async fn read(&self, seq: Seq) -> Result<Option<LogEntry>, StoreError> {
        framed::read(&self.store, &self.path(seq), Kind::Log).await
    }

    /// The positions after `seq` that have an entry, in order. What else lies there is passed over.
    pub async fn positions_after(&self, seq: Seq) -> Result<Vec<Seq>, StoreError> {
        let listed = self.store.list(&self.prefix, Some(&seq.name())).await?;
        Ok(listed.iter().filter_map(|object| Seq::from_name(&object.name)).collect())
    }

    /// Deletes the entries through `seq`, the oldest first. Only for entries that are due by [`crate::LogRetention`], and
    /// never the last of them: it shows how far the log went, should the manifest that covers it be lost.
    /// Returns how many there were.
    pub async fn delete_through(&self, seq: Seq) -> Result<u64, StoreError> {
        let mut deleted = 0;
        for object in self.store.list(&self.prefix, None).await? {
            match Seq::from_name(&object.name) {
                Some(found) if found <= seq => self.store.delete(&self.path(found)).await?,
                Some(_) => break,
                None => continue,
            }
            deleted += 1;
        }
        Ok(deleted)
    }

    fn path(&self, seq: Seq) -> String {
        format!("{}/{}", self.prefix, seq.name())
    }
}
