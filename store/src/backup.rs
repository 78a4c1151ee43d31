//! [`Backups`]: copies of collections in a store of their own, taken from one store and restored into another.
//!
//! The store of backups has the layout of any other, without catalog and manifests: segment files and log entries lie
//! under the paths that the source gave them, which are never used for anything else, so whatever lies there is the same
//! file. Manifests are in the backup's own object.
//!
//! Not here: schemas and the contents of segments, which go as they are.
//!
//! Invariant: a backup is there once its object `backups/<name>` is, which is created last. Nothing is written over.

mod files;
mod restore;
mod take;

use antiphon_proto::store::{Backup, SegmentEntry, SegmentFile, ShardBackup};
use tokio::sync::Mutex;

use crate::error::StoreError;
use crate::frame::Kind;
use crate::framed;
use crate::ids::{CollectionUid, SegmentId, Seq, ShardId};
use crate::log::Log;
use crate::object::Store;
use crate::path;

pub use files::Copier;
pub use restore::RestoreError;

const PREFIX: &str = "backups";
/// Log entries that one shard of a backup may have; no node lets so many wait unsealed.
const MAX_ENTRIES: u64 = 10_000_000;

/// What was copied, and what was there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Segment files copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Segment files that an earlier copy had brought.
    pub files_there: u64,
    /// Log entries that go with the backup.
    pub entries: u64,
}

/// The backups in one store. Don't delete a backup while another is taken into the same store: the one that is taken
/// counts on files that it found there.
#[derive(Debug)]
pub struct Backups {
    store: Store,
    /// One act at a time in this process.
    busy: Mutex<()>,
}

impl Backups {
    /// Those in `store`.
    ///
    /// # Errors
    /// `Invalid` if the store has a catalog: nodes delete from such a store.
    pub async fn open(store: Store) -> Result<Self, StoreError> {
        if !store.list("catalog", None).await?.is_empty() {
            let words =
                "it has a catalog, so it is a store that is served; backups need a store (or prefix) of their own";
            return Err(StoreError::invalid("store of backups", words));
        }
        Ok(Self { store, busy: Mutex::new(()) })
    }

    /// The names of the backups, sorted.
    pub async fn names(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.store.list(PREFIX, None).await?.into_iter().map(|object| object.name).collect())
    }

    /// One backup.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` where it is damaged.
    pub async fn get(&self, name: &str) -> Result<Backup, StoreError> {
        let path = object_path(name)?;
        match framed::read(&self.store, &path, Kind::Backup).await? {
            Some(backup) => Ok(backup),
            None => Err(StoreError::NotFound { path }),
        }
    }

    /// Reads all that a backup needs and compares checksums.
    ///
    /// # Errors
    /// `Corrupt` and `NotFound` name the first damaged or missing object.
    pub async fn verify(&self, name: &str, copier: &Copier) -> Result<Copied, StoreError> {
        let backup = self.get(name).await?;
        let mut seen = Copied::default();
        for (shard, state) in shards(&backup)? {
            let wanted = wanted_files(&shard, state)?;
            seen.files += wanted.len() as u64;
            seen.bytes += wanted.iter().map(|file| file.sum.size_bytes).sum::<u64>();
            copier.verify_all(&self.store, wanted).await?;
            let log = Log::new(self.store.clone(), shard);
            for seq in state.first_seq..=state.last_seq {
                entry(&log, Seq(seq)).await?;
                seen.entries += 1;
            }
        }
        Ok(seen)
    }

    /// Deletes a backup, and those of its objects that no other backup needs. Returns how many objects went. Where it stops
    /// half-way the backup is gone and some of its objects stay, to be used by a later backup of the collection.
    ///
    /// # Errors
    /// `NotFound`. `Corrupt` if another backup cannot be read, so that what it needs is unknown; nothing was deleted then.
    pub async fn delete(&self, name: &str) -> Result<u64, StoreError> {
        let _one_at_a_time = self.busy.lock().await;
        let mut going = object_paths(&self.get(name).await?)?;
        for other in self.names().await?.into_iter().filter(|other| other != name) {
            for needed in object_paths(&self.get(&other).await?)? {
                going.remove(&needed);
            }
        }
        self.store.delete(&object_path(name)?).await?;
        for path in &going {
            self.store.delete(path).await?;
        }
        Ok(going.len() as u64)
    }
}

/// A segment file that a manifest names, and its path in the source.
#[derive(Debug, Clone)]
struct Wanted {
    segment: SegmentId,
    name: String,
    path: String,
    sum: crate::pieces::FileSum,
}

fn wanted_files(shard: &ShardId, state: &ShardBackup) -> Result<Vec<Wanted>, StoreError> {
    let segments: &[SegmentEntry] = state.manifest.as_ref().map_or(&[], |manifest| manifest.segments.as_slice());
    let mut wanted = Vec::new();
    for segment in segments {
        let id: SegmentId = segment.id.parse()?;
        for SegmentFile { name, size_bytes, crc32 } in &segment.files {
            let sum = crate::pieces::FileSum { size_bytes: *size_bytes, crc32: *crc32 };
            let path = id.file_path(shard, name);
            wanted.push(Wanted { segment: id.clone(), name: name.clone(), path, sum });
        }
    }
    Ok(wanted)
}

/// The shards of a backup with their identity in the source.
fn shards(backup: &Backup) -> Result<Vec<(ShardId, &ShardBackup)>, StoreError> {
    let corrupt = |reason: String| StoreError::corrupt(format!("{PREFIX}/{}", backup.name), reason);
    let collection = backup.collection.as_ref().and_then(|entry| entry.collection.as_ref());
    let collection = collection.ok_or_else(|| corrupt("it names no collection".to_owned()))?;
    if collection.shard_count as usize != backup.shards.len() {
        return Err(corrupt(format!("{} shards of {}", backup.shards.len(), collection.shard_count)));
    }
    let uid: CollectionUid = collection.uid.parse()?;
    let states = (0..).zip(&backup.shards);
    let mut shards = Vec::new();
    for (number, state) in states {
        if let Some(manifest) = &state.manifest {
            crate::manifest_check::check_manifest(manifest).map_err(|fault| corrupt(fault.to_string()))?;
        }
        if state.last_seq.saturating_sub(state.first_seq) > MAX_ENTRIES || state.first_seq == 0 {
            return Err(corrupt(format!("log entries {} to {}", state.first_seq, state.last_seq)));
        }
        shards.push((ShardId::new(uid.clone(), number)?, state));
    }
    Ok(shards)
}

fn object_paths(backup: &Backup) -> Result<std::collections::BTreeSet<String>, StoreError> {
    let mut paths = std::collections::BTreeSet::new();
    for (shard, state) in shards(backup)? {
        paths.extend(wanted_files(&shard, state)?.into_iter().map(|file| file.path));
        paths.extend((state.first_seq..=state.last_seq).map(|seq| format!("{}/log/{}", shard.path(), Seq(seq).name())));
    }
    Ok(paths)
}

/// An entry that must be there.
async fn entry(log: &Log, seq: Seq) -> Result<antiphon_proto::store::LogEntry, StoreError> {
    let path = || format!("{}/log/{}", log.shard().path(), seq.name());
    log.read(seq).await?.ok_or_else(|| StoreError::NotFound { path: path() })
}

fn object_path(name: &str) -> Result<String, StoreError> {
    match path::is_part(name) {
        true => Ok(format!("{PREFIX}/{name}")),
        false => {
            Err(StoreError::invalid(format!("backup name {name:?}"), "letters, digits, - _ and . only, at most 128"))
        }
    }
}
