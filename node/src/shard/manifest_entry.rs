//! Segments as a manifest lists them.

use antiphon_proto::store::{SegmentEntry, SegmentFile};
use antiphon_store::SegmentId;
use roaring::RoaringBitmap;

use crate::error::NodeError;
use crate::segment::{BuiltSegment, FORMAT_VERSION};

/// The entry of a new segment, without tombstones.
pub(super) fn entry_of(id: &SegmentId, built: &BuiltSegment) -> SegmentEntry {
    let files = built
        .files
        .iter()
        .map(|file| SegmentFile { name: file.name.clone(), size_bytes: file.size_bytes, crc32: file.crc32 })
        .collect();
    SegmentEntry {
        id: id.as_str().to_owned(),
        format_version: FORMAT_VERSION,
        num_rows: built.num_rows,
        files,
        tombstones: Vec::new(),
    }
}

/// Tombstones as bytes; empty when there are none.
pub(super) fn encode_tombstones(dead: &RoaringBitmap) -> Result<Vec<u8>, NodeError> {
    let mut bytes = Vec::new();
    if !dead.is_empty() {
        dead.serialize_into(&mut bytes).map_err(|error| NodeError::Internal(error.to_string()))?;
    }
    Ok(bytes)
}

/// Tombstones from bytes.
pub(super) fn decode_tombstones(bytes: &[u8]) -> Result<RoaringBitmap, NodeError> {
    if bytes.is_empty() {
        return Ok(RoaringBitmap::new());
    }
    RoaringBitmap::deserialize_from(bytes)
        .map_err(|error| NodeError::Corruption(format!("a manifest's tombstones cannot be read: {error}")))
}
