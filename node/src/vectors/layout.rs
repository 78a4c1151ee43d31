//! The header of a vectors file: where its sections begin, and what they hold.
//!
//! Not for reading rows. Byte layout, little-endian throughout:
//!
//! | offset | type | field |
//! |---|---|---|
//! | 0 | 4 bytes | magic `APHV` |
//! | 4 | u16 | version, 1 |
//! | 6 | u8 | metric that norms and duplicates were computed for: 1 cosine, 2 dot, 3 Euclidean, 4 Hamming |
//! | 7 | u8 | element type that duplicates were found for: 1 float32, 2 float16, 3 bfloat16, 4 int8, 5 bit, 0 none |
//! | 8 | u32 | dimensions |
//! | 12 | u32 | rows of the segment |
//! | 16 | u32 | vectors in the file; equal to the rows where no document lacks one |
//! | 20 | u32 | duplicates |
//! | 24 | f32 | the greatest norm, 0 for an empty file |
//! | 28 | 4 bytes | zero |
//! | 32 | 4 × u64 | offsets: norms, row ids, duplicates, end of file |
//! | 64 | 60 bytes | zero |
//! | 124 | u32 | CRC-32 (IEEE) of bytes 0..124 |
//!
//! Sections follow in this order: the vectors at byte 128 (float32, one after another), the norms (f32 each), the row
//! ids (u32 each, ascending; absent where every row has a vector), the duplicates (three lists of u32: slots of
//! duplicates, ascending; then, ordered by both, the node of each duplicate; then its slot). A slot is a vector's
//! place in the file. Invariant: a header that was read describes sections that lie within the file.

use crate::vectors::{ElementType, Metric, VectorFileError};

pub(super) const HEADER_LEN: usize = 128;
const MAGIC: [u8; 4] = *b"APHV";
const VERSION: u16 = 1;
const CRC_AT: usize = HEADER_LEN - 4;

/// What a header says, offsets left out, for they follow from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Header {
    pub(super) metric: Metric,
    pub(super) element: Option<ElementType>,
    pub(super) dims: u32,
    pub(super) num_rows: u32,
    pub(super) count: u32,
    pub(super) num_duplicates: u32,
    pub(super) max_norm: f32,
}

/// Where the sections begin, in bytes; each ends where the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sections {
    pub(super) norms: u64,
    pub(super) row_ids: u64,
    pub(super) duplicates: u64,
    pub(super) end: u64,
}

impl Header {
    pub(super) fn is_dense(&self) -> bool {
        self.count == self.num_rows
    }

    /// The sections of a file with this header, or `None` where they are longer than a file can be.
    pub(super) fn sections(&self) -> Option<Sections> {
        let count = u64::from(self.count);
        let rows_len = count.checked_mul(u64::from(self.dims))?.checked_mul(4)?;
        let norms = (HEADER_LEN as u64).checked_add(rows_len)?;
        let row_ids = norms.checked_add(count * 4)?;
        let duplicates = row_ids.checked_add(if self.is_dense() { 0 } else { count * 4 })?;
        let end = duplicates.checked_add(u64::from(self.num_duplicates) * 12)?;
        Some(Sections { norms, row_ids, duplicates, end })
    }

    pub(super) fn to_bytes(self) -> Option<[u8; HEADER_LEN]> {
        let sections = self.sections()?;
        let mut bytes = [0; HEADER_LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6] = self.metric.code();
        bytes[7] = self.element.map_or(0, ElementType::code);
        for (at, value) in [(8, self.dims), (12, self.num_rows), (16, self.count), (20, self.num_duplicates)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes[24..28].copy_from_slice(&self.max_norm.to_le_bytes());
        let offsets = [sections.norms, sections.row_ids, sections.duplicates, sections.end];
        for (slot, offset) in bytes[32..64].as_chunks_mut::<8>().0.iter_mut().zip(offsets) {
            *slot = offset.to_le_bytes();
        }
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        Some(bytes)
    }

    /// Reads the header of `file` and checks that its sections are those that a writer would have made, and that they
    /// fill the file.
    pub(super) fn read(file: &[u8]) -> Result<(Self, Sections), VectorFileError> {
        let corrupt = |reason| VectorFileError::Corrupt { reason };
        let bytes: &[u8; HEADER_LEN] = file.first_chunk().ok_or(corrupt("shorter than its header"))?;
        if bytes[..4] != MAGIC {
            return Err(corrupt("wrong magic"));
        }
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if u16_at(4) != VERSION {
            return Err(VectorFileError::Mismatch {
                what: "format version",
                expected: u64::from(VERSION),
                found: u64::from(u16_at(4)),
            });
        }
        if crc32fast::hash(&bytes[..CRC_AT]) != u32_at(CRC_AT) {
            return Err(corrupt("the header's checksum does not fit"));
        }
        let element = match bytes[7] {
            0 => None,
            code => Some(ElementType::from_code(code).ok_or(corrupt("unknown element type"))?),
        };
        let header = Self {
            metric: Metric::from_code(bytes[6]).ok_or(corrupt("unknown metric"))?,
            element,
            dims: u32_at(8),
            num_rows: u32_at(12),
            count: u32_at(16),
            num_duplicates: u32_at(20),
            max_norm: f32::from_bits(u32_at(24)),
        };
        if header.count > header.num_rows || header.num_duplicates > header.count {
            return Err(corrupt("more vectors than rows, or more duplicates than vectors"));
        }
        let sections = header.sections().ok_or(corrupt("sections longer than a file"))?;
        // The offsets are there for whoever reads a file by hand; they follow from the counts.
        if header.to_bytes().as_ref() != Some(bytes) {
            return Err(corrupt("offsets do not follow from the counts"));
        }
        if sections.end != file.len() as u64 {
            return Err(corrupt("the file's length is not that of its sections"));
        }
        Ok((header, sections))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const HEADER: Header = Header {
        metric: Metric::Dot,
        element: Some(ElementType::Float16),
        dims: 3,
        num_rows: 10,
        count: 4,
        num_duplicates: 2,
        max_norm: 1.5,
    };

    #[test]
    fn a_header_is_read_as_written() {
        let sections = HEADER.sections().unwrap();
        assert_eq!(sections, Sections { norms: 176, row_ids: 192, duplicates: 208, end: 232 });
        let mut file = HEADER.to_bytes().unwrap().to_vec();
        file.resize(232, 0);
        assert_eq!(Header::read(&file).unwrap(), (HEADER, sections));
        file.push(0);
        assert!(Header::read(&file).is_err());
    }

    #[test]
    fn sections_beyond_any_file_are_refused() {
        let header = Header { dims: u32::MAX, num_rows: u32::MAX, count: u32::MAX, ..HEADER };
        assert!(header.sections().is_none() || header.sections().unwrap().end > u64::from(u32::MAX));
    }
}
