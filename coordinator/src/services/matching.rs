//! Documents that meet a filter, a stretch of a shard at a time: what exports and deletions by filter walk along.

use std::sync::Arc;

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::{
    CountRowsRequest, CountRowsResponse, Freshness, ListRowsRequest, ListRowsResponse, OpenViewRequest,
    OpenViewResponse, Projection, ViewChoice, ViewName, view_choice::Choice,
};
use antiphon_proto::store::{LogOp, log_op::Op};
use antiphon_proto::v1::{Document, Filter};
use futures::future::try_join_all;

use super::Service;
use super::write::Written;
use crate::cluster::{First, NodeHandle};
use crate::collections::Resolved;
use crate::token::{self, Position};

/// Keys deleted with one write.
const KEYS_AT_ONCE: u32 = 5_000;
/// Documents and bytes asked of a node at once.
const DOCUMENTS_AT_ONCE: u32 = 1_000;
const BYTES_AT_ONCE: u32 = 1 << 20;

/// The newest view, every write acknowledged before included.
pub(super) fn newest() -> ViewChoice {
    ViewChoice { choice: Some(Choice::Fresh(Freshness { refresh: true, at_least_seq: 0 })) }
}

/// A walk along the matching documents of one shard, in one view.
pub(super) struct Walk {
    pub(super) collection: Arc<Resolved>,
    pub(super) shard: u32,
    pub(super) filter: Option<Filter>,
    /// None: keys alone.
    pub(super) projection: Option<Projection>,
    view: ViewChoice,
    /// The node that the view was seen on.
    node: Option<Arc<NodeHandle>>,
    after: Option<String>,
}

/// The view of a shard, and the node that it was seen on.
#[derive(Clone)]
pub(super) struct OpenView {
    pub(super) view: ViewName,
    pub(super) node: Arc<NodeHandle>,
}

impl Walk {
    pub(super) fn new(
        collection: Arc<Resolved>,
        shard: u32,
        filter: Option<Filter>,
        projection: Option<Projection>,
        seen: OpenView,
    ) -> Self {
        let view = ViewChoice { choice: Some(Choice::Named(seen.view)) };
        Self { collection, shard, filter, projection, view, node: Some(seen.node), after: Some(String::new()) }
    }

    /// The next documents; none at the end.
    ///
    /// # Errors
    /// The node's; SNAPSHOT_EXPIRED where the walk paused for too long; CORRUPTION where a segment is set aside.
    pub(super) async fn next(
        &mut self,
        service: &Service,
        deadline: Deadline,
    ) -> Result<Option<Vec<Document>>, ApiError> {
        let Some(after) = self.after.take() else { return Ok(None) };
        let message = ListRowsRequest {
            shard: Some(self.collection.shard_ref(self.shard)),
            view: Some(self.view),
            filter: self.filter.clone(),
            after_folded: after,
            keys_only: self.projection.is_none(),
            projection: self.projection.clone(),
            max_rows: if self.projection.is_none() { KEYS_AT_ONCE } else { DOCUMENTS_AT_ONCE },
            max_bytes: BYTES_AT_ONCE,
        };
        let first = self.node.take().map_or(First::Idlest, First::Node);
        let ask = |node: Arc<NodeHandle>| {
            let message = message.clone();
            async move { node.client.list_rows(message, deadline).await }
        };
        let is_whole = |response: &ListRowsResponse| response.quarantined_segments.is_empty();
        let asked = service.0.cluster.read(self.collection.target(self.shard), &first, is_whole, ask).await?;
        let response = asked.answer;
        self.node = Some(asked.node);
        refuse_quarantined(&response.quarantined_segments)?;
        self.view = ViewChoice { choice: response.view.map(Choice::Named) };
        self.after = Some(response.next_after).filter(|after| !after.is_empty());
        Ok(Some(response.documents).filter(|documents| !documents.is_empty()))
    }
}

fn refuse_quarantined(segments: &[String]) -> Result<(), ApiError> {
    let Some(segment) = segments.first() else { return Ok(()) };
    let words = format!("the segment {segment} is damaged and set aside: which of its documents match cannot be told");
    Err(ApiError::new(ErrorKind::Corruption, words))
}

