//! Whole files between this host's disk and the store, a piece at a time.
//!
//! Invariant: a file appears under its name, in the store or on the disk, whole or not at all.

use std::path::{Path as FsPath, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMultipartOptions, PutPayload, WriteMultipart};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use crate::error::StoreError;
use crate::object::Store;
use crate::path;
use crate::pieces::FileSum;
use crate::retry::{retrying, within};

/// A file up to this size goes in one request; a larger one in pieces of this size. S3 takes 10,000 pieces: 156 GiB.
const PIECE_BYTES: usize = 16 << 20;
/// Pieces on their way at once.
const PIECES_IN_FLIGHT: usize = 3;

impl Store {
    /// Puts the local file into the store; durable when this returns. Replaces an object of that name, so a retry after
    /// an error is safe where the name is this caller's own (that of a new segment).
    ///
    /// The file must not change meanwhile. If the caller goes away, pieces may be left in the bucket unseen: give it a
    /// lifecycle rule that aborts incomplete multipart uploads.
    pub async fn upload_file(&self, local: &FsPath, path: &str) -> Result<(), StoreError> {
        let to = path::parse(path)?;
        if let (Some(dir), true) = (&self.dir, self.direct_files) {
            let (dir, from, to) = (Arc::clone(dir), local.to_owned(), to);
            let put = tokio::task::spawn_blocking(move || crate::local::upload(&dir, &from, &to));
            return match put.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(source)) if source.kind() == std::io::ErrorKind::StorageFull => {
                    Err(StoreError::Full { path: path.to_owned(), source: Box::new(source) })
                }
                Ok(Err(source)) => Err(StoreError::local_file(local, source)),
                Err(stopped) => Err(StoreError::Unavailable {
                    path: path.to_owned(),
                    reason: "the runtime is stopping".to_owned(),
                    source: Some(Box::new(stopped)),
                }),
            };
        }
        retrying!(self.limits.patience, self.upload_once(local, path, &to))
    }

    async fn upload_once(&self, local: &FsPath, path: &str, to: &Path) -> Result<(), StoreError> {
        let library = |error| StoreError::from_library(path, error);
        let mut file = File::open(local).await.map_err(|source| StoreError::local_file(local, source))?;
        let first = read_piece(&mut file, local).await?;
        if first.len() < PIECE_BYTES {
            let put = self.objects.put(to, PutPayload::from(first));
            within(self.limits.answer, path, put).await?.map_err(library)?;
            return Ok(());
        }
        let started = self.objects.put_multipart_opts(to, PutMultipartOptions::default());
        let upload = within(self.limits.answer, path, started).await?.map_err(library)?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, PIECE_BYTES);
        let sent = async {
            let mut piece = first;
            while !piece.is_empty() {
                let room = writer.wait_for_capacity(PIECES_IN_FLIGHT);
                within(self.limits.answer, path, room).await?.map_err(library)?;
                writer.put(piece);
                piece = read_piece(&mut file, local).await?;
            }
            Ok(())
        };
        match sent.await {
            Ok(()) => {
                // The pieces in flight and the act of joining them.
                let limit = self.limits.answer * (PIECES_IN_FLIGHT as u32 + 1);
                within(limit, path, writer.finish()).await?.map_err(library)?;
                Ok(())
            }
            Err(error) => {
                // The error is what the caller needs; unfinished pieces are the lifecycle rule's.
                let _ = within(self.limits.answer, path, writer.abort()).await;
                Err(error)
            }
        }
    }

    /// Writes an object to a local file that must not be there: first to `part`, in a directory that is there, then
    /// renamed. Its size and checksum are compared on the way. The bytes are not synced: a copy of what the store has can be
    /// fetched again, and is verified again before use.
    ///
    /// # Errors
    /// `NotFound` if there is no such object, `Corrupt` if it is not what `sum` says, `LocalFile` for the local disk.
    pub async fn download_file(
        &self,
        path: &str,
        local: &FsPath,
        part: &FsPath,
        sum: FileSum,
        permits: &Semaphore,
    ) -> Result<(), StoreError> {
        let local_error = |source| StoreError::local_file(local, source);
        let part = PartFile(part.to_owned());
        let mut file = File::create_new(&part.0).await.map_err(local_error)?;
        let mut hasher = crc32fast::Hasher::new();
        let mut pieces = pin!(self.pieces(path, sum.size_bytes, permits));
        while let Some(piece) = pieces.try_next().await? {
            hasher.update(&piece.bytes);
            file.write_all(&piece.bytes).await.map_err(local_error)?;
        }
        file.flush().await.map_err(local_error)?;
        let crc32 = hasher.finalize();
        if crc32 != sum.crc32 {
            let words = format!("its CRC-32 is {crc32:08x}, and {:08x} was expected", sum.crc32);
            return Err(StoreError::corrupt(path, words));
        }
        tokio::fs::rename(&part.0, local).await.map_err(local_error)
    }
}

/// The next piece of a file: shorter than `PIECE_BYTES` only at its end.
async fn read_piece(file: &mut File, local: &FsPath) -> Result<Bytes, StoreError> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let read = file.take(PIECE_BYTES as u64).read_to_end(&mut piece).await;
    read.map_err(|source| StoreError::local_file(local, source))?;
    Ok(piece.into())
}

/// A file that is not whole yet, removed when dropped; after the rename there is nothing left to remove.
struct PartFile(PathBuf);

impl Drop for PartFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
