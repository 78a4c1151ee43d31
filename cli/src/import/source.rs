//! Files and standard input, decompressed, a document a line, read on a thread of their own.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as IoRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use tokio::sync::mpsc;
use ulid::Ulid;

use super::attributes::Attributes;
use super::batch::{Item, Origin};
use super::document::parse_document;
use super::lines::{LineRead, read_line};
use super::rejects::Rejected;
use crate::failure::Failure;

/// Most bytes of a line: what a server takes in one message unless configured otherwise, and JSON is longer than that.
const MAX_LINE_BYTES: usize = 64 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// What a source yields.
#[derive(Debug)]
pub(crate) enum Read {
    /// A document.
    Document(Item),
    /// A line that is none.
    Reject(Rejected),
    /// A file that can't be read further; the last thing that comes.
    Failed(Failure),
}

/// Bytes of all files together, where all of them are files whose length is known.
pub(crate) fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    files
        .iter()
        .map(|path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|data| data.len()))
        .sum()
}

/// Reads files one after the other; `-` is standard input. `attributes` are those of the collection.
pub(crate) fn read(
    files: Vec<PathBuf>,
    attributes: Attributes,
    keeps_raw: bool,
    read_ahead: usize,
) -> mpsc::Receiver<Read> {
    let (sender, receiver) = mpsc::channel(read_ahead);
    tokio::task::spawn_blocking(move || {
        let bytes_read = Arc::new(AtomicU64::new(0));
        for path in &files {
            match read_file(path, &attributes, keeps_raw, &bytes_read, &sender) {
                Ok(true) => {}
                // Nobody listens any more.
                Ok(false) => return,
                Err(error) => {
                    let failure = Failure::of(format!("can't read {}", path.display()), &error);
                    let _ = sender.blocking_send(Read::Failed(failure));
                    return;
                }
            }
        }
    });
    receiver
}

/// Whether somebody still listens.
fn read_file(
    path: &Path,
    attributes: &Attributes,
    keeps_raw: bool,
    bytes_read: &Arc<AtomicU64>,
    sender: &mpsc::Sender<Read>,
) -> io::Result<bool> {
    let is_stdin = path == Path::new("-");
    let file: Arc<str> = if is_stdin { "stdin".into() } else { path.to_string_lossy().into() };
    let raw: Box<dyn IoRead> = if is_stdin { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    let counted = Counted { inner: raw, bytes_read: Arc::clone(bytes_read) };
    let mut reader = decompress(counted, path.extension().and_then(|extension| extension.to_str()))?;
    let mut buffer = Vec::new();
    for line in 1.. {
        let origin = Origin { file: Arc::clone(&file), line };
        let reject = |reason: String, raw: &[u8]| {
            let raw = keeps_raw.then(|| String::from_utf8_lossy(raw).into_owned());
            Read::Reject(Rejected { origin: origin.clone(), reason, raw })
        };
        let read = match read_line(&mut reader, &mut buffer, MAX_LINE_BYTES)? {
            LineRead::End => break,
            LineRead::TooLong => reject(format!("is longer than {MAX_LINE_BYTES} bytes"), &buffer[..1024]),
            LineRead::Whole => {
                let text =
                    if line == 1 { buffer.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&buffer) } else { &buffer };
                let text = text.trim_ascii();
                if text.is_empty() {
                    continue;
                }
                let document = parse_document(text).and_then(|mut document| {
                    attributes.apply(&mut document)?;
                    Ok(document)
                });
                match document {
                    Err(reason) => reject(reason, text),
                    Ok(mut document) => {
                        let has_generated_key = document.key.is_empty();
                        if has_generated_key {
                            document.key = Ulid::generate().to_string().to_lowercase();
                        }
                        let raw = keeps_raw.then(|| String::from_utf8_lossy(text).into_owned());
                        let bytes_read = bytes_read.load(Ordering::Relaxed);
                        Read::Document(Item { origin, document, raw, has_generated_key, bytes_read })
                    }
                }
            }
        };
        if sender.blocking_send(read).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A plain reader, by the file's extension or the first bytes of what it holds.
fn decompress<R: IoRead + 'static>(reader: R, extension: Option<&str>) -> io::Result<Box<dyn BufRead>> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, reader);
    let start = loop {
        match reader.fill_buf() {
            Ok(start) => break start,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let is_gzip = extension == Some("gz") || start.starts_with(&[0x1F, 0x8B]);
    let is_zstd = extension == Some("zst") || start.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]);
    Ok(if is_gzip {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(reader)))
    } else if is_zstd {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, zstd::stream::read::Decoder::with_buffer(reader)?))
    } else {
        Box::new(reader)
    })
}

/// Counts what is read of a file, compressed as it may be.
struct Counted<R> {
    inner: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R: IoRead> IoRead for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let num_bytes = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(num_bytes as u64, Ordering::Relaxed);
        Ok(num_bytes)
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