impl Service {
    /// Picks the newest view of every shard.
    pub(super) async fn newest_views(
        &self,
        collection: &Arc<Resolved>,
        deadline: Deadline,
    ) -> Result<Vec<OpenView>, ApiError> {
        let choices = (0..collection.num_shards()).map(|shard| (shard, newest(), First::Idlest)).collect();
        self.open_views(collection, choices, deadline).await
    }

    /// Has the nodes keep views of the shards from `first` on for longer.
    pub(super) async fn touch_views(
        &self,
        collection: &Arc<Resolved>,
        first: u32,
        views: &[OpenView],
        deadline: Deadline,
    ) -> Result<(), ApiError> {
        let named = |seen: &OpenView| ViewChoice { choice: Some(Choice::Named(seen.view)) };
        let choices = (0u32..)
            .zip(views)
            .skip(first as usize)
            .map(|(shard, seen)| (shard, named(seen), First::Node(Arc::clone(&seen.node))))
            .collect();
        self.open_views(collection, choices, deadline).await.map(drop)
    }

    async fn open_views(
        &self,
        collection: &Arc<Resolved>,
        choices: Vec<(u32, ViewChoice, First)>,
        deadline: Deadline,
    ) -> Result<Vec<OpenView>, ApiError> {
        let calls = choices.into_iter().map(|(shard, view, first)| async move {
            let message = OpenViewRequest {
                shard: Some(collection.shard_ref(shard)),
                view: Some(view),
                keyword_queries: Vec::new(),
            };
            let ask = |node: Arc<NodeHandle>| {
                let message = message.clone();
                async move { node.client.open_view(message, deadline).await }
            };
            let is_whole = |response: &OpenViewResponse| response.quarantined_segments.is_empty();
            let asked = self.0.cluster.read(collection.target(shard), &first, is_whole, ask).await?;
            refuse_quarantined(&asked.answer.quarantined_segments)?;
            let unnamed = || ApiError::new(ErrorKind::Internal, "a node gave a view without a name");
            Ok(OpenView { view: asked.answer.view.ok_or_else(unnamed)?, node: asked.node })
        });
        try_join_all(calls).await
    }

    /// Counts the documents that meet a filter.
    pub(super) async fn count_matching(
        &self,
        collection: &Arc<Resolved>,
        filter: &Filter,
        deadline: Deadline,
    ) -> Result<u64, ApiError> {
        let calls = (0..collection.num_shards()).map(|shard| async move {
            let message = CountRowsRequest {
                shard: Some(collection.shard_ref(shard)),
                view: Some(newest()),
                filter: Some(filter.clone()),
            };
            let ask = |node: Arc<NodeHandle>| {
                let message = message.clone();
                async move { node.client.count_rows(message, deadline).await }
            };
            let is_whole = |response: &CountRowsResponse| response.quarantined_segments.is_empty();
            let asked = self.0.cluster.read(collection.target(shard), &First::Idlest, is_whole, ask).await?;
            let response = asked.answer;
            refuse_quarantined(&response.quarantined_segments)?;
            Ok::<_, ApiError>(response.count)
        });
        Ok(try_join_all(calls).await?.into_iter().sum())
    }

    /// Deletes, by key, the documents that meet a filter in the newest view of each shard.
    pub(super) async fn delete_matching(
        &self,
        collection: &Arc<Resolved>,
        filter: &Filter,
        deadline: Deadline,
    ) -> Result<Written, ApiError> {
        let views = self.newest_views(collection, deadline).await?;
        // Where nothing matches, the version shows what was looked at.
        let mut positions: Vec<Position> = (0u32..)
            .zip(&views)
            .map(|(shard, seen)| Position { shard, seq: seen.view.seq, manifest_version: 0 })
            .collect();
        let mut num_deleted = 0;
        for (shard, seen) in (0u32..).zip(views) {
            let mut walk = Walk::new(Arc::clone(collection), shard, Some(filter.clone()), None, seen);
            while let Some(documents) = walk.next(self, deadline).await? {
                let delete = |document: Document| LogOp { op: Some(Op::DeleteKey(document.key)) };
                let written = self.write(collection, documents.into_iter().map(delete).collect(), deadline).await?;
                num_deleted += written.num_deleted;
                for position in written.positions {
                    if let Some(known) = positions.get_mut(position.shard as usize) {
                        known.seq = known.seq.max(position.seq);
                    }
                }
            }
        }
        let version = token::version(collection.uid(), positions.clone());
        Ok(Written { version, positions, num_deleted })
    }
}
