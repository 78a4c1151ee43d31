//! The last bytes of a graph file: what usearch's own format does not say.
//!
//! Layout of the 32 bytes, little-endian: magic `APHG`, u16 version 1, u8 metric and u8 element type (numbers as in the
//! vectors file), u32 dimensions of the field, u32 nodes, f32 scale of the encoder, 8 zero bytes, u32 CRC-32 of the 28
//! bytes before. The bytes before the footer are a usearch 2.26 index. Invariant: a file that lost its end is no graph.

use crate::graph::{GraphError, GraphParams};

pub(super) const FOOTER_LEN: usize = 32;
const MAGIC: [u8; 4] = *b"APHG";
const VERSION: u16 = 1;

/// The footer of a graph of `count` nodes.
pub(super) fn write(params: &GraphParams, count: u32, scale: f32) -> [u8; FOOTER_LEN] {
    let mut bytes = [0; FOOTER_LEN];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[6] = params.metric.code();
    bytes[7] = params.element.code();
    // usearch holds fewer dimensions than 2³².
    bytes[8..12].copy_from_slice(&(params.dims as u32).to_le_bytes());
    bytes[12..16].copy_from_slice(&count.to_le_bytes());
    bytes[16..20].copy_from_slice(&scale.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..28]);
    bytes[28..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The length of the usearch index and the encoder's scale, after checking that the footer is that of a graph of
/// `count` nodes built with `params`.
pub(super) fn read(file: &[u8], params: &GraphParams, count: u32) -> Result<(usize, f32), GraphError> {
    let (index, footer) =
        file.split_last_chunk::<FOOTER_LEN>().ok_or(GraphError::Corrupt { reason: "shorter than its footer" })?;
    if footer[..4] != MAGIC {
        return Err(GraphError::Corrupt { reason: "no footer" });
    }
    let scale = f32::from_le_bytes([footer[16], footer[17], footer[18], footer[19]]);
    if *footer == write(params, count, scale) {
        return Ok((index.len(), scale));
    }
    if crc32fast::hash(&footer[..28]).to_le_bytes() != footer[28..] {
        return Err(GraphError::Corrupt { reason: "the footer's checksum does not fit" });
    }
    let describe = |bytes: &[u8]| format!("{:02x?}", &bytes[4..16]);
    Err(GraphError::Mismatch {
        what: "footer (version, metric, element type, dimensions, nodes)",
        expected: describe(&write(params, count, scale)),
        found: describe(footer),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::vectors::{ElementType, Metric};

    #[test]
    fn only_the_footer_that_was_written_is_read() {
        let params = GraphParams {
            dims: 3,
            metric: Metric::Dot,
            element: ElementType::BFloat16,
            connectivity: 16,
            expansion_add: 128,
        };
        let mut file = vec![7; 10];
        file.extend(write(&params, 5, 0.25));
        assert_eq!(read(&file, &params, 5).unwrap(), (10, 0.25));
        assert!(matches!(read(&file, &params, 6), Err(GraphError::Mismatch { .. })));
        assert!(matches!(read(&file[..41], &params, 5), Err(GraphError::Corrupt { .. })));
        assert!(matches!(read(&[], &params, 5), Err(GraphError::Corrupt { .. })));
        for at in 10..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(read(&damaged, &params, 5).is_err());
        }
    }
}
