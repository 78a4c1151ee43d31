//! The node's gRPC service: thin adapters from the protocol to shards and views.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use antiphon_proto::deadline::Deadline;
use antiphon_proto::internal::node_service_server::NodeService;
use antiphon_proto::internal::{
    CountRowsRequest, CountRowsResponse, DescribeNodeRequest, DescribeNodeResponse, DescribeShardRequest,
    DescribeShardResponse, FetchDocumentsRequest, FetchDocumentsResponse, Freshness, ListRowsRequest, ListRowsResponse,
    LookUpDocumentsRequest, LookUpDocumentsResponse, LookedUp, OpenViewRequest, OpenViewResponse, Projection,
    PushEntriesRequest, PushEntriesResponse, SearchWindowsRequest, SearchWindowsResponse, ShardRef, ViewChoice, Window,
    WindowQuery, WriteRequest, WriteResponse, view_choice::Choice, window_query::Query,
};
use antiphon_proto::store::log_op::Op;
use antiphon_proto::{key, v1, vector};
use antiphon_telemetry::phase;
use futures::future::try_join_all;
use prost::Message;
use tonic::{Request, Response, Status};
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::error::NodeError;
use crate::node::Node;
use crate::project::project;
use crate::schema::ShardSchema;
use crate::search::{MatchingRows, Stop, Take, keyword_window, list_rows, plan_keywords, vector_window, with_counts};
use crate::shard::Shard;
use crate::view::{RowAddress, View, wire_metric};

/// Most queries, rows or keys in one call.
const MAX_ITEMS: usize = 20_000;
/// Most bytes of documents in one answer.
const MAX_ANSWER_BYTES: usize = 128 << 20;
/// Most matches of one window.
const MAX_WINDOW: u32 = 100_000;

/// Serves a node.
#[derive(Clone)]
pub struct NodeServer(Arc<Node>);

impl NodeServer {
    /// The service of a node.
    pub fn new(node: Arc<Node>) -> Self {
        Self(node)
    }

    fn deadline<T>(&self, request: &Request<T>) -> Deadline {
        Deadline::of(request.metadata(), self.0.config().default_timeout)
    }

    async fn shard(&self, shard: Option<ShardRef>, deadline: Deadline) -> Result<Arc<Shard>, NodeError> {
        let shard = shard.ok_or_else(|| NodeError::Invalid("no shard was named".into()))?;
        match tokio::time::timeout(deadline.left(), self.0.shard(&shard)).await {
            Ok(opened) => opened,
            Err(_) => Err(NodeError::Deadline { what: "the shard was open" }),
        }
    }
}

fn bounded(what: &str, len: usize) -> Result<(), NodeError> {
    if len > MAX_ITEMS { Err(NodeError::Invalid(format!("{len} {what}, at most {MAX_ITEMS}"))) } else { Ok(()) }
}

fn quarantined(view: &View) -> Vec<String> {
    view.quarantined.iter().map(|segment| segment.as_str().to_owned()).collect()
}

async fn search(
    node: &Node,
    schema: Arc<ShardSchema>,
    view: Arc<View>,
    query: WindowQuery,
    matching: Arc<MatchingRows>,
    stop: Stop,
) -> Result<Window, NodeError> {
    if query.window > MAX_WINDOW {
        return Err(NodeError::Invalid(format!("a window of {}, at most {MAX_WINDOW}", query.window)));
    }
    let window = query.window as usize;
    let channel = match &query.query {
        Some(Query::Vector(_)) => "vector",
        Some(Query::Keyword(_)) => "keyword",
        None => return Err(NodeError::Invalid("an empty query".into())),
    };
    let span = phase!("window", antiphon.channel = channel, antiphon.wait_ms = Empty, antiphon.candidates = Empty);
    let (came, running) = (Instant::now(), span.clone());
    let run = node.pool().run(stop, move |stop| {
        let _running = running.enter();
        running.record("antiphon.wait_ms", came.elapsed().as_secs_f64() * 1e3);
        let found = search_window(&view, &schema, &query, &matching, window, stop)?;
        running.record("antiphon.candidates", found.candidates.len());
        Ok(found)
    });
    run.instrument(span).await
}

