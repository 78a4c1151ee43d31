//! Imports: a stream of batches, each written and acknowledged in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon_access::Caller;
use antiphon_access::tokens::Right;
use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::store::{LogOp, log_op::Op};
use antiphon_proto::v1::{Document, ImportDocumentsRequest, ImportDocumentsResponse};
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use super::Service;
use super::write::{Written, advance};
use crate::collections::Resolved;
use crate::coordinator::within;
use crate::embed::embed_documents;
use crate::status_layer::mend;
use crate::token::{self, Position};
use crate::validate::check_documents;

/// How long a batch waits for room before its stream is told so: longer than sealing a full live part takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long a batch that met a full shard waits before it is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Writes what the stream brings until it ends or fails; the failure is the answers' last item.
pub(super) async fn import(
    service: Service,
    caller: Caller,
    mut requests: Streaming<ImportDocumentsRequest>,
    answers: mpsc::Sender<Result<ImportDocumentsResponse, Status>>,
) {
    let mut import = Import { service, caller, collection: None, num_imported: 0, positions: BTreeMap::new() };
    loop {
        let outcome = match requests.message().await {
            Ok(Some(request)) => import.take(request).await.map_err(Status::from),
            Ok(None) => return,
            Err(status) => Err(mend(status)),
        };
        let is_last = outcome.is_err();
        if answers.send(outcome).await.is_err() || is_last {
            return;
        }
    }
}

struct Import {
    service: Service,
    caller: Caller,
    collection: Option<Arc<Resolved>>,
    num_imported: u64,
    positions: BTreeMap<u32, Position>,
}

impl Import {
    async fn take(&mut self, request: ImportDocumentsRequest) -> Result<ImportDocumentsResponse, ApiError> {
        let name = self.collection.as_ref().map_or(&request.collection, |collection| &collection.asked);
        self.caller.may(Right::Write, name)?;
        self.caller.check_size(&request)?;
        let mut collection = self.collection(&request.collection).await?;
        let mut documents = request.documents;
        if let Err(error) = check_documents(&mut documents, &collection.schema) {
            // Perhaps a field that was added since the stream began.
            let newest = self.service.0.collections.find_newest(&collection.asked).await?;
            if newest.uid() != collection.uid() || !newest.is_newer_than(&collection) {
                return Err(error);
            }
            check_documents(&mut documents, &newest.schema)?;
            self.collection = Some(Arc::clone(&newest));
            collection = newest;
        }
        self.embed(&collection, &mut documents).await?;
        let num_documents = documents.len() as u64;
        let ops: Vec<LogOp> = documents.into_iter().map(|document| LogOp { op: Some(Op::Upsert(document)) }).collect();
        if !ops.is_empty() {
            let written = self.write(&collection, ops).await?;
            advance(&mut self.positions, &written.positions);
        }
        self.num_imported += num_documents;
        let version = token::version(collection.uid(), self.positions.values().copied().collect());
        Ok(ImportDocumentsResponse { num_imported: self.num_imported, version })
    }

    async fn collection(&mut self, name: &str) -> Result<Arc<Resolved>, ApiError> {
        if let Some(collection) = &self.collection {
            if !name.is_empty() && name != collection.asked {
                let words = "must be the same in every request of a stream";
                return Err(ApiError::field(ErrorKind::ArgumentInvalid, "collection", words));
            }
            return Ok(Arc::clone(collection));
        }
        let found = self.service.0.collections.find(name).await?;
        self.collection = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Waits where too much is to be embedded already, as for a full shard.
    async fn embed(&self, collection: &Resolved, documents: &mut [Document]) -> Result<(), ApiError> {
        let patience = Deadline::after(PATIENCE);
        let embedders = &self.service.0.config.embedders;
        loop {
            match embed_documents(embedders, &collection.schema, documents, patience).await {
                Err(error) if error.kind() == ErrorKind::Overloaded && !patience.is_over() => {
                    tokio::time::sleep(PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Waits where a shard is full: that is the flow control of a stream.
    async fn write(&self, collection: &Arc<Resolved>, ops: Vec<LogOp>) -> Result<Written, ApiError> {
        let patience = Deadline::after(PATIENCE);
        loop {
            let deadline = Deadline::after(self.service.0.config.default_timeout);
            match within(deadline, self.service.write(collection, ops.clone(), deadline)).await {
                Err(error) if error.kind() == ErrorKind::Overloaded && !patience.is_over() => {
                    tokio::time::sleep(PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }
}
