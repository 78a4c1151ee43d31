//! One file that holds the files of a text index.
//!
//! ```text
//! offset  size  what
//! 0       8     magic, the bytes "ANTITEXT"
//! 8       4     version, 1
//! 12      4     number of files n
//! 16      8     length of the whole bundle in bytes
//! 24      4     CRC-32 (IEEE) of bytes 0..24 and of the table
//! 28      4     zero
//! 32      32·n  table: name (16 bytes, padded with zeros), offset, length (8 bytes each)
//! 32+32n        the files, in the order of the table, without gaps
//! ```
//! Numbers are little-endian. A file's name is what tantivy's names end with (`term`, `idx`, `pos`, `fieldnorm`,
//! `fast`, `store`), or `meta.json`. The files themselves are tantivy 0.27's and carry its footers. The reader checks
//! everything up to the end of the table before it uses any of it; the bytes of the files are covered by the checksum
//! of the whole bundle in the manifest, which is verified before a bundle is mapped.

use super::TextError;
use crate::mapped::Blob;

const MAGIC: &[u8; 8] = b"ANTITEXT";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 32;
const NAME_BYTES: usize = 16;
const CRC_OFFSET: usize = 24;
const MAX_FILES: usize = 64;

/// Begins a bundle: header and table for files of these names and lengths. The files' bytes are to be appended.
///
/// # Errors
/// [`TextError::TooLarge`] for more files or longer names than the format holds.
pub(super) fn begin(files: &[(&str, usize)]) -> Result<Vec<u8>, TextError> {
    let mut offset = HEADER_BYTES + files.len() * ENTRY_BYTES;
    let total = offset + files.iter().map(|(_, len)| len).sum::<usize>();
    if files.len() > MAX_FILES || files.iter().any(|(name, _)| name.len() > NAME_BYTES) {
        return Err(TextError::TooLarge);
    }
    let mut bundle = Vec::with_capacity(total);
    bundle.extend_from_slice(MAGIC);
    bundle.extend_from_slice(&VERSION.to_le_bytes());
    bundle.extend_from_slice(&(files.len() as u32).to_le_bytes());
    bundle.extend_from_slice(&(total as u64).to_le_bytes());
    bundle.extend_from_slice(&[0; HEADER_BYTES - CRC_OFFSET]);
    for (name, len) in files {
        let mut padded = [0; NAME_BYTES];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        bundle.extend_from_slice(&padded);
        bundle.extend_from_slice(&(offset as u64).to_le_bytes());
        bundle.extend_from_slice(&(*len as u64).to_le_bytes());
        offset += len;
    }
    let crc = checksum(&bundle);
    bundle[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
    Ok(bundle)
}

fn checksum(head: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..CRC_OFFSET]);
    hasher.update(&head[HEADER_BYTES..]);
    hasher.finalize()
}

/// The files of a bundle. Nothing is copied.
///
/// # Errors
/// [`TextError::Damaged`] where the header or the table is not what was written, or the bundle is shorter or longer.
pub(super) fn files(bundle: &Blob) -> Result<Vec<(String, Blob)>, TextError> {
    if bundle.len() < HEADER_BYTES || bundle[..8] != MAGIC[..] {
        return Err(TextError::Damaged("it does not begin as one"));
    }
    if u32_at(bundle, 8)? != VERSION {
        return Err(TextError::Damaged("its version is unknown"));
    }
    let num_files = u32_at(bundle, 12)? as usize;
    if num_files > MAX_FILES {
        return Err(TextError::Damaged("it has too many files"));
    }
    let head_bytes = HEADER_BYTES + num_files * ENTRY_BYTES;
    let head = bundle.get(..head_bytes).ok_or(TextError::Damaged("its table is cut off"))?;
    if checksum(head) != u32_at(bundle, CRC_OFFSET)? || u32_at(bundle, CRC_OFFSET + 4)? != 0 {
        return Err(TextError::Damaged("its header or table has changed"));
    }
    if u64_at(bundle, 16)? != bundle.len() as u64 {
        return Err(TextError::Damaged("its length is another"));
    }
    let mut end_of_last = head_bytes as u64;
    let mut files = Vec::with_capacity(num_files);
    for entry in head[HEADER_BYTES..].chunks_exact(ENTRY_BYTES) {
        let name = entry[..NAME_BYTES].split(|byte| *byte == 0).next().unwrap_or_default();
        let name = str::from_utf8(name).map_err(|_| TextError::Damaged("a file's name is not text"))?;
        let offset = u64_at(entry, NAME_BYTES)?;
        let end = offset.checked_add(u64_at(entry, NAME_BYTES + 8)?);
        let end = end.filter(|end| offset == end_of_last && *end <= bundle.len() as u64);
        let end = end.ok_or(TextError::Damaged("its files are not one after the other"))?;
        let file = bundle.slice(offset as usize..end as usize).ok_or(TextError::Damaged("a file is cut off"))?;
        files.push((name.to_owned(), file));
        end_of_last = end;
    }
    if end_of_last != bundle.len() as u64 {
        return Err(TextError::Damaged("something follows its files"));
    }
    Ok(files)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, TextError> {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(TextError::Damaged("it is cut off"))?;
    Ok(u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, TextError> {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(TextError::Damaged("it is cut off"))?;
    Ok(u64::from_le_bytes(*bytes))
}