fn search_window(
    view: &View,
    schema: &ShardSchema,
    query: &WindowQuery,
    matching: &MatchingRows,
    window: usize,
    stop: &Stop,
) -> Result<Window, NodeError> {
    match &query.query {
        Some(Query::Vector(query)) => {
            let candidates = vector_window(view, schema, query, matching, window, stop)?;
            Ok(Window { candidates, ..Window::default() })
        }
        Some(Query::Keyword(query)) => {
            let plan = match &query.plan {
                Some(plan) => plan.clone(),
                None => with_counts(plan_keywords(query, schema)?, query, view)?,
            };
            let candidates = keyword_window(view, schema, query, &plan, matching, window, stop)?;
            Ok(Window { candidates, num_terms: plan.terms.len() as u32, is_cut: plan.is_cut })
        }
        None => Err(NodeError::Invalid("an empty query".into())),
    }
}

/// Adds up what an answer holds.
#[derive(Default)]
struct AnswerSize(usize);

impl AnswerSize {
    fn add(&mut self, document: &v1::Document) -> Result<(), NodeError> {
        self.0 += document.encoded_len();
        if self.0 > MAX_ANSWER_BYTES {
            return Err(NodeError::TooLarge(format!(
                "the documents have more than {MAX_ANSWER_BYTES} bytes: ask for fewer, fewer fields, a text_limit or no vectors"
            )));
        }
        Ok(())
    }
}

/// Refuses what must not get into a log: keys that name nothing, vectors that do not fit.
fn check_write(request: &WriteRequest, schema: &ShardSchema) -> Result<(), NodeError> {
    bounded("operations", request.ops.len())?;
    for op in &request.ops {
        let key = match &op.op {
            Some(Op::Upsert(document)) => {
                for spec in &schema.vectors {
                    let Some(sent) = document.vectors.get(&spec.name) else { continue };
                    vector::components(sent)
                        .and_then(|values| vector::validate(&values, spec.graph.dims, wire_metric(spec.graph.metric)))
                        .map_err(|fault| NodeError::Invalid(format!("vector {:?}: {fault}", spec.name)))?;
                }
                &document.key
            }
            Some(Op::DeleteKey(key)) => key,
            None => return Err(NodeError::Invalid("an empty operation".into())),
        };
        if !key::is_valid(key) {
            return Err(NodeError::Invalid("a key that is blank or too long".into()));
        }
    }
    Ok(())
}

fn document_at(
    view: &View,
    schema: &ShardSchema,
    address: RowAddress,
    projection: &Projection,
) -> Result<v1::Document, NodeError> {
    let segment = view
        .segment(address.segment)
        .filter(|segment| address.row < segment.segment().num_rows())
        .ok_or_else(|| NodeError::Invalid("a row that the view does not have".into()))?;
    let segment = segment.segment();
    let mut document = project(segment.fields(address.row)?, projection);
    segment.rows().key(address.row).clone_into(&mut document.key);
    if projection.include_vectors {
        document.vectors = schema
            .vectors
            .iter()
            .enumerate()
            .filter_map(|(field, spec)| {
                Some((spec.name.clone(), vector::to_proto(segment.vector(field, address.row)?)))
            })
            .collect::<BTreeMap<_, _>>();
    }
    Ok(document)
}

fn list_documents(
    view: &View,
    schema: &ShardSchema,
    matching: &MatchingRows,
    request: &ListRowsRequest,
    stop: &Stop,
) -> Result<ListRowsResponse, NodeError> {
    let projection = request.projection.clone().unwrap_or_default();
    let (most_rows, most_bytes) = (request.max_rows.max(1) as usize, request.max_bytes as usize);
    let (mut documents, mut bytes, mut size) = (Vec::new(), 0, AnswerSize::default());
    let next_after = list_rows(view, matching, &request.after_folded, stop, |address| {
        let document = if request.keys_only {
            v1::Document { key: key_at(view, address), ..v1::Document::default() }
        } else {
            document_at(view, schema, address, &projection)?
        };
        size.add(&document)?;
        bytes += document.encoded_len();
        documents.push(document);
        Ok(if documents.len() >= most_rows || bytes >= most_bytes { Take::Enough } else { Take::More })
    })?;
    Ok(ListRowsResponse {
        view: Some(view.name()),
        documents,
        next_after: next_after.unwrap_or_default(),
        quarantined_segments: quarantined(view),
    })
}

fn key_at(view: &View, address: RowAddress) -> String {
    view.segment(address.segment)
        .map(|segment| segment.segment().rows().key(address.row).to_owned())
        .unwrap_or_default()
}

