//! DocumentService.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use antiphon_access::Caller;
use antiphon_access::tokens::Right;
use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::{LookUpDocumentsRequest, Projection};
use antiphon_proto::key::shard_of;
use antiphon_proto::store::{LogOp, log_op::Op};
use antiphon_proto::v1::document_service_server::DocumentService;
use antiphon_proto::v1::{
    CountDocumentsRequest, CountDocumentsResponse, DeleteDocumentsRequest, DeleteDocumentsResponse, Document,
    ExportDocumentsRequest, ExportDocumentsResponse, GetDocumentsRequest, GetDocumentsResponse, ImportDocumentsRequest,
    ImportDocumentsResponse, UpsertDocumentsRequest, UpsertDocumentsResponse,
};
use futures::future::try_join_all;
use prost::Message;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::Instrument as _;

use super::export::export;
use super::import::import;
use super::write::Written;
use super::{Service, admit};
use crate::cluster::{First, NodeHandle};
use crate::collections::Resolved;
use crate::coordinator::within;
use crate::embed::embed_documents;
use crate::search::{check_size, projection};
use crate::validate::{check_documents, check_filter, check_keys};

/// Most keys deleted in one request.
const MAX_DELETED: usize = 10_000;
/// Most documents got in one request.
const MAX_GOT: usize = 1_000;
/// Answers of an export that wait for a slow reader.
const EXPORT_ANSWERS: usize = 2;
/// Acknowledgements that wait for a slow reader.
const IMPORT_ANSWERS: usize = 16;

#[tonic::async_trait]
impl DocumentService for Service {
    async fn upsert_documents(
        &self,
        request: Request<UpsertDocumentsRequest>,
    ) -> Result<Response<UpsertDocumentsResponse>, Status> {
        admit(&request, Right::Write, &request.get_ref().collection)?;
        let deadline = self.0.deadline(&request);
        let UpsertDocumentsRequest { collection, mut documents } = request.into_inner();
        let work = async {
            if documents.is_empty() {
                return Err(ApiError::field(ErrorKind::ArgumentInvalid, "documents", "none were sent"));
            }
            let mut found = self.0.collections.find(&collection).await?;
            loop {
                if let Err(error) = check_documents(&mut documents, &found.schema) {
                    // Perhaps a field that another coordinator added.
                    let newest = self.0.collections.find_newest(&collection).await?;
                    if !newest.is_newer_than(&found) {
                        return Err(error);
                    }
                    found = newest;
                    continue;
                }
                // A copy: should the collection turn out to be another, its fields may name another embedder.
                let mut whole = documents.clone();
                embed_documents(&self.0.config.embedders, &found.schema, &mut whole, deadline).await?;
                let ops = whole.into_iter().map(|document| LogOp { op: Some(Op::Upsert(document)) }).collect();
                match self.write(&found, ops, deadline).await {
                    Err(error) if error.kind() == ErrorKind::CollectionNotFound => {
                        let newest = self.0.collections.find_newest(&collection).await?;
                        if newest.uid() == found.uid() {
                            return Err(error);
                        }
                        found = newest;
                    }
                    outcome => return outcome,
                }
            }
        };
        let written = within(deadline, work).await?;
        let keys = documents.into_iter().map(|document| document.key).collect();
        Ok(Response::new(UpsertDocumentsResponse { version: written.version, keys }))
    }

    type ImportDocumentsStream = ReceiverStream<Result<ImportDocumentsResponse, Status>>;

