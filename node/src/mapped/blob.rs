//! Immutable bytes, mapped from a file or owned, behind one cheap handle.
//!
//! Everything that a segment is made of is read through a [`Blob`], so that sealed segments (mapped) and live ones (in
//! memory) share one reader.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a file could not be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file could not be opened or mapped.
    #[error("{path} could not be mapped")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is not the one that the manifest names.
    #[error("{path}: expected {expected_len} bytes with CRC-32 {expected_crc:08x}, found {len} with {crc:08x}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Length according to the manifest, in bytes.
        expected_len: u64,
        /// CRC-32 (IEEE) according to the manifest.
        expected_crc: u32,
        /// Length found, in bytes.
        len: u64,
        /// CRC-32 found.
        crc: u32,
    },
}

/// Owned bytes whose first byte is aligned to 64, as mapped bytes are.
#[derive(Debug, Default)]
pub struct AlignedBytes {
    blocks: Vec<Block>,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Block([u8; 64]);

impl AlignedBytes {
    /// Copies `bytes` to an aligned place.
    pub fn copy_from(bytes: &[u8]) -> Self {
        let blocks = bytes
            .chunks(64)
            .map(|chunk| {
                let mut block = Block([0; 64]);
                block.0[..chunk.len()].copy_from_slice(chunk);
                block
            })
            .collect();
        Self { blocks, len: bytes.len() }
    }

    fn as_slice(&self) -> &[u8] {
        // SAFETY: `blocks` holds at least `len` initialised bytes without padding between blocks (size 64, align 64).
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast::<u8>(), self.len) }
    }
}

#[derive(Debug)]
enum Backing {
    Mapped(memmap2::Mmap),
    Owned(AlignedBytes),
}

impl Backing {
    fn as_slice(&self) -> &[u8] {
        match self {
            Backing::Mapped(map) => map,
            Backing::Owned(bytes) => bytes.as_slice(),
        }
    }
}

/// A shared range of immutable bytes. Cloning and slicing copy nothing; the whole is unmapped or freed with the last
/// handle.
#[derive(Debug, Clone)]
pub struct Blob {
    backing: Arc<Backing>,
    range: Range<usize>,
}

impl Blob {
    /// Bytes in memory, moved to an address aligned to 64.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self { range: 0..bytes.len(), backing: Arc::new(Backing::Owned(AlignedBytes::copy_from(bytes))) }
    }

    /// Maps a file after comparing its length and CRC-32 (IEEE) with what the manifest says.
    ///
    /// # Errors
    /// [`MapError::Io`] when the system refuses, [`MapError::Damaged`] when the bytes are others.
    pub fn map_verified(path: &Path, expected_len: u64, expected_crc: u32) -> Result<Self, MapError> {
        let io_error = |source| MapError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io_error)?;
        let len = file.metadata().map_err(io_error)?.len();
        if len == 0 && expected_len == 0 && expected_crc == 0 {
            return Ok(Self::from_bytes(&[]));
        }
        let damaged = |crc| MapError::Damaged { path: path.to_owned(), expected_len, expected_crc, len, crc };
        if len != expected_len {
            return Err(damaged(0));
        }
        // SAFETY: INV-7: names are never reused and files never rewritten or truncated once they are in place, so the
        // mapping stays valid and unchanged. Removing the file leaves the mapping intact.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io_error)?;
        let crc = crc32fast::hash(&map);
        if crc != expected_crc {
            return Err(damaged(crc));
        }
        Ok(Self { range: 0..map.len(), backing: Arc::new(Backing::Mapped(map)) })
    }

    /// A part of the bytes, or `None` where `range` is not within them.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.range.len() {
            return None;
        }
        let start = self.range.start + range.start;
        Some(Self { backing: Arc::clone(&self.backing), range: start..start + range.len() })
    }

    /// Whether the bytes are mapped from a file rather than owned.
    pub fn is_mapped(&self) -> bool {
        matches!(*self.backing, Backing::Mapped(_))
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.backing.as_slice()[self.range.clone()]
    }
}

// SAFETY: the bytes live behind an Arc and are never moved or changed while a handle exists.
unsafe impl stable_deref_trait::StableDeref for Blob {}
// SAFETY: a clone shares the same Arc and so derefs to the same address.
unsafe impl stable_deref_trait::CloneStableDeref for Blob {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_bytes_are_aligned_and_equal() {
        let blob = Blob::from_bytes(&[7; 100]);
        assert_eq!(&blob[..], &[7; 100]);
        assert_eq!(blob.as_ptr() as usize % 64, 0);
        assert_eq!(blob.slice(64..100).map(|part| part.len()), Some(36));
        assert!(blob.slice(64..101).is_none());
    }

    #[test]
    fn a_file_with_other_bytes_is_not_mapped() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("file");
        std::fs::write(&path, b"segment")?;
        let crc = crc32fast::hash(b"segment");
        assert_eq!(&Blob::map_verified(&path, 7, crc)?[..], b"segment");
        assert!(matches!(Blob::map_verified(&path, 7, crc ^ 1), Err(MapError::Damaged { .. })));
        assert!(matches!(Blob::map_verified(&path, 8, crc), Err(MapError::Damaged { .. })));
        Ok(())
    }
}
