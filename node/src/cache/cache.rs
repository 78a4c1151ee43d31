//! [`SegmentCache`]: room on this node's disk, claimed before it is used.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use antiphon_store::{SegmentId, ShardId};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::folder::{BUILDS, CacheFolder, SEGMENTS, TRASH, remove};
use super::ledger::{Ledger, Shortage};
use super::usage::{Counts, Problems};
use super::{CacheKey, CacheUsage};
use crate::error::NodeError;

/// Share of the space that is free, or the cache's already, which the cache takes where it is not told.
const DEFAULT_SHARE: f64 = 0.8;

/// Bounds of a cache.
#[derive(Debug, Clone)]
pub struct CacheConfig {
    /// Most bytes of segments held and built; 0 for four fifths of what is free when the node starts.
    pub max_bytes: u64,
    /// Requests of downloads at once, over all segments. Each holds up to 8 MiB of memory.
    pub downloads: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { max_bytes: 0, downloads: 8 }
    }
}

/// A node's cache. One for each node; see the module.
#[derive(Debug)]
pub struct SegmentCache {
    // Before the folder: what is dropped first is not needed for removing it.
    state: Mutex<State>,
    pub(super) counts: Counts,
    pub(super) downloads: Semaphore,
    folder: CacheFolder,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    problems: Problems,
    /// One at a time brings a segment's files.
    fetching: HashMap<CacheKey, Weak<AsyncMutex<()>>>,
}

