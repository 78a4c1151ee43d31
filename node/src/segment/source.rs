//! Where a build's rows come from: documents of a batch, or the live rows of other segments, in order of their folded
//! keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_proto::v1;
use prost::Message;
use roaring::RoaringBitmap;

use super::{Segment, SegmentError};

/// One row to build.
#[derive(Debug, Clone)]
pub struct BuildRow {
    /// As it was spelled.
    pub key: String,
    /// The log position that wrote it.
    pub seq: u64,
    /// The stored fields.
    pub fields: BTreeMap<String, v1::Value>,
    /// For each vector field, the components.
    pub vectors: Vec<Option<Vec<f32>>>,
}

impl BuildRow {
    /// The stored form of the fields.
    pub fn payload(&self) -> Vec<u8> {
        v1::Document { key: String::new(), vectors: BTreeMap::new(), fields: self.fields.clone() }.encode_to_vec()
    }
}

/// Calls `take` with the live rows of several segments in order of their folded keys. Live keys must be unique over the
/// segments (INV-4).
///
/// # Errors
/// What reading a row or `take` gives.
pub fn merge_segments(
    sources: &[(Arc<Segment>, Arc<RoaringBitmap>)],
    mut take: impl FnMut(BuildRow) -> Result<(), SegmentError>,
) -> Result<(), SegmentError> {
    let mut heads = std::collections::BinaryHeap::new();
    for (index, (segment, dead)) in sources.iter().enumerate() {
        if let Some(row) = next_live(segment, dead, 0) {
            heads.push(std::cmp::Reverse((segment.rows().folded_key(row).into_owned(), index, row)));
        }
    }
    while let Some(std::cmp::Reverse((_, index, row))) = heads.pop() {
        let (segment, dead) = &sources[index];
        take(segment.build_row(row)?)?;
        if let Some(next) = next_live(segment, dead, row + 1) {
            heads.push(std::cmp::Reverse((segment.rows().folded_key(next).into_owned(), index, next)));
        }
    }
    Ok(())
}

fn next_live(segment: &Segment, dead: &RoaringBitmap, from: u32) -> Option<u32> {
    (from..segment.num_rows()).find(|row| !dead.contains(*row))
}
