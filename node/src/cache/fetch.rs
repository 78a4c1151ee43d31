//! A segment's files on this disk: found, or fetched, and verified in any case.

use std::io;
use std::path::Path;
use std::sync::Arc;

use antiphon_proto::store::SegmentFile;
use antiphon_store::{FileSum, Store, StoreError, StoreErrorKind};

use super::cache::Lease;
use super::usage::Counts;
use crate::error::NodeError;
use crate::mapped::{Blob, MapError};

/// How often a file whose bytes did not come as they should is fetched.
const MAX_TRIES: usize = 2;

/// Why a file could not be had.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The store's own file is missing or damaged.
    Damaged(String),
    /// Something that may pass.
    Node(NodeError),
}

/// What is on the disk under a file's name.
enum OnDisk {
    Whole(Blob),
    Nothing,
}

impl Lease {
    /// Lets one at a time bring the files of this segment.
    pub(crate) fn fetch_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        self.cache.fetch_lock(&self.key)
    }

    /// Maps one file, from the disk or from the store's `object`. Hold the [`Lease::fetch_lock`].
    ///
    /// # Errors
    /// [`FetchError::Damaged`] where the store has not what the manifest says; [`NodeError::DiskFull`].
    pub(crate) async fn file(&self, store: &Store, object: &str, file: &SegmentFile) -> Result<Blob, FetchError> {
        let dir = self.cache.segment_dir(&self.key);
        let path = dir.join(&file.name);
        let counts = &self.cache.counts;
        if let OnDisk::Whole(blob) = self.look(&path, file).await? {
            Counts::add(&counts.hits, 1);
            return Ok(blob);
        }
        let sum = FileSum { size_bytes: file.size_bytes, crc32: file.crc32 };
        for left in (0..MAX_TRIES).rev() {
            std::fs::create_dir_all(&dir).map_err(|error| self.local(&error, &dir, file.size_bytes))?;
            let part = self.cache.part_path();
            match store.download_file(object, &path, &part, sum, &self.cache.downloads).await {
                Ok(()) => {}
                Err(error) if error.kind() == StoreErrorKind::Corrupt && left > 0 => {
                    tracing::warn!(%error, "a download did not come as it should and is tried again");
                    continue;
                }
                Err(error) => return Err(self.failed(error, object, file.size_bytes)),
            }
            Counts::add(&counts.downloads, 1);
            Counts::add(&counts.downloaded_bytes, file.size_bytes);
            if let OnDisk::Whole(blob) = self.look(&path, file).await? {
                return Ok(blob);
            }
        }
        let words = format!("{}: what is written there is not what is read", path.display());
        Err(FetchError::Node(NodeError::Internal(words)))
    }

    /// What is there, without what is damaged.
    async fn look(&self, path: &Path, file: &SegmentFile) -> Result<OnDisk, FetchError> {
        let (owned, size, crc) = (path.to_owned(), file.size_bytes, file.crc32);
        let mapped = tokio::task::spawn_blocking(move || Blob::map_verified(&owned, size, crc)).await;
        match mapped.map_err(|error| FetchError::Node(NodeError::Internal(error.to_string())))? {
            Ok(blob) => Ok(OnDisk::Whole(blob)),
            Err(MapError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(OnDisk::Nothing),
            Err(MapError::Io { source, .. }) => Err(self.local(&source, path, file.size_bytes)),
            Err(error @ MapError::Damaged { .. }) => {
                tracing::warn!(%error, "a cached file is damaged and fetched again");
                Counts::add(&self.cache.counts.damaged, 1);
                // Who has it mapped keeps the old file; the name is free for another.
                std::fs::remove_file(path).map_err(|error| self.local(&error, path, file.size_bytes))?;
                Ok(OnDisk::Nothing)
            }
        }
    }

    fn local(&self, error: &io::Error, path: &Path, needed: u64) -> FetchError {
        FetchError::Node(match error.kind() {
            io::ErrorKind::StorageFull => self.disk_full(needed),
            _ => NodeError::Internal(format!("{}: {error}", path.display())),
        })
    }

    fn failed(&self, error: StoreError, object: &str, needed: u64) -> FetchError {
        match (error.kind(), &error) {
            (StoreErrorKind::NotFound, _) => FetchError::Damaged(format!("{object} is missing")),
            (StoreErrorKind::Corrupt, _) => FetchError::Damaged(error.to_string()),
            (_, StoreError::LocalFile { source, .. }) if source.kind() == io::ErrorKind::StorageFull => {
                FetchError::Node(self.disk_full(needed))
            }
            _ => FetchError::Node(error.into()),
        }
    }

    fn disk_full(&self, needed: u64) -> NodeError {
        self.cache.disk_full(&format!("opening segment {}", self.key.path()), needed)
    }
}