impl SegmentCache {
    /// Takes a folder under `parent`, with what lies there from before; or a temporary one. Blocks for a look at all of it.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(parent: Option<&Path>, config: &CacheConfig) -> io::Result<Arc<Self>> {
        let folder = CacheFolder::take(parent)?;
        let found = found(&folder.path().join(SEGMENTS));
        let held: u64 = found.iter().map(|(_, _, bytes)| bytes).sum();
        let limit = match config.max_bytes {
            0 => ((free_bytes(folder.path())?.saturating_add(held)) as f64 * DEFAULT_SHARE) as u64,
            most => most,
        };
        let mut ledger = Ledger::new(limit);
        let num_found = found.len();
        found.into_iter().for_each(|(_, key, bytes)| ledger.found(key, bytes));
        let excess = ledger.trim();
        tracing::info!(
            path = %folder.path().display(), limit_bytes = limit, segments = num_found, bytes = held,
            "the cache is open"
        );
        let state = State { ledger, problems: Problems::default(), fetching: HashMap::new() };
        let downloads = Semaphore::new(config.downloads.clamp(1, Semaphore::MAX_PERMITS));
        let cache = Self { state: Mutex::new(state), counts: Counts::default(), downloads, folder };
        excess.iter().for_each(|key| remove(&cache.segment_dir(key)));
        Ok(Arc::new(cache))
    }

    /// Room for several segments of one shard, kept until the leases are dropped: for all of them or for none.
    ///
    /// # Errors
    /// [`NodeError::DiskFull`] where segments in use leave too little.
    pub fn claim(self: &Arc<Self>, shard: &ShardId, wanted: Vec<(SegmentId, u64)>) -> Result<Vec<Lease>, NodeError> {
        let wanted: Vec<_> = wanted.into_iter().map(|(id, bytes)| (CacheKey::new(shard, &id), bytes)).collect();
        self.grant(&format!("opening segments of shard {shard}"), |ledger| ledger.claim(&wanted))?;
        Ok(wanted.into_iter().map(|(key, _)| Lease { cache: Arc::clone(self), key }).collect())
    }

    /// A fresh folder to build a segment in, and room for about so many bytes.
    ///
    /// # Errors
    /// [`NodeError::DiskFull`]; what the system says.
    pub fn build(self: &Arc<Self>, shard: &ShardId, segment: &SegmentId, bytes: u64) -> Result<BuildRoom, NodeError> {
        let what = format!("building a segment of shard {shard}");
        self.grant(&what, |ledger| ledger.begin_build(bytes))?;
        let dir = self.folder.path().join(BUILDS).join(segment.as_str());
        let room = BuildRoom { cache: Arc::clone(self), key: CacheKey::new(shard, segment), what, dir, bytes };
        std::fs::create_dir_all(&room.dir).map_err(|error| room.failed(&error))?;
        Ok(room)
    }

    /// Removes a segment's files. Views that have them mapped keep them, and their room.
    pub fn forget(&self, shard: &ShardId, segment: &SegmentId) {
        self.forget_keys(vec![CacheKey::new(shard, segment)]);
    }

    /// Removes all segments of a collection.
    pub fn forget_collection(&self, uid: &str) {
        let keys = self.lock().ledger.keys(|key| key.is_of_collection(uid));
        self.forget_keys(keys);
    }

    /// The numbers.
    pub fn usage(&self) -> CacheUsage {
        let mut state = self.lock();
        let (bytes, limit_bytes, problem) = (state.ledger.used(), state.ledger.limit(), state.problems.last());
        CacheUsage { bytes, limit_bytes, problem, ..self.counts.usage() }
    }

    /// The error of a disk that has no space, though the books have: drops what can be dropped, for whoever tries again.
    pub(crate) fn disk_full(&self, what: &str, needed: u64) -> NodeError {
        let mut state = self.lock();
        let given_up = state.ledger.give_up(needed.max(1), &[]);
        let words = format!(
            "{what}: the disk under {} is full. Make room there, or set cache.max_bytes to what the cache may take",
            self.folder.path().display()
        );
        state.problems.note(what, &words);
        let trash = self.to_trash(&given_up);
        drop(state);
        trash.iter().for_each(|path| remove(path));
        NodeError::DiskFull(words)
    }

    /// Whether the disk has hardly any space left: libraries that write files don't always say so.
    pub(crate) fn is_disk_full(&self) -> bool {
        free_bytes(self.folder.path()).is_ok_and(|free| free < 64 << 10)
    }

    pub(super) fn segment_dir(&self, key: &CacheKey) -> PathBuf {
        self.folder.path().join(SEGMENTS).join(key.path())
    }

    /// A name for a download that is not whole.
    pub(super) fn part_path(&self) -> PathBuf {
        self.folder.path().join(TRASH).join(ulid::Ulid::generate().to_string())
    }

    pub(super) fn fetch_lock(&self, key: &CacheKey) -> Arc<AsyncMutex<()>> {
        let fetching = &mut self.lock().fetching;
        if let Some(lock) = fetching.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        fetching.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        fetching.insert(key.clone(), Arc::downgrade(&lock));
        lock
    }

    fn grant(
        &self,
        what: &str,
        ask: impl FnOnce(&mut Ledger) -> Result<Vec<CacheKey>, Shortage>,
    ) -> Result<(), NodeError> {
        let mut state = self.lock();
        match ask(&mut state.ledger) {
            Ok(given_up) => {
                state.problems.is_over(what);
                let trash = self.to_trash(&given_up);
                drop(state);
                trash.iter().for_each(|path| remove(path));
                Ok(())
            }
            Err(Shortage { needed, in_use, limit }) => {
                let words = format!(
                    "{what}: the node's cache is full: {needed} bytes more are needed, and {in_use} of {limit} bytes are in \
                     use. Raise cache.max_bytes, add disk, or serve fewer collections on this node"
                );
                state.problems.note(what, &words);
                Err(NodeError::DiskFull(words))
            }
        }
    }

    fn forget_keys(&self, keys: Vec<CacheKey>) {
        let mut state = self.lock();
        keys.iter().for_each(|key| state.ledger.forget(key));
        let trash = self.to_trash_quietly(&keys);
        drop(state);
        trash.iter().for_each(|path| remove(path));
    }

    /// Moves what was given up out of the way, so that whoever claims it next begins with an empty folder. Under the lock.
    fn to_trash(&self, keys: &[CacheKey]) -> Vec<PathBuf> {
        if !keys.is_empty() {
            tracing::info!(segments = keys.len(), "segments in no use were dropped from the cache to make room");
            Counts::add(&self.counts.evictions, keys.len() as u64);
        }
        self.to_trash_quietly(keys)
    }

    fn to_trash_quietly(&self, keys: &[CacheKey]) -> Vec<PathBuf> {
        let moved = keys.iter().filter_map(|key| {
            let (from, to) = (self.segment_dir(key), self.part_path());
            std::fs::rename(&from, &to).is_ok().then_some(to)
        });
        moved.collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A segment in use: its room is kept, and its files are not dropped to make room.
#[derive(Debug)]
pub struct Lease {
    pub(super) cache: Arc<SegmentCache>,
    pub(super) key: CacheKey,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.cache.lock().ledger.release(&self.key) {
            touch(&self.cache.segment_dir(&self.key));
        }
    }
}

