//! Taking a backup: of each shard the newest manifest and the log beyond it, as a node that opens the shard reads them.

use std::collections::HashSet;

use antiphon_proto::store::{Backup, Catalog, CollectionEntry, Manifest, ShardBackup};

use super::{Backups, Copied, Copier, Wanted, object_path, wanted_files};
use crate::catalog::CatalogStore;
use crate::cursor::{LogCursor, LogPoll};
use crate::error::{StoreError, StoreErrorKind};
use crate::frame::Kind;
use crate::framed::{self, Outcome};
use crate::ids::{CollectionUid, SegmentId, Seq, ShardId};
use crate::log::{Append, Log};
use crate::manifest::Manifests;
use crate::object::Store;

/// How often a shard may be sealed, or its garbage collected, past the copying of it.
const MAX_ATTEMPTS: usize = 8;
/// Entries held in memory at once.
const ENTRIES_AT_ONCE: usize = 32;

impl Backups {
    /// Takes a backup of a collection of `source`, by the collection's own name. `name` must be new.
    ///
    /// Each shard is the state after some entry of its log, and holds every write that was acknowledged before this call
    /// began. Of writes during the call each may be in it or not; one shard may be of a later moment than another.
    ///
    /// # Errors
    /// `Invalid` where there is no such collection, or a backup of this name; `Unavailable` where the source went on faster
    /// than it could be read. Nothing that can be seen was made, and what was copied need not be copied again.
    pub async fn take(
        &self,
        source: &Store,
        collection: &str,
        name: &str,
        copier: &Copier,
    ) -> Result<(Backup, Copied), StoreError> {
        let _one_at_a_time = self.busy.lock().await;
        let path = object_path(name)?;
        if self.store.get(&path).await?.is_some() {
            return Err(exists(name));
        }
        let catalog = CatalogStore::new(source.clone());
        let found = entry_of(&catalog.refresh().await?.catalog, |found| found.name == collection);
        let (uid, num_shards) = match found.and_then(|entry| entry.collection) {
            Some(found) => (found.uid.parse::<CollectionUid>()?, found.shard_count),
            None => return Err(no_collection(collection)),
        };
        let (mut shards, mut copied) = (Vec::new(), Copied::default());
        for number in 0..num_shards {
            let shard = ShardId::new(uid.clone(), number)?;
            shards.push(self.take_shard(source, &shard, copier, &mut copied).await?);
        }
        // Read last: it knows every field that the shards have, for the catalog learns of them first. And a collection that
        // was deleted meanwhile may have looked empty.
        let entry = entry_of(&catalog.refresh().await?.catalog, |found| found.uid == uid.as_str());
        let entry = entry.ok_or_else(|| no_collection(collection))?;
        #[expect(clippy::disallowed_methods, reason = "told to people, compared with nothing")]
        let create_time = Some(std::time::SystemTime::now().into());
        let backup = Backup { name: name.to_owned(), create_time, collection: Some(entry), shards };
        match framed::create(&self.store, &path, Kind::Backup, &backup).await? {
            Outcome::Created => Ok((backup, copied)),
            Outcome::Taken(_) => Err(exists(name)),
        }
    }

