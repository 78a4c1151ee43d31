//! The coordinator: what its services share.

use std::sync::Arc;
use std::time::Duration;

use antiphon_access::Caller;
use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::{DescribeShardRequest, DescribeShardResponse};
use antiphon_proto::v1::SearchResponse;
use antiphon_store::{CatalogStore, Store};
use antiphon_telemetry::phase;
use futures::future::try_join_all;
use tokio::task::JoinHandle;
use tonic::Request;
use tracing::Instrument as _;

use crate::admission::Admission;
use crate::cluster::{Cluster, First, NodeHandle};
use crate::collections::{Collections, Resolved};
use crate::config::CoordinatorConfig;
use crate::search::{self, SearchRequest, When};

/// How often a search begins anew on newer views when those it began on went.
const MAX_NEW_VIEWS: usize = 8;

/// A coordinator: stateless but for its copy of the catalog.
pub struct Coordinator {
    pub(crate) config: CoordinatorConfig,
    pub(crate) collections: Collections,
    pub(crate) cluster: Cluster,
    admission: Admission,
    follower: JoinHandle<()>,
}

impl Coordinator {
    /// Starts a coordinator over a store and nodes.
    ///
    /// # Errors
    /// STORE_UNAVAILABLE or CORRUPTION where the catalog cannot be read.
    pub async fn start(config: CoordinatorConfig, store: Store, cluster: Cluster) -> Result<Arc<Self>, ApiError> {
        let collections = Collections::new(CatalogStore::new(store));
        collections.list().await?;
        let follower = tokio::spawn(collections.clone().follow(config.catalog_interval));
        let admission = Admission::new(config.max_running_searches, config.max_waiting_searches);
        Ok(Arc::new(Self { config, collections, cluster, admission, follower }))
    }

    /// Whether there is any embedder, and so the services that need one.
    pub fn has_embedders(&self) -> bool {
        !self.config.embedders.is_empty()
    }

    pub(crate) fn deadline<T>(&self, request: &Request<T>) -> Deadline {
        Deadline::of(request.metadata(), self.config.default_timeout)
    }

    /// Runs a search under its deadline, when it is its caller's turn. A collection that was deleted meanwhile is looked up once more, since another of
    /// the same name may be there.
    pub(crate) async fn search(
        &self,
        caller: &Caller,
        name: &str,
        deadline: Deadline,
        resolve: impl Fn(Arc<Resolved>) -> Result<SearchRequest, ApiError>,
    ) -> Result<SearchResponse, ApiError> {
        let resolve = |collection| phase!("validate").in_scope(|| resolve(collection));
        let config = &self.config;
        let run =
            |request| search::run(&self.cluster, request, deadline, config.max_response_bytes, config.slow_search);
        let search = async {
            let turn = self.admission.enter(caller.name().unwrap_or_default(), deadline);
            let _admitted = turn.instrument(phase!("turn")).await?;
            let mut collection = self.collections.find(name).await?;
            let mut request = match resolve(Arc::clone(&collection)) {
                // Perhaps a field that another coordinator added.
                Err(error) if matches!(error.kind(), ErrorKind::FieldUnknown | ErrorKind::FieldAmbiguous) => {
                    let newest = self.collections.find_newest(name).await?;
                    if !newest.is_newer_than(&collection) {
                        return Err(error);
                    }
                    collection = newest;
                    resolve(Arc::clone(&collection))?
                }
                resolved => resolved?,
            };
            let has_snapshot = matches!(request.when, When::Snapshot(_));
            let mut attempts = 0;
            loop {
                match run(request).await {
                    // The view that the search began on went when fields were added to the schema.
                    Err(error)
                        if error.kind() == ErrorKind::SnapshotExpired && !has_snapshot && attempts < MAX_NEW_VIEWS =>
                    {
                        attempts += 1;
                        request = resolve(self.collections.find_newest(name).await?)?;
                    }
                    Err(error) if error.kind() == ErrorKind::CollectionNotFound => {
                        let newest = self.collections.find_newest(name).await?;
                        if newest.uid() == collection.uid() {
                            return Err(ApiError::new(ErrorKind::ShardUnavailable, error.message()));
                        }
                        return run(resolve(newest)?).await;
                    }
                    outcome => return outcome,
                }
            }
        };
        within(deadline, search).await
    }

    /// Every shard's counts.
    pub(crate) async fn describe_shards(
        &self,
        collection: &Resolved,
        refresh: bool,
        deadline: Deadline,
    ) -> Result<Vec<DescribeShardResponse>, ApiError> {
        let calls = (0..collection.num_shards()).map(|shard| async move {
            let message = DescribeShardRequest { shard: Some(collection.shard_ref(shard)), refresh };
            let ask = |node: Arc<NodeHandle>| {
                let message = message.clone();
                async move { node.client.describe_shard(message, deadline).await }
            };
            let asked = self.cluster.read(collection.target(shard), &First::Idlest, |_| true, ask).await?;
            Ok(asked.answer)
        });
        try_join_all(calls).await
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

/// Answers DEADLINE where the work is not done in time.
pub(crate) async fn within<T>(
    deadline: Deadline,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let left: Duration = deadline.left();
    match tokio::time::timeout(left, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ApiError::new(ErrorKind::Deadline, format!("not done within {} ms", left.as_millis()))),
    }
}
