//! An object read in pieces, several at once, given out in order.
//!
//! Not here: what is done with them (`transfer.rs`, `backup`), and whether they are those that were written: whoever reads
//! sums them up and compares.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::StoreError;
use crate::object::Store;
use crate::path;
use crate::retry::{retrying, within};

/// Bytes of a piece but the last.
pub const PIECE_BYTES: u64 = 8 << 20;
/// Pieces of one object on their way at once.
const PIECES_AT_ONCE: usize = 4;

/// What a file is known to be, as a manifest says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSum {
    /// Its length.
    pub size_bytes: u64,
    /// CRC-32 (IEEE) of all of it.
    pub crc32: u32,
}

/// A piece, and the permission to hold it in memory.
#[derive(Debug)]
pub struct Piece<'p> {
    /// Its bytes.
    pub bytes: Bytes,
    _permit: SemaphorePermit<'p>,
}

impl Store {
    /// The bytes of an object that has `size_bytes`, in order. As many pieces as `permits` allows are asked for and held at
    /// once, over all who share it. Each is tried again until the store's patience ends.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` where the object has another size.
    pub fn pieces<'a>(
        &'a self,
        path: &'a str,
        size_bytes: u64,
        permits: &'a Semaphore,
    ) -> impl Stream<Item = Result<Piece<'a>, StoreError>> + Send + 'a {
        let starts = (0..size_bytes.div_ceil(PIECE_BYTES).max(1)).map(|piece| piece * PIECE_BYTES);
        stream::iter(starts)
            .map(move |start| async move {
                let closed = |error| StoreError::invalid("download permits", error);
                let permit = permits.acquire().await.map_err(closed)?;
                let location = path::parse(path)?;
                let bytes = retrying!(self.limits.patience, self.piece_once(path, &location, start, size_bytes))?;
                Ok(Piece { bytes, _permit: permit })
            })
            .buffered(PIECES_AT_ONCE)
    }

    async fn piece_once(&self, path: &str, location: &Path, start: u64, size: u64) -> Result<Bytes, StoreError> {
        let library = |error| StoreError::from_library(path, error);
        let end = start.saturating_add(PIECE_BYTES).min(size);
        // Whole where it is small: a range of an object that is shorter than it should be is an error of another kind.
        let range = (size > PIECE_BYTES).then_some(GetRange::Bounded(start..end));
        let options = GetOptions { range, ..GetOptions::default() };
        let got = within(self.limits.answer, path, self.objects.get_opts(location, options)).await?.map_err(library)?;
        if got.meta.size != size {
            return Err(StoreError::corrupt(path, format!("{size} bytes were expected, and it has {}", got.meta.size)));
        }
        let bytes = within(self.limits.answer, path, got.bytes()).await?.map_err(library)?;
        if bytes.len() as u64 != end - start {
            return Err(StoreError::Unavailable {
                path: path.to_owned(),
                reason: format!("{} of {} bytes came", bytes.len(), end - start),
                source: None,
            });
        }
        Ok(bytes)
    }
}