    async fn import_documents(
        &self,
        request: Request<Streaming<ImportDocumentsRequest>>,
    ) -> Result<Response<Self::ImportDocumentsStream>, Status> {
        let caller = Caller::of(&request)?;
        let (answers, receiver) = tokio::sync::mpsc::channel(IMPORT_ANSWERS);
        tokio::spawn(import(self.clone(), caller, request.into_inner(), answers).in_current_span());
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn delete_documents(
        &self,
        request: Request<DeleteDocumentsRequest>,
    ) -> Result<Response<DeleteDocumentsResponse>, Status> {
        admit(&request, Right::Write, &request.get_ref().collection)?;
        let deadline = self.0.deadline(&request);
        let DeleteDocumentsRequest { collection, keys, filter } = request.into_inner();
        let work = async {
            if let Some(filter) = filter {
                if !keys.is_empty() {
                    let words = "a request deletes by keys or by a filter, not by both";
                    return Err(ApiError::field(ErrorKind::ArgumentInvalid, "filter", words));
                }
                let found = self.0.collections.find_newest(&collection).await?;
                check_filter(Some(&filter), &found.schema, "filter")?;
                return self.delete_matching(&found, &filter, deadline).await;
            }
            check_keys(&keys, MAX_DELETED)?;
            let found = self.0.collections.find(&collection).await?;
            let ops = keys.into_iter().map(|key| LogOp { op: Some(Op::DeleteKey(key)) }).collect();
            self.write(&found, ops, deadline).await
        };
        let Written { version, num_deleted, .. } = within(deadline, work).await?;
        Ok(Response::new(DeleteDocumentsResponse { num_deleted, version }))
    }

    async fn get_documents(
        &self,
        request: Request<GetDocumentsRequest>,
    ) -> Result<Response<GetDocumentsResponse>, Status> {
        admit(&request, Right::Read, &request.get_ref().collection)?;
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let work = async {
            check_keys(&request.keys, MAX_GOT)?;
            let projection = projection("fields", &request.fields, request.include_vectors, 0)?;
            let found = self.0.collections.find(&request.collection).await?;
            let mut documents = self.look_up(&found, &request.keys, &projection, deadline).await?;
            let mut response = GetDocumentsResponse::default();
            for key in request.keys {
                match documents.remove(found.key_rule.fold(&key).as_ref()) {
                    Some(Some(document)) => response.documents.push(document),
                    Some(None) => response.missing_keys.push(key),
                    // Asked for before, in this or another spelling.
                    None => {}
                }
            }
            check_size(response.encoded_len(), self.0.config.max_response_bytes)?;
            Ok(response)
        };
        Ok(Response::new(within(deadline, work).await?))
    }

    async fn count_documents(
        &self,
        request: Request<CountDocumentsRequest>,
    ) -> Result<Response<CountDocumentsResponse>, Status> {
        admit(&request, Right::Read, &request.get_ref().collection)?;
        let deadline = self.0.deadline(&request);
        let CountDocumentsRequest { collection: name, filter } = request.into_inner();
        let work = async {
            let found = self.0.collections.find_newest(&name).await?;
            if let Some(filter) = &filter {
                check_filter(Some(filter), &found.schema, "filter")?;
                return self.count_matching(&found, filter, deadline).await;
            }
            let shards = self.0.describe_shards(&found, true, deadline).await?;
            if let Some(segment) = shards.iter().flat_map(|shard| &shard.quarantined_segments).next() {
                let words = format!("the segment {segment} is damaged and set aside: its documents cannot be counted");
                return Err(ApiError::new(ErrorKind::Corruption, words));
            }
            Ok(shards.iter().map(|shard| shard.num_docs).sum())
        };
        Ok(Response::new(CountDocumentsResponse { count: within(deadline, work).await? }))
    }

    type ExportDocumentsStream = ReceiverStream<Result<ExportDocumentsResponse, Status>>;

    async fn export_documents(
        &self,
        request: Request<ExportDocumentsRequest>,
    ) -> Result<Response<Self::ExportDocumentsStream>, Status> {
        admit(&request, Right::Read, &request.get_ref().collection)?;
        let timeout = request.metadata().get("grpc-timeout").and_then(|timeout| timeout.to_str().ok());
        let whole = timeout.and_then(Deadline::last_moment);
        let (answers, receiver) = tokio::sync::mpsc::channel(EXPORT_ANSWERS);
        tokio::spawn(export(self.clone(), request.into_inner(), whole, answers).in_current_span());
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

impl Service {
    /// Documents by folded key, none where there is none.
    async fn look_up(
        &self,
        collection: &Resolved,
        keys: &[String],
        projection: &Projection,
        deadline: Deadline,
    ) -> Result<HashMap<String, Option<Document>>, ApiError> {
        let mut by_shard: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for key in keys {
            let folded = collection.key_rule.fold(key).into_owned();
            by_shard.entry(shard_of(&folded, collection.num_shards())).or_default().push(folded);
        }
        let calls = by_shard.into_iter().map(|(shard, mut folded)| async move {
            folded.sort_unstable();
            folded.dedup();
            let message = LookUpDocumentsRequest {
                shard: Some(collection.shard_ref(shard)),
                keys: folded.clone(),
                projection: Some(projection.clone()),
            };
            let ask = |node: Arc<NodeHandle>| {
                let message = message.clone();
                async move { node.client.look_up_documents(message, deadline).await }
            };
            let asked = self.0.cluster.read(collection.target(shard), &First::Idlest, |_| true, ask).await?;
            let response = asked.answer;
            Ok::<_, ApiError>(folded.into_iter().zip(response.results.into_iter().map(|result| result.document)))
        });
        Ok(try_join_all(calls).await?.into_iter().flatten().collect())
    }
}
