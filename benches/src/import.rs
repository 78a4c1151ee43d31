//! Imports documents as users do, by ImportDocuments, and looks now and then whether what was acknowledged is there.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use antiphon_proto::v1::{Document, ImportDocumentsRequest};
use antiphon_proto::vector;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::Outcome;
use crate::client::{Client, Method, Search, options};
use crate::queries::Query;

/// Batches that wait to be sent.
const WAITING: usize = 2;

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
}

/// Imports all documents.
///
/// # Errors
/// The server's.
pub async fn import(
    client: &Client,
    plan: ImportPlan<'_>,
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
        while let Some(answer) = answers.message().await? {
            imported.num_docs = answer.num_imported;
            imported.elapsed = begun.elapsed();
            imported.acknowledged.push(imported.elapsed);
            if let Some(progress) = plan.progress {
                progress.store(answer.num_imported, Ordering::Relaxed);
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
