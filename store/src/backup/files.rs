//! [`Copier`]: segment files from one store to another by way of a folder of this host, and their checksums.
//!
//! Bounded: [`FILES_AT_ONCE`] files lie in the folder, [`PIECES_AT_ONCE`] pieces are held in memory.

use std::path::PathBuf;
use std::pin::pin;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Semaphore;

use super::Wanted;
use crate::error::StoreError;
use crate::object::Store;

const FILES_AT_ONCE: usize = 2;
const PIECES_AT_ONCE: usize = 8;

/// Copies and verifies files.
#[derive(Debug)]
pub struct Copier {
    scratch: PathBuf,
    permits: Semaphore,
}

impl Copier {
    /// With a folder that is there, is nobody else's, and has room for the two largest files of a segment.
    pub fn new(scratch: PathBuf) -> Self {
        Self { scratch, permits: Semaphore::new(PIECES_AT_ONCE) }
    }

    /// Copies files, each to the path that `to` gives, verifying what was read.
    pub(super) async fn copy_all(
        &self,
        from: &Store,
        target: &Store,
        files: Vec<(Wanted, String)>,
    ) -> Result<(), StoreError> {
        let copies = stream::iter(files).map(|(file, to)| async move { self.copy(from, target, &file, &to).await });
        copies.buffer_unordered(FILES_AT_ONCE).try_collect().await
    }

    async fn copy(&self, from: &Store, target: &Store, file: &Wanted, to: &str) -> Result<(), StoreError> {
        // A name of this call's own: the folder is nobody else's, and segment ids with file names can repeat over shards.
        let name = ulid::Ulid::generate().to_string();
        let (whole, part) = (self.scratch.join(&name), self.scratch.join(format!("{name}.part")));
        let copied = async {
            from.download_file(&file.path, &whole, &part, file.sum, &self.permits).await?;
            target.upload_file(&whole, to).await
        };
        let outcome = copied.await;
        // What stays is the folder's owner's to remove.
        let _ = tokio::fs::remove_file(&whole).await;
        outcome
    }

    /// Reads files and compares their checksums.
    pub(super) async fn verify_all(&self, store: &Store, files: Vec<Wanted>) -> Result<(), StoreError> {
        let reads = stream::iter(files).map(|file| async move { self.verify(store, &file).await });
        reads.buffer_unordered(FILES_AT_ONCE).try_collect().await
    }

    async fn verify(&self, store: &Store, file: &Wanted) -> Result<(), StoreError> {
        let mut hasher = crc32fast::Hasher::new();
        let mut pieces = pin!(store.pieces(&file.path, file.sum.size_bytes, &self.permits));
        while let Some(piece) = pieces.try_next().await? {
            hasher.update(&piece.bytes);
        }
        match hasher.finalize() {
            found if found == file.sum.crc32 => Ok(()),
            found => {
                let words = format!("its CRC-32 is {found:08x}, and {:08x} was expected", file.sum.crc32);
                Err(StoreError::corrupt(&file.path, words))
            }
        }
    }
}