    async fn take_shard(
        &self,
        source: &Store,
        shard: &ShardId,
        copier: &Copier,
        copied: &mut Copied,
    ) -> Result<ShardBackup, StoreError> {
        let mut missing = None;
        for _ in 0..MAX_ATTEMPTS {
            match self.try_shard(source, shard, copier, copied).await {
                Ok(Some(state)) => return Ok(state),
                // The log, or a segment, was collected meanwhile: there is a newer manifest.
                Ok(None) => {}
                Err(error) if error.kind() == StoreErrorKind::NotFound => {
                    tracing::info!(%shard, %error, "beginning the shard again from its newest manifest");
                    missing = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        // Missing each time: it was lost, and its name says more than that the shard changed.
        Err(missing.unwrap_or_else(|| StoreError::Unavailable {
            path: shard.path(),
            reason: format!("it changed {MAX_ATTEMPTS} times while it was copied"),
            source: None,
        }))
    }

    async fn try_shard(
        &self,
        source: &Store,
        shard: &ShardId,
        copier: &Copier,
        copied: &mut Copied,
    ) -> Result<Option<ShardBackup>, StoreError> {
        let (log, kept) = (Log::new(source.clone(), shard.clone()), Log::new(self.store.clone(), shard.clone()));
        let manifests = Manifests::new(source.clone(), shard.clone());
        let (newest, mut cursor) = LogCursor::open(log.clone(), manifests).await?;
        let manifest = newest.map(|(_, manifest)| manifest);
        let covered = manifest.as_ref().map_or(0, |manifest| manifest.covered_seq);
        let needed = manifest.as_ref().map_or(0, |manifest| manifest.tombstone_seq);
        // The log's end, once: whoever writes on does not keep this from ending.
        let end = log.positions_after(Seq(covered)).await?.last().map_or(covered, |seq| seq.0);
        if end < needed {
            return Ok(None);
        }
        let mut entries = 0;
        // INV-17: the last covered entry goes along.
        let mut first = covered.saturating_add(1);
        if let Some(witness) = log.read(Seq(covered)).await?.filter(|_| covered > 0) {
            keep(&kept, Seq(covered), &witness).await?;
            (first, entries) = (covered, 1);
        }
        while cursor.next().0 <= end {
            match cursor.poll(ENTRIES_AT_ONCE).await? {
                LogPoll::Behind => return Ok(None),
                LogPoll::Entries(found) if found.is_empty() => return Ok(None),
                LogPoll::Entries(found) => {
                    for (seq, entry) in found.iter().filter(|(seq, _)| seq.0 <= end) {
                        keep(&kept, *seq, entry).await?;
                        entries += 1;
                    }
                }
            }
        }
        let state = ShardBackup { manifest, first_seq: first, last_seq: end };
        let (missing, there) = self.missing(shard, &state).await?;
        let (files, bytes) = (missing.len() as u64, missing.iter().map(|file| file.sum.size_bytes).sum::<u64>());
        let missing = missing.into_iter().map(|file| (file.clone(), file.path)).collect();
        copier.copy_all(source, &self.store, missing).await?;
        copied.files += files;
        copied.bytes += bytes;
        copied.files_there += there;
        copied.entries += entries;
        Ok(Some(state))
    }

    /// The files that are not here yet, and how many are. A file is here whole or not at all, and its path never means
    /// another; that its bytes are still those written is for [`Backups::verify`].
    async fn missing(&self, shard: &ShardId, state: &ShardBackup) -> Result<(Vec<Wanted>, u64), StoreError> {
        let segments = state.manifest.as_ref().map_or(&[][..], |manifest: &Manifest| manifest.segments.as_slice());
        let mut here = HashSet::new();
        for segment in segments {
            let id: SegmentId = segment.id.parse()?;
            let listed = self.store.list(&id.path(shard), None).await?;
            here.extend(listed.into_iter().map(|object| (id.clone(), object.name, object.size_bytes)));
        }
        let is_here = |file: &Wanted| here.contains(&(file.segment.clone(), file.name.clone(), file.sum.size_bytes));
        let (there, missing): (Vec<_>, Vec<_>) = wanted_files(shard, state)?.into_iter().partition(is_here);
        Ok((missing, there.len() as u64))
    }
}

async fn keep(log: &Log, seq: Seq, entry: &antiphon_proto::store::LogEntry) -> Result<(), StoreError> {
    match log.append(seq, entry).await? {
        Append::Appended => Ok(()),
        Append::Taken(_) => {
            let path = format!("{}/log/{}", log.shard().path(), seq.name());
            Err(StoreError::corrupt(path, "the store of backups has another entry at this position"))
        }
    }
}

fn entry_of(catalog: &Catalog, wanted: impl Fn(&antiphon_proto::v1::Collection) -> bool) -> Option<CollectionEntry> {
    catalog.collections.iter().find(|entry| entry.collection.as_ref().is_some_and(&wanted)).cloned()
}

fn exists(name: &str) -> StoreError {
    StoreError::invalid(format!("backup name {name:?}"), "a backup of this name is there already")
}

fn no_collection(name: &str) -> StoreError {
    StoreError::invalid(format!("collection {name:?}"), "the store has no collection of this name")
}
