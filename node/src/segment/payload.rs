//! The payloads of a segment: stored documents in LZ4 blocks of a few KiB, so that reading one unpacks little.

use std::io::{self, Write};

use super::SegmentError;
use super::row_table::PayloadPosition;
use crate::mapped::Blob;

/// Bytes of a block, unpacked, beyond which it is closed.
const BLOCK_BYTES: usize = 4096;
/// Bytes before a block: unpacked and packed length, u32 little-endian each.
const BLOCK_HEADER: usize = 8;
/// Most bytes of an unpacked block that a reader accepts.
const MAX_BLOCK_BYTES: usize = 256 << 20;

/// Writes payloads one after the other.
pub(super) struct PayloadWriter<W> {
    out: W,
    block: Vec<u8>,
    block_start: u64,
}

impl<W: Write> PayloadWriter<W> {
    /// A writer onto `out`, which must be empty.
    pub(super) fn new(out: W) -> Self {
        Self { out, block: Vec::new(), block_start: 0 }
    }

    /// Adds a payload and says where it lies.
    ///
    /// # Errors
    /// [`SegmentError::Io`], or [`SegmentError::TooLarge`] for a payload beyond the bound of a block.
    pub(super) fn add(&mut self, payload: &[u8]) -> Result<PayloadPosition, SegmentError> {
        if payload.len() > MAX_BLOCK_BYTES - BLOCK_BYTES {
            return Err(SegmentError::TooLarge);
        }
        if self.block.len() >= BLOCK_BYTES {
            self.close_block()?;
        }
        let start = self.block.len() as u32;
        self.block.extend_from_slice(payload);
        Ok(PayloadPosition { block: self.block_start, start, len: payload.len() as u32 })
    }

    fn close_block(&mut self) -> io::Result<()> {
        let packed = lz4_flex::block::compress(&self.block);
        self.out.write_all(&(self.block.len() as u32).to_le_bytes())?;
        self.out.write_all(&(packed.len() as u32).to_le_bytes())?;
        self.out.write_all(&packed)?;
        self.block_start += (BLOCK_HEADER + packed.len()) as u64;
        self.block.clear();
        Ok(())
    }

    /// Closes the last block and gives the output back.
    ///
    /// # Errors
    /// [`SegmentError::Io`].
    pub(super) fn finish(mut self) -> Result<W, SegmentError> {
        if !self.block.is_empty() {
            self.close_block()?;
        }
        Ok(self.out)
    }
}

/// The payloads of an open segment.
pub(super) struct PayloadFile {
    blob: Blob,
}

impl PayloadFile {
    /// Opens a payload file. Positions are checked when they are read.
    pub(super) fn open(blob: Blob) -> Self {
        Self { blob }
    }

    /// Unpacks one payload.
    ///
    /// # Errors
    /// [`SegmentError::Mismatch`] where the position or the block is not what it should be.
    pub(super) fn read(&self, position: PayloadPosition) -> Result<Vec<u8>, SegmentError> {
        const OFF: SegmentError = SegmentError::Mismatch("payload: a block out of bounds");
        if position.len == 0 {
            // Empty payloads at the end belong to a block that was never written.
            return Ok(Vec::new());
        }
        let start = usize::try_from(position.block).map_err(|_| OFF)?;
        let header = self.blob.get(start..start.saturating_add(BLOCK_HEADER)).ok_or(OFF)?;
        let word = |at: usize| header.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
        let (Some(unpacked_len), Some(packed_len)) = (word(0), word(4)) else { return Err(OFF) };
        if unpacked_len as usize > MAX_BLOCK_BYTES {
            return Err(OFF);
        }
        let from = start + BLOCK_HEADER;
        let packed = self.blob.get(from..from.saturating_add(packed_len as usize)).ok_or(OFF)?;
        let block = lz4_flex::block::decompress(packed, unpacked_len as usize)
            .map_err(|_| SegmentError::Mismatch("payload: a block that does not unpack"))?;
        let range = position.start as usize..position.start as usize + position.len as usize;
        block.get(range).map(<[u8]>::to_vec).ok_or(OFF)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn empty_payloads_need_no_block() {
        for lens in [&[0, 0][..], &[5000, 0], &[3, 0, 4]] {
            let mut writer = PayloadWriter::new(Vec::new());
            let positions: Vec<_> = lens.iter().map(|len| writer.add(&vec![1; *len]).unwrap()).collect();
            let file = PayloadFile::open(Blob::from_bytes(&writer.finish().unwrap()));
            for (len, position) in lens.iter().zip(positions) {
                assert_eq!(file.read(position).unwrap().len(), *len);
            }
        }
    }

    #[test]
    fn payloads_come_back_and_positions_out_of_bounds_do_not() {
        let mut writer = PayloadWriter::new(Vec::new());
        let payloads: Vec<Vec<u8>> = (0..200).map(|n| vec![n as u8; n * 37]).collect();
        let positions: Vec<_> = payloads.iter().map(|payload| writer.add(payload).unwrap()).collect();
        let file = PayloadFile::open(Blob::from_bytes(&writer.finish().unwrap()));
        for (payload, position) in payloads.iter().zip(&positions) {
            assert_eq!(&file.read(*position).unwrap(), payload);
        }
        let last = positions[199];
        assert!(file.read(PayloadPosition { block: u64::MAX, ..last }).is_err());
        assert!(file.read(PayloadPosition { start: u32::MAX, ..last }).is_err());
        assert!(file.read(PayloadPosition { block: last.block + 1, ..last }).is_err());
    }
}
