//! `antiphon import`: JSON Lines into a collection, as a stream that survives broken connections.
//!
//! Reading and parsing run on a thread of their own (`source`), which a bounded channel paces; `batcher` groups documents,
//! `stream` sends them and keeps what is not acknowledged. A document is acknowledged, or rejected and reported, or the
//! import fails: none is lost in silence.

mod attributes;
mod batch;
mod batcher;
mod document;
mod lines;
mod progress;
mod rejects;
mod source;
mod stream;
mod verdict;

use std::time::Instant;

use antiphon_proto::v1;
use antiphon_proto::v1::collection_service_client::CollectionServiceClient;
use antiphon_proto::v1::document_service_client::DocumentServiceClient;

use attributes::Attributes;
pub(crate) use batch::{Item, Origin};
pub(crate) use batcher::{BatchLimits, Batcher};
#[cfg(test)]
pub(crate) use document::parse_document;
pub(crate) use progress::Progress;
pub(crate) use rejects::Rejects;
pub(crate) use source::Read;
pub(crate) use stream::{Import, Tally};
use verdict::Verdict;

use crate::args::ImportArgs;
use crate::client::{self, Channel, MAX_ANSWER_BYTES};
use crate::failure::{EXIT_OK, EXIT_SOME_REJECTED, Failure};
use crate::output::{count, note, seconds};

/// Documents read ahead of the batches.
const READ_AHEAD: usize = 256;

/// Runs the command; the exit code says whether some documents were rejected.
///
/// # Errors
/// Whatever keeps the rest from being imported; what was acknowledged stays.
pub(crate) async fn run(args: &ImportArgs) -> Result<u8, Failure> {
    let started = Instant::now();
    let rejects = Rejects::new(args.rejects.as_deref())?;
    let channel = client::connect(&args.connection).await?;
    let attributes = attributes(channel.clone(), args).await?;
    let client = DocumentServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
    let progress = if args.quiet { Progress::silent() } else { Progress::new(source::total_bytes(&args.files)) };
    let reading = source::read(args.files.clone(), attributes, args.rejects.is_some(), READ_AHEAD);
    let limits = BatchLimits { max_docs: args.batch as usize, max_bytes: args.batch_bytes as usize };
    let mut import =
        Import::new(client, &args.collection, Batcher::new(reading, limits), args.retries, progress, rejects);
    let result = import.run().await;
    let tally = import.finish()?;
    let summary = summary(&tally, started);
    match result {
        Ok(()) => {
            note(&summary);
            Ok(if tally.num_rejected == 0 { EXIT_OK } else { EXIT_SOME_REJECTED })
        }
        Err(failure) => Err(Failure::new(format!("{failure}; {summary}, then stopped"))),
    }
}

/// The attributes of the collection; asked for as often as batches would be sent.
async fn attributes(channel: Channel, args: &ImportArgs) -> Result<Attributes, Failure> {
    let mut client = CollectionServiceClient::new(channel);
    let mut tries = 0;
    loop {
        let message = v1::GetCollectionRequest { name: args.collection.clone() };
        let status = match client.get_collection(client::request(message, &args.connection)).await {
            Ok(answer) => {
                let schema = answer.into_inner().collection.and_then(|collection| collection.schema);
                return Ok(schema.as_ref().map(Attributes::of).unwrap_or_default());
            }
            Err(status) => status,
        };
        match Verdict::of(&status) {
            Verdict::Retry { after } if tries < args.retries => {
                let wait = stream::backoff(tries).max(after);
                tries += 1;
                note(&format!("{}; trying again in {:.1} s", client::status_words(&status), wait.as_secs_f64()));
                tokio::time::sleep(wait).await;
            }
            _ => return Err(client::failure(&status)),
        }
    }
}

/// The last line of an import.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A rate for people.
fn summary(tally: &Tally, started: Instant) -> String {
    let span = started.elapsed();
    let rate = (tally.num_imported as f64 / span.as_secs_f64().max(0.001)) as u64;
    let mut words = format!(
        "imported {} documents in {} ({}/s), rejected {}",
        count(tally.num_imported),
        seconds(span),
        count(rate),
        count(tally.num_rejected)
    );
    if tally.num_generated_keys > 0 {
        words.push_str(&format!(
            "; {} without a key were given one, so importing the file again stores them twice",
            count(tally.num_generated_keys)
        ));
    }
    if tally.num_retries > 0 {
        words.push_str(&format!("; sent again {} times", count(tally.num_retries)));
    }
    words
}