#[tonic::async_trait]
impl NodeService for NodeServer {
    async fn open_view(&self, request: Request<OpenViewRequest>) -> Result<Response<OpenViewResponse>, Status> {
        let deadline = self.deadline(&request);
        let request = request.into_inner();
        bounded("queries", request.keyword_queries.len())?;
        let shard = self.shard(request.shard, deadline).await?;
        let view = shard.view(&request.view.unwrap_or_default(), deadline).await?;
        let (name, quarantined_segments) = (view.name(), quarantined(&view));
        let schema = Arc::clone(shard.schema());
        let (stop, _guard) = Stop::new(deadline);
        let plans = if request.keyword_queries.is_empty() {
            Vec::new()
        } else {
            let queries = request.keyword_queries;
            let work = move |_: &Stop| {
                queries.iter().map(|query| with_counts(plan_keywords(query, &schema)?, query, &view)).collect()
            };
            self.0.pool().run(stop, work).await?
        };
        Ok(Response::new(OpenViewResponse { view: Some(name), plans, quarantined_segments }))
    }

    async fn search_windows(
        &self,
        request: Request<SearchWindowsRequest>,
    ) -> Result<Response<SearchWindowsResponse>, Status> {
        let deadline = self.deadline(&request);
        let request = request.into_inner();
        bounded("queries", request.queries.len())?;
        let shard = self.shard(request.shard, deadline).await?;
        let view = shard.view(&request.view.unwrap_or_default(), deadline).await?;
        let (name, quarantined_segments) = (view.name(), quarantined(&view));
        let matching = Arc::new(MatchingRows::new(request.filter.as_ref(), shard.schema(), self.0.filters())?);
        let (stop, _guard) = Stop::new(deadline);
        let searches = request.queries.into_iter().map(|query| {
            let (schema, view, matching) = (Arc::clone(shard.schema()), Arc::clone(&view), Arc::clone(&matching));
            search(&self.0, schema, view, query, matching, stop.clone())
        });
        let windows = try_join_all(searches).await?;
        Ok(Response::new(SearchWindowsResponse { view: Some(name), windows, quarantined_segments }))
    }

    async fn fetch_documents(
        &self,
        request: Request<FetchDocumentsRequest>,
    ) -> Result<Response<FetchDocumentsResponse>, Status> {
        let deadline = self.deadline(&request);
        let request = request.into_inner();
        bounded("rows", request.rows.len())?;
        bounded("keys", request.keys.len())?;
        let shard = self.shard(request.shard, deadline).await?;
        let name = request.view.ok_or_else(|| NodeError::Invalid("no view was named".into()))?;
        let schema = shard.schema();
        let (view, addresses) = if request.keys.is_empty() {
            (shard.kept_view(&name)?, request.rows.iter().map(|row| RowAddress::decode(*row)).collect())
        } else {
            let view = shard.view(&ViewChoice { choice: Some(Choice::Named(name)) }, deadline).await?;
            let find = |key: &String| {
                view.find(&schema.key_rule.fold(key))
                    .ok_or_else(|| NodeError::Invalid(format!("the view has no document {key:?}")))
            };
            let addresses = request.keys.iter().map(find).collect::<Result<Vec<_>, _>>()?;
            (view, addresses)
        };
        let projection = request.projection.unwrap_or_default();
        let mut documents = Vec::with_capacity(addresses.len());
        let mut size = AnswerSize::default();
        for address in addresses {
            let document = document_at(&view, schema, address, &projection)?;
            size.add(&document)?;
            documents.push(document);
        }
        Ok(Response::new(FetchDocumentsResponse { documents }))
    }

    async fn count_rows(&self, request: Request<CountRowsRequest>) -> Result<Response<CountRowsResponse>, Status> {
        let deadline = self.deadline(&request);
        let request = request.into_inner();
        let shard = self.shard(request.shard, deadline).await?;
        let view = shard.view(&request.view.unwrap_or_default(), deadline).await?;
        let quarantined_segments = quarantined(&view);
        let matching = MatchingRows::new(request.filter.as_ref(), shard.schema(), self.0.filters())?;
        let (stop, _guard) = Stop::new(deadline);
        let count = move |stop: &Stop| match matching.of(&view, stop)? {
            Some(sets) => Ok(sets.iter().map(|rows| u64::from(rows.len())).sum()),
            None => Ok(view.num_docs()),
        };
        let count = self.0.pool().run(stop, count).await?;
        Ok(Response::new(CountRowsResponse { count, quarantined_segments }))
    }

