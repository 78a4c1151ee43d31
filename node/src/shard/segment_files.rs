//! A shard's segment files between the store and this machine's disk.
//!
//! Those of a local store are mapped where they lie; others go through the node's cache, as do all builds.

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_proto::store::SegmentEntry;
use antiphon_store::{SegmentId, ShardId, Store};
use futures::StreamExt;
use futures::future::{BoxFuture, try_join_all};
use futures::stream;

use crate::cache::{BuildRoom, FetchError, Lease, SegmentCache};
use crate::error::NodeError;
use crate::mapped::{Blob, MapError};
use crate::schema::ShardSchema;
use crate::segment::{BuiltSegment, FORMAT_VERSION, Segment, SegmentBlobs, SegmentError};

/// Segments of one shard that are opened at once.
const SEGMENTS_AT_ONCE: usize = 4;

/// Brings segment files of one shard up and down.
#[derive(Debug, Clone)]
pub(super) struct SegmentFiles {
    pub(super) store: Store,
    pub(super) shard: ShardId,
    pub(super) cache: Arc<SegmentCache>,
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
    /// A fresh folder to build a segment of about so many bytes in.
    ///
    /// # Errors
    /// [`NodeError::DiskFull`]; what the system says.
    pub(super) fn build_room(&self, segment: &SegmentId, bytes: u64) -> Result<BuildRoom, NodeError> {
        self.cache.build(&self.shard, segment, bytes)
    }

    /// Removes what a segment left in the cache; mapped files live on until they are let go.
    pub(super) fn forget(&self, segment: &SegmentId) {
        self.cache.forget(&self.shard, segment);
    }

    /// Puts a built segment's files into the store.
    pub(super) async fn upload(&self, segment: &SegmentId, built: &BuiltSegment) -> Result<(), NodeError> {
        for file in &built.files {
            let path = file.path.as_ref().ok_or_else(|| NodeError::Internal("a sealed file in memory".into()))?;
            self.store.upload_file(path, &segment.file_path(&self.shard, &file.name)).await?;
        }
        Ok(())
    }

    /// Opens a segment, as [`SegmentFiles::land_all`] does.
    pub(super) async fn land(
        &self,
        entry: &SegmentEntry,
        schema: &Arc<ShardSchema>,
        threads: usize,
    ) -> Result<Segment, LandError> {
        let mut landed = self.land_all(&[entry], schema, threads).await.map_err(LandError::Node)?;
        landed.remove(&entry.id).unwrap_or_else(|| Err(LandError::Node(NodeError::Internal("no segment".into()))))
    }

    /// Opens segments, several at once, by id: their files where they lie in a local store, else in the cache, downloaded
    /// where they are not there; each verified before it is mapped.
    ///
    /// # Errors
    /// [`NodeError::DiskFull`] where there is no room for all of them; then nothing was downloaded.
    pub(super) async fn land_all(
        &self,
        entries: &[&SegmentEntry],
        schema: &Arc<ShardSchema>,
        threads: usize,
    ) -> Result<HashMap<String, Result<Segment, LandError>>, NodeError> {
        let (mut landed, mut good) = (HashMap::new(), Vec::new());
        for entry in entries {
            match known(entry) {
                Ok(id) => good.push((*entry, id)),
                Err(error) => drop(landed.insert(entry.id.clone(), Err(error))),
            }
        }
        let mut leases: Vec<Option<Lease>> = Vec::new();
        if self.store.is_local() {
            leases.resize_with(good.len(), || None);
        } else {
            let wanted = good.iter().map(|(entry, id)| (id.clone(), size_of(entry))).collect();
            leases.extend(self.cache.claim(&self.shard, wanted)?.into_iter().map(Some));
        }
        // Boxed one by one: a closure that makes them would make futures that can't be sent between threads.
        let mut opening: Vec<BoxFuture<'_, _>> = Vec::with_capacity(good.len());
        for ((entry, id), lease) in good.into_iter().zip(leases) {
            let id_of_entry = entry.id.clone();
            opening.push(Box::pin(async move { (id_of_entry, self.open(entry, &id, lease, schema, threads).await) }));
        }
        landed.extend(stream::iter(opening).buffer_unordered(SEGMENTS_AT_ONCE).collect::<Vec<_>>().await);
        Ok(landed)
    }

