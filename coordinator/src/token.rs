//! Opaque tokens: the version of a write and the snapshot of an answer. Both name positions of shards; neither holds state.
//!
//! Bytes: a protobuf body and its CRC-32 (IEEE, little-endian), in URL-safe base64 without padding.

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::ViewName;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;

/// Longest token read, in bytes.
const MAX_TOKEN_BYTES: usize = 64 << 10;

/// What a token says.
#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(enumeration = "Kind", tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    collection_uid: String,
    #[prost(message, repeated, tag = "3")]
    positions: Vec<Position>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum Kind {
    Unspecified = 0,
    Version = 1,
    Snapshot = 2,
}

/// A position of one shard.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Position {
    /// The shard.
    #[prost(uint32, tag = "1")]
    pub shard: u32,
    /// Its log position.
    #[prost(uint64, tag = "2")]
    pub seq: u64,
    /// In snapshots, its manifest.
    #[prost(uint64, tag = "3")]
    pub manifest_version: u64,
}

impl Position {
    /// The view at the position.
    pub fn view(&self) -> ViewName {
        ViewName { seq: self.seq, manifest_version: self.manifest_version }
    }
}

/// Makes the version of a write.
pub fn version(collection_uid: &str, positions: Vec<Position>) -> String {
    encode(Kind::Version, collection_uid, positions)
}

/// Makes the snapshot of an answer.
pub fn snapshot(collection_uid: &str, positions: Vec<Position>) -> String {
    encode(Kind::Snapshot, collection_uid, positions)
}

fn encode(kind: Kind, collection_uid: &str, positions: Vec<Position>) -> String {
    let body = Body { kind: kind as i32, collection_uid: collection_uid.to_owned(), positions };
    let mut bytes = body.encode_to_vec();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads the version passed as `at_least`.
///
/// # Errors
/// TOKEN_MALFORMED for anything that no answer of this collection gave.
pub fn read_version(token: &str, collection_uid: &str) -> Result<Vec<Position>, ApiError> {
    read(token, Kind::Version, collection_uid, "options.at_least")
}

/// Reads a snapshot.
///
/// # Errors
/// TOKEN_MALFORMED for no token; SNAPSHOT_EXPIRED for one of an earlier collection of the name.
pub fn read_snapshot(token: &str, collection_uid: &str) -> Result<Vec<Position>, ApiError> {
    read(token, Kind::Snapshot, collection_uid, "options.snapshot")
}

fn read(token: &str, kind: Kind, collection_uid: &str, field: &str) -> Result<Vec<Position>, ApiError> {
    let malformed = || ApiError::field(ErrorKind::TokenMalformed, field, "not a token that an answer gave");
    if token.len() > MAX_TOKEN_BYTES {
        return Err(malformed());
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| malformed())?;
    let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(malformed)?;
    if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
        return Err(malformed());
    }
    let body = Body::decode(body).map_err(|_| malformed())?;
    if body.kind != kind as i32 {
        return Err(malformed());
    }
    if body.collection_uid != collection_uid {
        return match kind {
            Kind::Snapshot => Err(ApiError::new(
                ErrorKind::SnapshotExpired,
                "the snapshot is of another collection, or of one that was deleted",
            )),
            Kind::Version | Kind::Unspecified => Err(malformed()),
        };
    }
    Ok(body.positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_and_forgeries_do_not() {
        let positions = vec![Position { shard: 3, seq: 17, manifest_version: 2 }];
        let token = snapshot("uid", positions.clone());
        assert_eq!(read_snapshot(&token, "uid").ok(), Some(positions));
        assert_eq!(read_version(&token, "uid").map_err(|e| e.kind()), Err(ErrorKind::TokenMalformed));
        assert_eq!(read_snapshot(&token, "other").map_err(|e| e.kind()), Err(ErrorKind::SnapshotExpired));
        for bad in ["", "x", "####", &token[1..], &token.to_uppercase(), &"A".repeat(70_000)] {
            assert_eq!(read_snapshot(bad, "uid").map_err(|e| e.kind()), Err(ErrorKind::TokenMalformed), "{bad:.20}");
        }
    }
}
