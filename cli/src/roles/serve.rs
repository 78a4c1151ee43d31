//! `antiphon serve`: coordinator and node in one process, over a local directory unless told otherwise.

use std::sync::Arc;

use antiphon_coordinator::{Cluster, Coordinator, NodeClient, NodeHandle};
use antiphon_node::{Node, NodeServer};

use super::coordinator::public_routes;
use super::embedders::start_embedders;
use super::listen::Port;
use super::{coordinator_config, node_config, open_store};
use crate::failure::Failure;
use crate::settings::Settings;

/// Serves until the process is told to stop.
pub(crate) async fn serve(settings: Settings) -> Result<(), Failure> {
    let port = Port::bind(settings.listen).await?;
    let store = open_store(&settings.store).await?;
    let embedders = start_embedders(&settings).await?;
    let node = Node::start(node_config(&settings), store.clone())
        .await
        .map_err(|error| Failure::of("the node cannot start", &error))?;
    node.open_all().await;
    let client = NodeClient::Local(Arc::new(NodeServer::new(Arc::clone(&node))));
    let cluster = Cluster::new(vec![NodeHandle { address: port.url(), client }]);
    let coordinator = Coordinator::start(coordinator_config(&settings, embedders), store, cluster)
        .await
        .map_err(|error| Failure::of("the coordinator cannot start", &error))?;
    tracing::info!(store = settings.store, "serving");
    let (routes, health) = public_routes(&coordinator).await?;
    let outcome = port.serve(routes, health.stop()).await;
    node.stop().await;
    outcome
}