    async fn open(
        &self,
        entry: &SegmentEntry,
        id: &SegmentId,
        lease: Option<Lease>,
        schema: &Arc<ShardSchema>,
        threads: usize,
    ) -> Result<Segment, LandError> {
        let blobs = match &lease {
            Some(lease) => self.fetch(entry, id, lease).await?,
            None => self.map_in_place(entry, id).await?,
        };
        let (schema, num_rows) = (Arc::clone(schema), entry.num_rows);
        let opened = tokio::task::spawn_blocking(move || {
            Segment::open(SegmentBlobs::new(blobs), num_rows, &schema, threads).map(|segment| segment.with_lease(lease))
        });
        settled(entry, opened.await)
    }

    async fn fetch(
        &self,
        entry: &SegmentEntry,
        id: &SegmentId,
        lease: &Lease,
    ) -> Result<HashMap<String, Blob>, LandError> {
        let fetch_lock = lease.fetch_lock();
        let _one_at_a_time = fetch_lock.lock().await;
        let mut files: Vec<BoxFuture<'_, _>> = Vec::with_capacity(entry.files.len());
        for file in &entry.files {
            files.push(Box::pin(async move {
                let object = id.file_path(&self.shard, &file.name);
                Ok((file.name.clone(), lease.file(&self.store, &object, file).await?))
            }));
        }
        let blobs = try_join_all(files).await.map_err(|error| match error {
            FetchError::Damaged(reason) => damaged(entry, &reason),
            FetchError::Node(error) => LandError::Node(error),
        })?;
        Ok(blobs.into_iter().collect())
    }

    async fn map_in_place(&self, entry: &SegmentEntry, id: &SegmentId) -> Result<HashMap<String, Blob>, LandError> {
        let mut paths = Vec::new();
        for file in &entry.files {
            let object = id.file_path(&self.shard, &file.name);
            let path = self.store.local_path(&object).ok_or_else(|| damaged(entry, &format!("no path {object}")))?;
            paths.push((path, file.clone()));
        }
        let mapped = tokio::task::spawn_blocking(move || {
            let map = |(path, file): (std::path::PathBuf, antiphon_proto::store::SegmentFile)| {
                Ok((file.name, Blob::map_verified(&path, file.size_bytes, file.crc32)?))
            };
            paths.into_iter().map(map).collect::<Result<_, SegmentError>>()
        });
        settled(entry, mapped.await)
    }
}

fn settled<T>(
    entry: &SegmentEntry,
    outcome: Result<Result<T, SegmentError>, tokio::task::JoinError>,
) -> Result<T, LandError> {
    match outcome {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(SegmentError::Map(MapError::Io { source, path }))) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(LandError::Node(NodeError::Internal(format!("{}: {source}", path.display()))))
        }
        Ok(Err(error)) => Err(damaged(entry, &crate::error::chain(&error))),
        Err(error) => Err(LandError::Node(NodeError::Internal(error.to_string()))),
    }
}

fn damaged(entry: &SegmentEntry, reason: &str) -> LandError {
    LandError::Damaged(format!("segment {}: {reason}", entry.id))
}

/// The id of a segment that this release can read.
fn known(entry: &SegmentEntry) -> Result<SegmentId, LandError> {
    if entry.format_version != FORMAT_VERSION {
        return Err(damaged(entry, &format!("format version {} is not known to this release", entry.format_version)));
    }
    entry.id.parse().map_err(|error| damaged(entry, &format!("{error}")))
}

fn size_of(entry: &SegmentEntry) -> u64 {
    entry.files.iter().fold(0, |sum, file| sum.saturating_add(file.size_bytes))
}
