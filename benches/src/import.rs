//! Imports documents as users do, by ImportDocuments, and looks now and then whether what was acknowledged is there.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use antiphon_proto::v1::{Document, ImportDocumentsRequest};
use antiphon_proto::vector;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::Outcome;
use crate::client::{Client, Method, Search, options};
use crate::queries::Query;

/// Batches that wait to be sent.
const WAITING: usize = 2;
/// How long an overloaded server is left alone.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a server may be overloaded in one import.
const MAX_REFUSALS: usize = 100;

/// How an import is done.
#[derive(Debug, Clone, Copy)]
pub struct ImportPlan<'a> {
    /// The collection.
    pub collection: &'a str,
    /// Documents in a message.
    pub batch: usize,
    /// After every so many acknowledged batches, the last document of the batch is searched for; 0 means never.
    pub probe_every: usize,
    /// Told the number of documents acknowledged.
    pub progress: Option<&'a AtomicU64>,
}

/// What an import gave.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// Documents acknowledged.
    pub num_docs: u64,
    /// From the first message to the last acknowledgement.
    pub elapsed: Duration,
    /// When each batch was acknowledged.
    pub acknowledged: Vec<Duration>,
    /// What each probe took.
    pub probes: Vec<Duration>,
    /// Probes that did not find an acknowledged document.
    pub num_invisible: usize,
    /// Why the server ended the stream, where it was overloaded.
    pub refused: Option<Status>,
}

/// Imports all documents, and as the API wants it goes on with what was not acknowledged where the server was overloaded.
/// `from` gives the documents from a number on. Returns how often that was as well.
///
/// # Errors
/// The server's.
pub async fn import_resuming<I: Iterator<Item = Document>>(
    client: &Client,
    plan: ImportPlan<'_>,
    from: impl Fn(u64) -> I,
) -> Outcome<(Imported, usize)> {
    let (begun, mut sum, mut num_refusals) = (Instant::now(), Imported::default(), 0);
    loop {
        let part = import_from(client, plan, sum.num_docs, from(sum.num_docs)).await?;
        let is_whole = part.refused.is_none();
        sum.num_docs += part.num_docs;
        sum.elapsed = begun.elapsed();
        sum.probes.extend(part.probes);
        sum.num_invisible += part.num_invisible;
        if is_whole {
            return Ok((sum, num_refusals));
        }
        num_refusals += 1;
        if num_refusals > MAX_REFUSALS {
            return Err("the server was overloaded again and again".into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Imports all documents over one stream.
///
/// # Errors
/// The server's.
pub async fn import(
    client: &Client,
    plan: ImportPlan<'_>,
    documents: impl Iterator<Item = Document>,
) -> Outcome<Imported> {
    let mut imported = import_from(client, plan, 0, documents).await?;
    match imported.refused.take() {
        Some(status) => Err(status.into()),
        None => Ok(imported),
    }
}

async fn import_from(
    client: &Client,
    plan: ImportPlan<'_>,
    num_before: u64,
    mut documents: impl Iterator<Item = Document>,
) -> Outcome<Imported> {
    let (send, receive) = mpsc::channel(WAITING);
    let begun = Instant::now();
    // The last document of each batch that is not acknowledged; as many as the stream holds.
    let on_their_way = RefCell::new(VecDeque::new());
    let feed = async {
        loop {
            let batch: Vec<Document> = documents.by_ref().take(plan.batch).collect();
            let Some(last) = batch.last() else { break };
            on_their_way.borrow_mut().push_back((last.key.clone(), last.vectors.get("v").cloned()));
            let request = ImportDocumentsRequest { collection: plan.collection.into(), documents: batch };
            if send.send(request).await.is_err() {
                break;
            }
        }
        drop(send);
    };
    let collect = async {
        let mut imported = Imported::default();
        let mut documents = client.documents.clone();
        let mut answers = documents.import_documents(ReceiverStream::new(receive)).await?.into_inner();
        loop {
            let answer = match answers.message().await {
                Ok(Some(answer)) => answer,
                Ok(None) => break,
                Err(status) if status.code() == Code::ResourceExhausted => {
                    imported.refused = Some(status);
                    break;
                }
                Err(status) => return Err(status.into()),
            };
            imported.num_docs = answer.num_imported;
            imported.elapsed = begun.elapsed();
            imported.acknowledged.push(imported.elapsed);
            if let Some(progress) = plan.progress {
                progress.store(num_before + answer.num_imported, Ordering::Relaxed);
            }
            let last = on_their_way.borrow_mut().pop_front();
            if plan.probe_every > 0
                && imported.acknowledged.len() % plan.probe_every == 0
                && let Some((key, Some(sent))) = last
            {
                let query = Query { text: String::new(), vector: vector::components(&sent)? };
                let asked = Instant::now();
                let search = Search::new(Method::Vector, &query, options(plan.collection, 10));
                let found = client.search(search).await?;
                imported.probes.push(asked.elapsed());
                imported.num_invisible += usize::from(!found.matches.iter().any(|found| found.key == key));
            }
        }
        Ok::<_, crate::Failure>(imported)
    };
    let ((), imported) = tokio::join!(feed, collect);
    imported
}
