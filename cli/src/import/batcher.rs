//! Groups documents into batches by number and bytes. A source that dawdles doesn't hold documents back for long.

use std::time::Duration;

use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::batch::{Batch, Item};
use super::rejects::Rejected;
use super::source::Read;
use crate::failure::Failure;

/// How long an unfinished batch waits for more.
const LINGER: Duration = Duration::from_millis(500);

/// When a batch is full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    /// So many documents.
    pub(crate) max_docs: usize,
    /// So many bytes; a single document may be larger.
    pub(crate) max_bytes: usize,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A batch, never empty.
    Batch(Batch),
    /// A line that is no document.
    Reject(Rejected),
    /// Reading failed: nothing more will come.
    Failed(Failure),
    /// All was read.
    End,
}

/// Documents from a source, in batches.
#[derive(Debug)]
pub(crate) struct Batcher {
    source: mpsc::Receiver<Read>,
    limits: BatchLimits,
    current: Batch,
    /// What was read and comes after the batch just given out.
    held: Option<Read>,
    flush_at: Instant,
}

impl Batcher {
    /// Batches of what a source reads.
    pub(crate) fn new(source: mpsc::Receiver<Read>, limits: BatchLimits) -> Self {
        Self { source, limits, current: Batch::default(), held: None, flush_at: Instant::now() }
    }

    /// The next batch or event. Can be dropped at any time without losing anything.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            let read = match self.held.take() {
                Some(read) => Some(read),
                None if self.current.is_empty() => self.source.recv().await,
                None => match tokio::time::timeout_at(self.flush_at, self.source.recv()).await {
                    Ok(read) => read,
                    Err(_) => return self.flush(),
                },
            };
            match read {
                Some(Read::Document(item)) if self.is_room_for(&item) => {
                    if let Some(batch) = self.add(item) {
                        return Next::Batch(batch);
                    }
                }
                Some(document @ Read::Document(_)) => {
                    self.held = Some(document);
                    return self.flush();
                }
                Some(Read::Reject(rejected)) => return Next::Reject(rejected),
                Some(Read::Failed(failure)) if self.current.is_empty() => return Next::Failed(failure),
                Some(failed @ Read::Failed(_)) => {
                    self.held = Some(failed);
                    return self.flush();
                }
                None if self.current.is_empty() => return Next::End,
                None => return self.flush(),
            }
        }
    }

    fn flush(&mut self) -> Next {
        Next::Batch(std::mem::take(&mut self.current))
    }

    fn is_room_for(&self, item: &Item) -> bool {
        self.current.is_empty() || self.current.num_bytes() + item.document.encoded_len() <= self.limits.max_bytes
    }

    fn add(&mut self, item: Item) -> Option<Batch> {
        if self.current.is_empty() {
            self.flush_at = Instant::now() + LINGER;
        }
        self.current.push(item);
        let is_full = self.current.len() >= self.limits.max_docs || self.current.num_bytes() >= self.limits.max_bytes;
        is_full.then(|| std::mem::take(&mut self.current))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use antiphon_proto::v1;

    use super::*;
    use crate::import::batch::Origin;

    fn item(key: &str) -> Read {
        let document = v1::Document { key: key.to_owned(), ..v1::Document::default() };
        let origin = Origin { file: "f".into(), line: 1 };
        Read::Document(Item { origin, document, raw: None, has_generated_key: false, bytes_read: 0 })
    }

    fn lengths(reads: Vec<Read>, max_docs: usize, max_bytes: usize) -> Vec<usize> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (sender, receiver) = mpsc::channel(reads.len().max(1));
            for read in reads {
                sender.send(read).await.unwrap();
            }
            drop(sender);
            let mut batcher = Batcher::new(receiver, BatchLimits { max_docs, max_bytes });
            let mut lengths = Vec::new();
            loop {
                match batcher.next().await {
                    Next::Batch(batch) => lengths.push(batch.len()),
                    Next::Failed(_) => lengths.push(0),
                    Next::Reject(_) => {}
                    Next::End => return lengths,
                }
            }
        })
    }

    #[test]
    fn batches_end_by_number_or_bytes() {
        let reads = || ["a", "b", "c", "d", "e"].map(item).into();
        assert_eq!(lengths(reads(), 2, 1 << 20), [2, 2, 1]);
        // A document with a key of one byte takes 3 bytes.
        assert_eq!(lengths(reads(), 100, 7), [2, 2, 1]);
        assert_eq!(lengths(reads(), 100, 1), [1, 1, 1, 1, 1]);
        let large = "x".repeat(100);
        assert_eq!(lengths(["a", "b", &large, "c"].map(item).into(), 100, 50), [2, 1, 1]);
        assert!(lengths(Vec::new(), 2, 1).is_empty());
    }

    #[test]
    fn what_was_read_before_a_failure_comes_first() {
        let reads = vec![item("a"), Read::Failed(Failure::new("torn"))];
        assert_eq!(lengths(reads, 10, 1000), [1, 0]);
    }

    #[tokio::test]
    async fn a_slow_source_holds_nothing_back() {
        let (sender, receiver) = mpsc::channel(1);
        sender.send(item("a")).await.unwrap();
        let mut batcher = Batcher::new(receiver, BatchLimits { max_docs: 10, max_bytes: 1000 });
        assert!(matches!(batcher.next().await, Next::Batch(batch) if batch.len() == 1));
        drop(sender);
    }
}
