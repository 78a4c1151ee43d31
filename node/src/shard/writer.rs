//! Group commit: writes that wait together become one log object, are applied together and acknowledged together.

use std::sync::Arc;
use std::time::Instant;

use antiphon_proto::store::{LogEntry, LogOp};
use antiphon_store::{Log, Seq, Written};
use antiphon_telemetry::phase;
use prost::Message;
use tokio::sync::{mpsc, oneshot};
use tracing::{Instrument as _, Span};

use super::core::{Core, Mutation};
use crate::error::NodeError;
use crate::view::OpGroup;

/// A write that waits for its place in the log.
pub(super) struct PendingWrite {
    pub(super) ops: Vec<LogOp>,
    pub(super) reply: oneshot::Sender<Result<WriteDone, NodeError>>,
    /// Of the call, if that is traced.
    pub(super) span: Span,
}

/// A write that is durable and visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteDone {
    /// Its log position.
    pub seq: u64,
    /// Keys that were there and are no more.
    pub num_deleted: u64,
}

/// Appends what comes until the channel is closed and empty.
pub(super) async fn write_groups(core: Arc<Core>, mut pending: mpsc::Receiver<PendingWrite>) {
    while let Some(first) = pending.recv().await {
        let group = gather(&core, first, &mut pending).await;
        let mut mutation = core.mutation.lock().await;
        core.write_group(&mut mutation, group).await;
    }
}

async fn gather(core: &Core, first: PendingWrite, pending: &mut mpsc::Receiver<PendingWrite>) -> Vec<PendingWrite> {
    let size = |write: &PendingWrite| write.ops.iter().map(Message::encoded_len).sum::<usize>();
    let until = tokio::time::Instant::now() + core.config.linger;
    let mut bytes = size(&first);
    let mut group = vec![first];
    while bytes < core.config.group_bytes {
        let next = match pending.try_recv() {
            Ok(next) => next,
            Err(_) if core.config.linger.is_zero() => break,
            Err(_) => match tokio::time::timeout_at(until, pending.recv()).await {
                Ok(Some(next)) => next,
                Ok(None) | Err(_) => break,
            },
        };
        bytes += size(&next);
        group.push(next);
    }
    group
}

impl Core {
    async fn write_group(&self, mutation: &mut Mutation, group: Vec<PendingWrite>) {
        // Whose caller went before the append need not be written.
        let (mut lens, mut replies, mut ops, mut spans) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for write in group.into_iter().filter(|write| !write.reply.is_closed()) {
            lens.push(write.ops.len());
            ops.extend(write.ops);
            replies.push(write.reply);
            spans.extend(Some(write.span).filter(|span| !span.is_disabled()));
        }
        if replies.is_empty() {
            return;
        }
        mutation.last_write = Instant::now();
        let entry = LogEntry { nonce: Log::new_nonce(), ops, schema_version: self.schema.version };
        let began = Instant::now();
        let append = async {
            self.align(mutation).await?;
            self.append(mutation, &entry).await
        };
        let appended = append.instrument(shared(&spans, || phase!("append", writes = replies.len()))).await;
        let outcome = match appended {
            Ok(seq) => {
                metrics::histogram!("antiphon_append_seconds").record(began.elapsed());
                metrics::counter!("antiphon_written_operations_total").increment(entry.ops.len() as u64);
                self.outbox.entry(seq.0, &entry, self.current().manifest_version);
                let num_ops = entry.ops.len();
                let apply = self.apply(mutation, split(seq, entry.ops, &lens));
                let applied = apply.instrument(shared(&spans, || phase!("apply", operations = num_ops))).await;
                applied.map(|deleted| (seq, deleted))
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok((seq, deleted)) => {
                for (reply, num_deleted) in replies.into_iter().zip(deleted) {
                    // A caller that went away does not need the answer.
                    let _ = reply.send(Ok(WriteDone { seq: seq.0, num_deleted }));
                }
            }
            Err(error) => {
                tracing::warn!(shard = %self.id, %error, writes = replies.len(), "a group of writes failed");
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }

    /// Appends an entry at the log's end, applying what others put before it.
    async fn append(&self, mutation: &mut Mutation, entry: &LogEntry) -> Result<Seq, NodeError> {
        loop {
            match mutation.cursor.append(entry).await? {
                Written::Durable(seq) => return Ok(seq),
                Written::Taken(seq, other) => {
                    self.apply(mutation, vec![self.group_of(seq, *other)?]).await?;
                }
                Written::Behind => {
                    self.reload(mutation).await?;
                    return Err(NodeError::StoreUnavailable(
                        "the log was sealed past this writer; the write may or may not have happened".into(),
                    ));
                }
            }
        }
    }
}

/// A span under the first of the calls whose writes go together, linked with the others.
fn shared(calls: &[Span], make: impl FnOnce() -> Span) -> Span {
    let Some((first, others)) = calls.split_first() else { return Span::none() };
    let span = first.in_scope(make);
    for other in others {
        span.follows_from(other);
    }
    span
}

fn split(seq: Seq, ops: Vec<LogOp>, lens: &[usize]) -> Vec<OpGroup> {
    let mut ops = ops.into_iter();
    lens.iter().map(|len| OpGroup { seq: seq.0, ops: ops.by_ref().take(*len).collect() }).collect()
}
