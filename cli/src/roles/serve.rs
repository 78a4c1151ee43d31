//! `antiphon serve`: coordinator and node in one process, over a local directory unless told otherwise.

use std::sync::Arc;
use std::time::Duration;

use antiphon_coordinator::{Cluster, Coordinator, NodeClient, NodeHandle};
use antiphon_membership::Role;
use antiphon_node::{Node, NodeServer};

use super::coordinator::public_routes;
use super::embedders::start_embedders;
use super::guard;
use super::joining::{self, Joined};
use super::listen::Port;
use super::node::node_service;
use super::{coordinator_config, metrics, node_config, open_store};
use crate::failure::Failure;
use crate::settings::Settings;

/// Searches that run at once: more only wait for the same cores.
const SEARCHES_A_CORE: usize = 16;

/// Serves until the process is told to stop.
pub(crate) async fn serve(settings: Settings) -> Result<(), Failure> {
    let port = Port::bind(&settings).await?;
    let access = guard::public_access(&settings)?;
    let store = open_store(&settings.store).await?;
    let embedders = start_embedders(&settings).await?;
    let node = Node::start(node_config(&settings), store.clone())
        .await
        .map_err(|error| Failure::of("the node cannot start", &error))?;
    let _metrics = metrics(&settings, Some(&node)).await?;
    let client = NodeClient::Local(Arc::new(NodeServer::new(Arc::clone(&node))));
    let joined = joining::join(&settings, Role::Serve, port.address()).await?;
    let cluster = match &joined {
        Some(Joined { membership, dialer, .. }) => {
            node.join(Arc::clone(membership), dialer.clone()).await;
            Cluster::of_members(membership, dialer.clone(), Some(client))
        }
        None => {
            node.open_all().await;
            Cluster::new(vec![NodeHandle::new(&port.url(), client)])
        }
    };
    let coordinator = Coordinator::start(coordinator_config(&settings, embedders, SEARCHES_A_CORE), store, cluster)
        .await
        .map_err(|error| Failure::of("the coordinator cannot start", &error))?;
    tracing::info!(store = settings.store, "serving");
    let (mut routes, health) = public_routes(&coordinator, settings.access.reflection).await?;
    if let Some(joined) = &joined {
        // Other members reach the shards held here.
        routes = routes.add_service(node_service(&node, Some(joined.secret.clone())));
    }
    let on_stop = async {
        node.drain(Duration::from_secs(settings.cluster.drain_s)).await;
        health.stop().await;
        if let Some(joined) = &joined {
            joined.membership.leave().await;
        }
    };
    let outcome = port.serve(routes, access, on_stop).await;
    node.stop().await;
    outcome
}
