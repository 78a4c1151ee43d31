//! Sends batches over ImportDocuments and keeps each until it is acknowledged.
//!
//! A stream that breaks is opened again and what was not acknowledged is sent again, which is harmless since every
//! document has a key. Where a document is refused while several batches are on their way, those are sent again one at a
//! time, so that there is no doubt which batch the server speaks of.

use std::collections::VecDeque;
use std::time::Duration;

use antiphon_proto::v1::document_service_client::DocumentServiceClient;
use antiphon_proto::v1::{ImportDocumentsRequest, ImportDocumentsResponse};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::batch::Batch;
use super::batcher::{Batcher, Next};
use super::progress::Progress;
use super::rejects::{Rejected, Rejects};
use super::verdict::Verdict;
use crate::client::{Channel, failure, status_words};
use crate::failure::Failure;

/// Batches on their way at once.
const WINDOW: usize = 8;
/// How long the server may take to acknowledge a batch before the stream counts as broken.
const STALL: Duration = Duration::from_secs(120);
/// How long to wait before trying again: the first time, doubled each time, and at most.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// What came of an import.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Documents acknowledged.
    pub(crate) num_imported: u64,
    /// Documents and lines rejected.
    pub(crate) num_rejected: u64,
    /// Acknowledged documents whose key was made here.
    pub(crate) num_generated_keys: u64,
    /// Streams opened again after an error that passes.
    pub(crate) num_retries: u64,
}

/// An import on its way.
#[derive(Debug)]
pub(crate) struct Import {
    client: DocumentServiceClient<Channel>,
    collection: String,
    batcher: Batcher,
    /// Whether everything was read, or could not be.
    is_read: bool,
    /// Why the source ended before its end. What was read until then is imported first.
    source_failure: Option<Failure>,
    /// Batches not acknowledged, in order.
    waiting: VecDeque<Batch>,
    /// How many of them, from the first, are to be sent one at a time.
    num_suspects: usize,
    max_retries: u32,
    progress: Progress,
    rejects: Rejects,
    tally: Tally,
}

impl Import {
    /// An import of what a batcher yields.
    pub(crate) fn new(
        client: DocumentServiceClient<Channel>,
        collection: &str,
        batcher: Batcher,
        max_retries: u32,
        progress: Progress,
        rejects: Rejects,
    ) -> Self {
        Self {
            client,
            collection: collection.to_owned(),
            batcher,
            is_read: false,
            source_failure: None,
            waiting: VecDeque::new(),
            num_suspects: 0,
            max_retries,
            progress,
            rejects,
            tally: Tally::default(),
        }
    }

    /// Imports everything.
    ///
    /// # Errors
    /// What no document can help, a source that can't be read, or too many tries in a row without an acknowledgement.
    pub(crate) async fn run(&mut self) -> Result<(), Failure> {
        let mut tries = 0;
        while self.has_work().await? {
            let imported_before = self.tally.num_imported;
            let mut num_sent = 0;
            let Err(status) = self.stream(&mut num_sent).await? else { continue };
            if self.tally.num_imported > imported_before {
                tries = 0;
            }
            match Verdict::of(&status) {
                Verdict::Retry { after } => {
                    if tries >= self.max_retries {
                        return Err(Failure::new(format!(
                            "gave up after {tries} more tries: {}",
                            status_words(&status)
                        )));
                    }
                    let wait = backoff(tries).max(after);
                    tries += 1;
                    self.tally.num_retries += 1;
                    self.progress.say(&format!(
                        "{}; trying again in {:.1} s",
                        status_words(&status),
                        wait.as_secs_f64()
                    ));
                    tokio::time::sleep(wait).await;
                }
                Verdict::Fatal => return Err(failure(&status)),
                Verdict::Refused(_) | Verdict::Smaller if num_sent != 1 => self.num_suspects = num_sent.max(1),
                Verdict::Refused(faults) => self.refuse(&faults, &status)?,
                Verdict::Smaller => self.halve(&status)?,
            }
        }
        self.source_failure.take().map_or(Ok(()), Err)
    }

    /// What came of it.
    ///
    /// # Errors
    /// A file of rejects that can't be written.
    pub(crate) fn finish(mut self) -> Result<Tally, Failure> {
        self.progress.finish();
        self.rejects.finish()?;
        self.tally.num_rejected = self.rejects.num_rejected();
        Ok(self.tally)
    }

    /// Waits for a batch to send; whether there is one.
    async fn has_work(&mut self) -> Result<bool, Failure> {
        while self.waiting.is_empty() && !self.is_read {
            let next = self.batcher.next().await;
            self.take(next)?;
        }
        Ok(!self.waiting.is_empty())
    }

    fn take(&mut self, next: Next) -> Result<(), Failure> {
        match next {
            Next::Batch(batch) => self.waiting.push_back(batch),
            Next::Reject(rejected) => self.rejects.add(&rejected, &self.progress)?,
            Next::Failed(failure) => {
                self.source_failure = Some(failure);
                self.is_read = true;
            }
            Next::End => self.is_read = true,
        }
        Ok(())
    }

