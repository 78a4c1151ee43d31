//! Compression, keys, line numbers and rejects of files as read.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write as _;

use super::*;

const TEXT: &str = "\u{feff}{\"key\":\"a\"}\r\n\n  \nnonsense\n{\"fields\":{\"n\":1}}";

async fn all(name: &str, bytes: &[u8]) -> Vec<Read> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let mut reading = read(vec![path.clone(), path], Attributes::default(), true, 1);
    let mut out = Vec::new();
    while let Some(read) = reading.recv().await {
        out.push(read);
    }
    out
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    // Two members, as `cat a.gz b.gz` makes.
    for part in [&text[..20], &text[20..]] {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part.as_bytes()).unwrap();
        out.extend(encoder.finish().unwrap());
    }
    out
}

#[tokio::test]
async fn plain_gzip_and_zstd_read_the_same() {
    let zstd = zstd::encode_all(TEXT.as_bytes(), 1).unwrap();
    for (name, bytes) in [
        ("a.jsonl", TEXT.as_bytes().to_vec()),
        ("a.jsonl.gz", gzip(TEXT)),
        ("a.jsonl.zst", zstd.clone()),
        ("gzip-by-magic", gzip(TEXT)),
        ("zstd-by-magic", zstd),
    ] {
        let reads = all(name, &bytes).await;
        assert_eq!(reads.len(), 6, "{name}: {reads:?}");
        let [Read::Document(a), Read::Reject(rejected), Read::Document(b)] = &reads[..3] else {
            panic!("{name}: {reads:?}")
        };
        assert_eq!((a.document.key.as_str(), a.origin.line, a.has_generated_key), ("a", 1, false));
        assert_eq!((rejected.origin.line, rejected.raw.as_deref()), (4, Some("nonsense")));
        assert_eq!((b.origin.line, b.has_generated_key, b.document.key.len()), (5, true, 26));
        let Read::Document(last) = &reads[5] else { panic!("{name}: {reads:?}") };
        assert_eq!(last.bytes_read, bytes.len() as u64 * 2, "{name}");
        assert_ne!(last.document.key, b.document.key);
    }
}

#[tokio::test]
async fn a_torn_file_fails_after_what_could_be_read() {
    let whole = gzip(TEXT);
    let reads = all("torn.gz", &whole[..whole.len() - 4]).await;
    assert!(
        matches!(reads.last(), Some(Read::Failed(failure)) if failure.to_string().contains("torn.gz")),
        "{reads:?}"
    );
    let mut reading = read(vec![PathBuf::from("/nowhere/x.jsonl")], Attributes::default(), false, 1);
    assert!(matches!(reading.recv().await, Some(Read::Failed(_))));
    assert!(reading.recv().await.is_none());
}

#[tokio::test]
async fn an_empty_file_holds_nothing() {
    assert!(all("empty.jsonl", b"").await.is_empty());
}