    async fn list_rows(&self, request: Request<ListRowsRequest>) -> Result<Response<ListRowsResponse>, Status> {
        let deadline = self.deadline(&request);
        let request = request.into_inner();
        bounded("rows", request.max_rows as usize)?;
        let shard = self.shard(request.shard.clone(), deadline).await?;
        let view = shard.view(&request.view.unwrap_or_default(), deadline).await?;
        let matching = MatchingRows::new(request.filter.as_ref(), shard.schema(), self.0.filters())?;
        let schema = Arc::clone(shard.schema());
        let (stop, _guard) = Stop::new(deadline);
        let list = move |stop: &Stop| list_documents(&view, &schema, &matching, &request, stop);
        Ok(Response::new(self.0.pool().run(stop, list).await?))
    }

    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let deadline = self.deadline(&request);
        let mut request = request.into_inner();
        loop {
            let shard = self.shard(request.shard.clone(), deadline).await?;
            check_write(&request, shard.schema())?;
            match shard.write(&mut request.ops, deadline).await {
                Ok(done) => {
                    return Ok(Response::new(WriteResponse { seq: done.seq, num_deleted: done.num_deleted }));
                }
                // It was closed meanwhile, as when it is opened with a newer schema, and took nothing. A node that stops
                // opens no shard.
                Err(NodeError::ShuttingDown) if !deadline.is_over() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn push_entries(
        &self,
        request: Request<PushEntriesRequest>,
    ) -> Result<Response<PushEntriesResponse>, Status> {
        let request = request.into_inner();
        bounded("entries", request.entries.len())?;
        let shard = request.shard.ok_or_else(|| NodeError::Invalid("no shard was named".into()))?;
        let seq = match self.0.find_open(&shard).await {
            Some(shard) => shard.take_pushed(request.first_seq, request.entries, request.manifest_version).await?,
            None => 0,
        };
        Ok(Response::new(PushEntriesResponse { seq }))
    }

    async fn look_up_documents(
        &self,
        request: Request<LookUpDocumentsRequest>,
    ) -> Result<Response<LookUpDocumentsResponse>, Status> {
        let deadline = self.deadline(&request);
        let request = request.into_inner();
        bounded("keys", request.keys.len())?;
        let shard = self.shard(request.shard, deadline).await?;
        let view = shard.fresh(Freshness { refresh: true, at_least_seq: 0 }, deadline).await?;
        let schema = shard.schema();
        let projection = request.projection.unwrap_or_default();
        let mut results = Vec::with_capacity(request.keys.len());
        let mut size = AnswerSize::default();
        for key in &request.keys {
            let document = match view.find(&schema.key_rule.fold(key)) {
                Some(address) => Some(document_at(&view, schema, address, &projection)?),
                None if view.quarantined.is_empty() => None,
                None => {
                    let segments = quarantined(&view).join(", ");
                    let words = format!("{key:?} may be in a segment that is damaged and set aside: {segments}");
                    return Err(NodeError::Corruption(words).into());
                }
            };
            document.as_ref().map_or(Ok(()), |document| size.add(document))?;
            results.push(LookedUp { document });
        }
        Ok(Response::new(LookUpDocumentsResponse { results }))
    }

    async fn describe_shard(
        &self,
        request: Request<DescribeShardRequest>,
    ) -> Result<Response<DescribeShardResponse>, Status> {
        let deadline = self.deadline(&request);
        let request = request.into_inner();
        let shard = self.shard(request.shard, deadline).await?;
        let view = shard.fresh(Freshness { refresh: request.refresh, at_least_seq: 0 }, deadline).await?;
        let num_live_rows = view.live.iter().map(|segment| u64::from(segment.segment().num_rows())).sum();
        Ok(Response::new(DescribeShardResponse {
            seq: view.seq,
            manifest_version: view.manifest_version,
            num_docs: view.num_docs(),
            num_deleted: view.num_deleted(),
            num_segments: view.sealed.len() as u64,
            size_bytes: view.size_bytes(),
            num_live_rows,
            live_bytes: view.live_bytes(),
            quarantined_segments: quarantined(&view),
        }))
    }

    async fn describe_node(&self, _: Request<DescribeNodeRequest>) -> Result<Response<DescribeNodeResponse>, Status> {
        let cache = self.0.cache_usage();
        Ok(Response::new(DescribeNodeResponse {
            id: self.0.config().id.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            cache_bytes: cache.bytes,
            cache_limit_bytes: cache.limit_bytes,
            problem: cache.problem.unwrap_or_default(),
        }))
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