    /// Sends over one stream until everything is acknowledged, or an error ends it. `num_sent` is how many batches had
    /// been sent and not acknowledged.
    async fn stream(&mut self, num_sent: &mut usize) -> Result<Result<(), Status>, Failure> {
        let (sender, receiver) = mpsc::channel(WINDOW);
        let mut sender = Some(sender);
        // Some servers answer nothing at all before the first message.
        self.send(sender.as_ref(), num_sent);
        let opening = self.client.import_documents(ReceiverStream::new(receiver));
        let mut answers = match timeout(STALL, opening).await {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => return Ok(Err(status)),
            Err(_) => return Ok(Err(stalled())),
        };
        let mut num_acknowledged = 0;
        loop {
            self.send(sender.as_ref(), num_sent);
            if self.waiting.is_empty() && self.is_read {
                drop(sender.take());
                // All is durable; how the stream ends no longer matters.
                let _ = timeout(Duration::from_secs(5), answers.message()).await;
                return Ok(Ok(()));
            }
            let wants_more = !self.is_read && self.waiting.len() == *num_sent && *num_sent < self.window();
            tokio::select! {
                answer = next_answer(&mut answers), if *num_sent > 0 => match answer {
                    Ok(answer) => self.acknowledge(&answer, &mut num_acknowledged, num_sent),
                    Err(status) => return Ok(Err(status)),
                },
                next = self.batcher.next(), if wants_more => self.take(next)?,
            }
        }
    }

    /// How many batches may be on their way.
    fn window(&self) -> usize {
        if self.num_suspects > 0 { 1 } else { WINDOW }
    }

    /// Sends what the window allows.
    fn send(&self, sender: Option<&mpsc::Sender<ImportDocumentsRequest>>, num_sent: &mut usize) {
        while *num_sent < self.window() {
            let (Some(sender), Some(batch)) = (sender, self.waiting.get(*num_sent)) else { return };
            // There is room for a whole window. A stream that has ended says so when its answers are read.
            let _ = sender.try_send(batch.request(&self.collection));
            *num_sent += 1;
        }
    }

    fn acknowledge(&mut self, answer: &ImportDocumentsResponse, num_acknowledged: &mut u64, num_sent: &mut usize) {
        while *num_sent > 0
            && let Some(batch) =
                self.waiting.pop_front_if(|batch| *num_acknowledged + batch.len() as u64 <= answer.num_imported)
        {
            let num_docs = batch.len() as u64;
            *num_acknowledged += num_docs;
            *num_sent -= 1;
            self.num_suspects = self.num_suspects.saturating_sub(1);
            self.tally.num_imported += num_docs;
            self.tally.num_generated_keys += batch.items().iter().filter(|item| item.has_generated_key).count() as u64;
            let bytes_read = batch.items().last().map_or(0, |item| item.bytes_read);
            self.progress.acknowledged(num_docs, bytes_read);
        }
    }

    /// Rejects documents of the first batch; the rest of it is sent again, alone.
    fn refuse(&mut self, faults: &[(usize, String)], status: &Status) -> Result<(), Failure> {
        let Some(batch) = self.waiting.front_mut() else { return Err(failure(status)) };
        let refused = batch.take_out(|place| faults.iter().any(|(at, _)| *at == place));
        if refused.is_empty() {
            return Err(failure(status));
        }
        if batch.is_empty() {
            self.waiting.pop_front();
            self.num_suspects = self.num_suspects.saturating_sub(1);
        } else {
            self.num_suspects = self.num_suspects.max(1);
        }
        for (place, item) in refused {
            let reasons: Vec<&str> =
                faults.iter().filter(|(at, _)| *at == place).map(|(_, words)| words.as_str()).collect();
            let rejected = Rejected { origin: item.origin, reason: reasons.join("; "), raw: item.raw };
            self.rejects.add(&rejected, &self.progress)?;
        }
        Ok(())
    }

    /// Splits the first batch; one that can't be split is rejected.
    fn halve(&mut self, status: &Status) -> Result<(), Failure> {
        let Some(mut first) = self.waiting.pop_front() else { return Err(failure(status)) };
        if first.len() > 1 {
            let second = first.split_half();
            self.waiting.push_front(second);
            self.waiting.push_front(first);
            self.num_suspects = self.num_suspects.max(1) + 1;
            return Ok(());
        }
        self.num_suspects = self.num_suspects.saturating_sub(1);
        for (_, item) in first.take_out(|_| true) {
            let rejected = Rejected { origin: item.origin, reason: status_words(status), raw: item.raw };
            self.rejects.add(&rejected, &self.progress)?;
        }
        Ok(())
    }
}

async fn next_answer(answers: &mut Streaming<ImportDocumentsResponse>) -> Result<ImportDocumentsResponse, Status> {
    match timeout(STALL, answers.message()).await {
        Ok(Ok(Some(answer))) => Ok(answer),
        Ok(Ok(None)) => Err(Status::unavailable("the server ended the stream early")),
        Ok(Err(status)) => Err(status),
        Err(_) => Err(stalled()),
    }
}

fn stalled() -> Status {
    Status::unavailable(format!("the server acknowledged nothing for {} s", STALL.as_secs()))
}

/// How long to wait after so many tries without an acknowledgement.
pub(super) fn backoff(tries: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << tries.min(10)).min(MAX_BACKOFF)
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