/// Room for a build, and the folder for it; both are given back when dropped.
#[derive(Debug)]
pub struct BuildRoom {
    cache: Arc<SegmentCache>,
    key: CacheKey,
    what: String,
    dir: PathBuf,
    bytes: u64,
}

impl BuildRoom {
    /// Where to build.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The files are there, and have so many bytes.
    ///
    /// # Errors
    /// [`NodeError::DiskFull`].
    pub fn resize(&mut self, bytes: u64) -> Result<(), NodeError> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.cache.grant(&self.what, |ledger| ledger.begin_build(more))?,
            None => self.cache.lock().ledger.end_build(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }

    /// What a fault of the system is to the caller.
    pub fn failed(&self, error: &io::Error) -> NodeError {
        match error.kind() {
            io::ErrorKind::StorageFull => self.cache.disk_full(&self.what, self.bytes),
            _ => NodeError::Internal(format!("{}: {error}", self.dir.display())),
        }
    }

    /// The error of a build that failed: that of a full disk where that was it.
    pub fn build_failed(&self, error: NodeError) -> NodeError {
        match error {
            NodeError::Cancelled => error,
            NodeError::DiskFull(_) => self.cache.disk_full(&self.what, self.bytes),
            error if self.cache.is_disk_full() => {
                tracing::warn!(%error, "a build failed on a full disk");
                self.cache.disk_full(&self.what, self.bytes)
            }
            error => error,
        }
    }

    /// Makes the build a segment of the cache.
    ///
    /// # Errors
    /// What the system says.
    pub fn adopt(mut self) -> Result<Lease, NodeError> {
        let to = self.cache.segment_dir(&self.key);
        let moved = to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::rename(&self.dir, &to));
        moved.map_err(|error| self.failed(&error))?;
        self.cache.lock().ledger.adopt(self.key.clone(), self.bytes);
        self.bytes = 0;
        Ok(Lease { cache: Arc::clone(&self.cache), key: self.key.clone() })
    }
}

impl Drop for BuildRoom {
    fn drop(&mut self) {
        remove(&self.dir);
        self.cache.lock().ledger.end_build(self.bytes);
    }
}

/// Notes on the disk when a segment was used last.
fn touch(dir: &Path) {
    #[expect(
        clippy::disallowed_methods,
        reason = "times of files are the wall clock's; they order what is found at a start"
    )]
    let now = SystemTime::now();
    // Where it can't be noted, an older time stands.
    let _ = File::open(dir).and_then(|dir| dir.set_modified(now));
}

/// The segments in a folder with their bytes, from the one used longest ago on.
fn found(segments: &Path) -> Vec<(SystemTime, CacheKey, u64)> {
    let mut found = Vec::new();
    for (uid, shards) in folders(segments) {
        for (shard, ids) in folders(&shards) {
            for (id, dir) in folders(&ids) {
                let modified = std::fs::metadata(&dir).and_then(|dir| dir.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                match CacheKey::parse(&format!("{uid}/{shard}/{id}")) {
                    Some(key) => found.push((modified, key, bytes_in(&dir))),
                    None => remove(&dir),
                }
            }
        }
    }
    found.sort_unstable();
    found
}

fn folders(path: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let named = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    named.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect()
}

fn bytes_in(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

/// Bytes that a process without privileges can still write.
fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
