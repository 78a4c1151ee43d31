//! Segment files between the store and this machine's disk.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_proto::store::SegmentEntry;
use antiphon_store::{SegmentId, ShardId, Store};

use crate::error::NodeError;
use crate::mapped::{Blob, MapError};
use crate::schema::ShardSchema;
use crate::segment::{BuiltSegment, FORMAT_VERSION, Segment, SegmentBlobs, SegmentError};

/// This process's own directory for builds and downloads; removed when dropped.
///
/// Leftovers of processes that died are swept when another starts: each holds a lock on a file in its directory.
#[derive(Debug)]
pub struct CacheDir {
    path: PathBuf,
    _lock: File,
}

impl CacheDir {
    /// Makes a directory of its own under `parent`, or under the system's temporary directory.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(parent: Option<&Path>) -> std::io::Result<Self> {
        let parent = parent.map_or_else(|| std::env::temp_dir().join("antiphon-cache"), Path::to_owned);
        std::fs::create_dir_all(&parent)?;
        // One at a time: a directory that another process has made and not locked yet would look abandoned.
        let turn = File::create(parent.join("turn"))?;
        turn.lock()?;
        sweep(&parent);
        let path = parent.join(format!("process-{}", ulid::Ulid::generate()));
        std::fs::create_dir(&path)?;
        let lock = File::create(path.join("lock"))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }

    /// Where one segment is built or downloaded.
    pub fn segment_dir(&self, shard: &ShardId, segment: &SegmentId) -> PathBuf {
        self.path.join(shard.uid().as_str()).join(shard.shard().to_string()).join(segment.as_str())
    }
}

impl Drop for CacheDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the cache directory stays behind");
        }
    }
}

fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("process-")) {
        let is_abandoned = match File::open(entry.path().join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(_) => false,
        };
        if is_abandoned && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "a leftover could not be removed");
        }
    }
}

/// Brings segment files of one shard up and down.
#[derive(Debug, Clone)]
pub(super) struct SegmentFiles {
    pub(super) store: Store,
    pub(super) shard: ShardId,
    pub(super) cache: Arc<CacheDir>,
}

/// Why a segment could not be opened.
#[derive(Debug)]
pub(super) enum LandError {
    /// Its files are damaged or missing: set it aside.
    Damaged(String),
    /// Something that may pass.
    Node(NodeError),
}

impl SegmentFiles {
    /// A fresh directory to build a segment in.
    pub(super) fn build_dir(&self, segment: &SegmentId) -> std::io::Result<PathBuf> {
        let dir = self.cache.segment_dir(&self.shard, segment);
        std::fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Removes what a segment left in the cache; mapped files live on until they are let go.
    pub(super) fn forget(&self, segment: &SegmentId) {
        let dir = self.cache.segment_dir(&self.shard, segment);
        if let Err(error) = std::fs::remove_dir_all(&dir)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %dir.display(), "a segment's cached files could not be removed");
        }
    }

    /// Puts a built segment's files into the store.
    pub(super) async fn upload(&self, segment: &SegmentId, built: &BuiltSegment) -> Result<(), NodeError> {
        for file in &built.files {
            let path = file.path.as_ref().ok_or_else(|| NodeError::Internal("a sealed file in memory".into()))?;
            self.store.upload_file(path, &segment.file_path(&self.shard, &file.name)).await?;
        }
        Ok(())
    }

    /// Opens a segment: its files where they lie in a local store, else downloaded first; each verified before it is
    /// mapped.
    pub(super) async fn land(
        &self,
        entry: &SegmentEntry,
        schema: &Arc<ShardSchema>,
        threads: usize,
    ) -> Result<Segment, LandError> {
        let damaged = |reason: String| LandError::Damaged(format!("segment {}: {reason}", entry.id));
        if entry.format_version != FORMAT_VERSION {
            return Err(damaged(format!("format version {} is not known to this release", entry.format_version)));
        }
        let id: SegmentId = entry.id.parse().map_err(|error| damaged(format!("{error}")))?;
        let mut paths = HashMap::new();
        for file in &entry.files {
            let object = id.file_path(&self.shard, &file.name);
            let path = match self.store.local_path(&object) {
                Some(path) => path,
                None => self.download(&id, &object, &file.name).await?,
            };
            paths.insert(file.name.clone(), (path, file.size_bytes, file.crc32));
        }
        let (schema, num_rows) = (Arc::clone(schema), entry.num_rows);
        let opened = tokio::task::spawn_blocking(move || -> Result<Segment, SegmentError> {
            let mut blobs = HashMap::new();
            for (name, (path, size, crc)) in paths {
                blobs.insert(name, Blob::map_verified(&path, size, crc)?);
            }
            Segment::open(SegmentBlobs::new(blobs), num_rows, &schema, threads)
        });
        match opened.await {
            Ok(Ok(segment)) => Ok(segment),
            Ok(Err(SegmentError::Map(MapError::Io { source, path })))
                if source.kind() != std::io::ErrorKind::NotFound =>
            {
                Err(LandError::Node(NodeError::Internal(format!("{}: {source}", path.display()))))
            }
            Ok(Err(error)) => Err(damaged(crate::error::chain(&error))),
            Err(error) => Err(LandError::Node(NodeError::Internal(error.to_string()))),
        }
    }

    async fn download(&self, id: &SegmentId, object: &str, name: &str) -> Result<PathBuf, LandError> {
        let dir = self.build_dir(id).map_err(|error| LandError::Node(NodeError::Internal(error.to_string())))?;
        let path = dir.join(name);
        if !path.exists() {
            match self.store.download_file(object, &path).await {
                Ok(()) => {}
                Err(error) if error.kind() == antiphon_store::StoreErrorKind::NotFound => {
                    return Err(LandError::Damaged(format!("{object} is missing")));
                }
                Err(error) => return Err(LandError::Node(error.into())),
            }
        }
        Ok(path)
    }
}
