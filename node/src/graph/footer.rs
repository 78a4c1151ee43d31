//! The last bytes of a graph file: what usearch's own format does not say.
//!
//! A graph file is a usearch 2.26 index, then the strays (u32 slots, ascending), then 32 bytes, little-endian throughout:
//! magic `APHG`, u16 version 1, u8 metric and u8 element type (numbers as in the vectors file), u32 dimensions, u32 nodes,
//! u32 strays, f32 scale of the encoder, u8 distance that it was built with (1 inner product, 2 squared Euclidean, 3 Hamming), 3 zero
//! bytes, u32 CRC-32 of the 28 bytes before. Invariant: a file that lost its end is no graph.

use usearch::MetricKind;

use crate::graph::{GraphError, GraphParams};

const LEN: usize = 32;
const CRC_AT: usize = LEN - 4;
const MAGIC: [u8; 4] = *b"APHG";
const VERSION: u16 = 1;

/// What follows the index in a graph file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Footer {
    /// Nodes in the index.
    pub(super) count: u32,
    /// The encoder's scale.
    pub(super) scale: f32,
    /// The distance that the index was built with.
    pub(super) distance: MetricKind,
    /// Slots that the index holds but does not find, ascending.
    pub(super) strays: Vec<u32>,
}

impl Footer {
    pub(super) fn to_bytes(&self, params: &GraphParams) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.strays.iter().flat_map(|slot| slot.to_le_bytes()).collect();
        bytes.extend(self.fixed_part(params));
        bytes
    }

    fn fixed_part(&self, params: &GraphParams) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6] = params.metric.code();
        bytes[7] = params.element.code();
        // Fields of documents have far fewer dimensions than 2³², and strays are some of the nodes.
        bytes[8..12].copy_from_slice(&(params.dims as u32).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.count.to_le_bytes());
        bytes[16..20].copy_from_slice(&(self.strays.len() as u32).to_le_bytes());
        bytes[20..24].copy_from_slice(&self.scale.to_le_bytes());
        bytes[24] = distance_code(self.distance);
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The footer of a graph of `count` nodes that was built with `params`, and the length of the index before it.
    pub(super) fn read(file: &[u8], params: &GraphParams, count: u32) -> Result<(usize, Self), GraphError> {
        let corrupt = |reason| GraphError::Corrupt { reason };
        let (before, fixed) = file.split_last_chunk::<LEN>().ok_or(corrupt("shorter than its footer"))?;
        if fixed[..4] != MAGIC {
            return Err(corrupt("no footer"));
        }
        if crc32fast::hash(&fixed[..CRC_AT]).to_le_bytes() != fixed[CRC_AT..] {
            return Err(corrupt("the footer's checksum does not fit"));
        }
        let u32_at = |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let strays_len = u32_at(16) as usize * 4;
        let index_len = before.len().checked_sub(strays_len).ok_or(corrupt("shorter than its strays"))?;
        let strays = before[index_len..].as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let footer = Self {
            count,
            scale: f32::from_bits(u32_at(20)),
            distance: distance_of_code(fixed[24]).ok_or(corrupt("unknown distance"))?,
            strays,
        };
        let expected = footer.fixed_part(params);
        if *fixed != expected {
            let describe = |bytes: &[u8; LEN]| format!("{:02x?}", &bytes[4..16]);
            return Err(GraphError::Mismatch {
                what: "footer (version, metric, element type, dimensions, nodes)",
                expected: describe(&expected),
                found: describe(fixed),
            });
        }
        Ok((index_len, footer))
    }
}

fn distance_code(distance: MetricKind) -> u8 {
    match distance {
        MetricKind::IP => 1,
        MetricKind::Hamming => 3,
        _ => 2,
    }
}

fn distance_of_code(code: u8) -> Option<MetricKind> {
    match code {
        1 => Some(MetricKind::IP),
        2 => Some(MetricKind::L2sq),
        3 => Some(MetricKind::Hamming),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::graph::ElementType;
    use crate::vectors::Metric;

    #[test]
    fn only_the_footer_that_was_written_is_read() {
        let params = GraphParams {
            dims: 3,
            metric: Metric::Dot,
            element: ElementType::BFloat16,
            connectivity: 16,
            expansion_add: 128,
        };
        let footer = Footer { count: 5, scale: 0.25, distance: MetricKind::L2sq, strays: vec![1, 4] };
        let mut file = vec![7; 10];
        file.extend(footer.to_bytes(&params));
        assert_eq!(Footer::read(&file, &params, 5).unwrap(), (10, footer));
        assert!(matches!(Footer::read(&file, &params, 6), Err(GraphError::Mismatch { .. })));
        for len in 0..file.len() {
            assert!(matches!(Footer::read(&file[..len], &params, 5), Err(GraphError::Corrupt { .. })));
        }
        for at in 18..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(Footer::read(&damaged, &params, 5).is_err());
        }
    }
}
