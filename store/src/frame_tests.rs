//! The bytes of a frame as documented, and that no damaged frame is read.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const NONCE: Nonce = *b"0123456789abcdef";
const PATH: &str = "catalog/00000000000000000001";

/// The layout of docs/formats/objects.md. If this test must be changed, so must the format's version.
#[test]
fn layout_is_as_documented() {
    let bytes = encode(Kind::Log, 1, PATH, NONCE, b"hello");
    let expected: &[u8] = &[
        b'A', b'N', b'T', b'L', // magic
        1, 0, // version
        0, 0, // flags
        5, 0, 0, 0, 0, 0, 0, 0, // body bytes
        b'0', b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8', b'9', b'a', b'b', b'c', b'd', b'e', b'f', // nonce
        0x4b, 0x89, 0x45, 0x9e, // CRC-32 of the path
        0x86, 0xa6, 0x10, 0x36, // CRC-32 of the body
        0x31, 0xd2, 0x1e, 0x6b, // CRC-32 of the 40 bytes above
        b'h', b'e', b'l', b'l', b'o',
    ];
    assert_eq!(bytes, expected);
    assert_eq!(&encode(Kind::Catalog, 1, PATH, NONCE, b"")[..4], b"ANTC");
    assert_eq!(&encode(Kind::Manifest, 1, PATH, NONCE, b"")[..4], b"ANTM");
    assert_eq!(&encode(Kind::Backup, 1, PATH, NONCE, b"")[..4], b"ANTB");
}

#[test]
fn what_was_written_is_read() {
    for body in [&b""[..], b"x", &[7; 10_000]] {
        let frame = decode(Kind::Manifest, 3, PATH, encode(Kind::Manifest, 2, PATH, NONCE, body)).unwrap();
        assert_eq!(frame.version, 2);
        assert_eq!(frame.nonce, NONCE);
        assert_eq!(frame.body, body);
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = encode(Kind::Log, 1, PATH, NONCE, b"a body of some bytes");
    for len in 0..bytes.len() {
        assert!(decode(Kind::Log, 1, PATH, bytes.slice(..len)).is_err(), "{len}");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(matches!(decode(Kind::Log, 1, PATH, longer.into()), Err(FrameError::Length { .. })));
}

#[test]
fn every_flipped_bit_is_an_error() {
    let bytes = encode(Kind::Log, 1, PATH, NONCE, b"a body of some bytes");
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(Kind::Log, u16::MAX, PATH, damaged.into()).is_err(), "bit {bit}");
    }
}

#[test]
fn other_kinds_and_newer_versions_are_refused() {
    let log = encode(Kind::Log, 2, PATH, NONCE, b"x");
    assert!(matches!(decode(Kind::Manifest, 2, PATH, log.clone()), Err(FrameError::Magic { .. })));
    assert_eq!(decode(Kind::Log, 1, PATH, log), Err(FrameError::Version { found: 2, max: 1 }));
    let zero = encode(Kind::Log, 0, PATH, NONCE, b"x");
    assert_eq!(decode(Kind::Log, 1, PATH, zero), Err(FrameError::Version { found: 0, max: 1 }));
}

#[test]
fn a_frame_under_another_name_is_refused() {
    let bytes = encode(Kind::Log, 1, PATH, NONCE, b"x");
    assert!(decode(Kind::Log, 1, PATH, bytes.clone()).is_ok());
    for other in
        ["catalog/00000000000000000002", "catalog/00000000000000000010", "", "collections/u/shards/00000/log/1"]
    {
        assert_eq!(decode(Kind::Log, 1, other, bytes.clone()), Err(FrameError::Place), "{other}");
    }
}

proptest! {
    #[test]
    fn any_body_comes_back(body: Vec<u8>, nonce: [u8; 16], version in 1u16..) {
        let frame = decode(Kind::Catalog, u16::MAX, PATH, encode(Kind::Catalog, version, PATH, nonce, &body)).unwrap();
        prop_assert_eq!(frame, Frame { version, nonce, body: body.into() });
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = decode(Kind::Log, 1, PATH, Bytes::from(bytes));
    }
}
