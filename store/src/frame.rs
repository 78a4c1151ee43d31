//! The envelope around every message of ours in the store: what it is, which version, whose write, at which place, and
//! whether its bytes are whole. The bytes are described in docs/formats/objects.md.
//!
//! Not for segment files: those have their checksums in the manifest.
//!
//! Invariant: [`decode`] returns a body only if every byte of the object is one that [`encode`] wrote for that path. An
//! object that was copied to another name is refused: a log entry in the place of another would be a wrong answer.

use bytes::{BufMut, Bytes, BytesMut};

/// Bytes before the body.
pub const HEADER_BYTES: usize = 44;
/// The largest body that is written or read, in bytes.
pub const MAX_BODY_BYTES: u64 = 1 << 30;
/// Header bytes under the header's checksum.
const CHECKED_BYTES: usize = 40;

/// Random bytes by which a writer knows its own object again after a create whose outcome it did not hear.
pub type Nonce = [u8; 16];

/// Which message the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `antiphon.store.v1.Catalog`
    Catalog,
    /// `antiphon.store.v1.LogEntry`
    Log,
    /// `antiphon.store.v1.Manifest`
    Manifest,
    /// `antiphon.store.v1.Backup`
    Backup,
}

impl Kind {
    /// The first four bytes of such an object.
    pub fn magic(self) -> [u8; 4] {
        match self {
            Self::Catalog => *b"ANTC",
            Self::Log => *b"ANTL",
            Self::Manifest => *b"ANTM",
            Self::Backup => *b"ANTB",
        }
    }

    /// The format version this build writes, and the highest it reads.
    pub fn version(self) -> u16 {
        match self {
            Self::Catalog | Self::Log | Self::Manifest | Self::Backup => 1,
        }
    }
}

/// Why bytes are not a frame that this build can read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Shorter than a header.
    #[error("{0} bytes are too few for a header")]
    TooShort(usize),
    /// Another kind of object, or none of ours.
    #[error("the first bytes are {found:02x?}, not those of a {expected:?} object")]
    Magic {
        /// What was to be read.
        expected: Kind,
        /// What is there.
        found: [u8; 4],
    },
    /// The header's bytes are not those written.
    #[error("the header's checksum does not match")]
    HeaderChecksum,
    /// Written by a newer version of Antiphon (or by none: version 0).
    #[error("format version {found}, and this build reads 1 to {max}")]
    Version {
        /// The version of the object.
        found: u16,
        /// The highest that is understood.
        max: u16,
    },
    /// Flags that this build does not know.
    #[error("unknown flags {0:#06x}")]
    Flags(u16),
    /// Written for another path.
    #[error("it was written under another name")]
    Place,
    /// Cut off, or something follows.
    #[error("the header says {expected} bytes of body, and {found} are there")]
    Length {
        /// Bytes the header says.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// The body's bytes are not those written.
    #[error("the body's checksum does not match")]
    BodyChecksum,
}

/// A frame taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Format version of the body, at least 1.
    pub version: u16,
    /// Whose write it is.
    pub nonce: Nonce,
    /// The message, sharing the object's bytes.
    pub body: Bytes,
}

/// Puts `body` into a frame for the object at `path`, relative to the store's root.
pub fn encode(kind: Kind, version: u16, path: &str, nonce: Nonce, body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + body.len());
    out.put_slice(&kind.magic());
    out.put_u16_le(version);
    out.put_u16_le(0);
    out.put_u64_le(body.len() as u64);
    out.put_slice(&nonce);
    out.put_u32_le(crc32fast::hash(path.as_bytes()));
    out.put_u32_le(crc32fast::hash(body));
    let header_crc = crc32fast::hash(&out);
    out.put_u32_le(header_crc);
    out.put_slice(body);
    out.freeze()
}

/// Takes the frame of a `kind` object at `path` apart, refusing versions above `max_version`, any byte that was not
/// written, and what was written for another path.
pub fn decode(kind: Kind, max_version: u16, path: &str, bytes: Bytes) -> Result<Frame, FrameError> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(FrameError::TooShort(bytes.len()));
    };
    let found = take::<4>(header, 0);
    if found != kind.magic() {
        return Err(FrameError::Magic { expected: kind, found });
    }
    if crc32fast::hash(&header[..CHECKED_BYTES]) != u32::from_le_bytes(take(header, CHECKED_BYTES)) {
        return Err(FrameError::HeaderChecksum);
    }
    let version = u16::from_le_bytes(take(header, 4));
    if version == 0 || version > max_version {
        return Err(FrameError::Version { found: version, max: max_version });
    }
    let flags = u16::from_le_bytes(take(header, 6));
    if flags != 0 {
        return Err(FrameError::Flags(flags));
    }
    let expected = u64::from_le_bytes(take(header, 8));
    let nonce = take(header, 16);
    if u32::from_le_bytes(take(header, 32)) != crc32fast::hash(path.as_bytes()) {
        return Err(FrameError::Place);
    }
    let body_crc = u32::from_le_bytes(take(header, 36));
    let body = bytes.slice(HEADER_BYTES..);
    if body.len() as u64 != expected {
        return Err(FrameError::Length { expected, found: body.len() as u64 });
    }
    if crc32fast::hash(&body) != body_crc {
        return Err(FrameError::BodyChecksum);
    }
    Ok(Frame { version, nonce, body })
}

/// `N` bytes of the header from `at`; the callers' constants lie within it.
fn take<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&header[at..at + N]);
    out
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
