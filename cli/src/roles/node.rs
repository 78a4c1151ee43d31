//! `antiphon node`: holds shards, asked by coordinators.

use std::sync::Arc;
use std::time::Duration;

use antiphon_access::AccessLayer;
use antiphon_membership::{Role, Secret};
use antiphon_node::{Node, NodeServer};
use antiphon_proto::internal::node_service_server::NodeServiceServer;
use tonic::service::RoutesBuilder;
use tonic::service::interceptor::InterceptedService;

use super::coordinator::Health;
use super::joining::{self, Joined, MembersOnly};
use super::listen::Port;
use super::{metrics, node_config, open_store};
use crate::failure::Failure;
use crate::settings::Settings;

/// Largest message between coordinator and node, in bytes.
const MAX_INTERNAL_MESSAGE_BYTES: usize = 256 << 20;

/// Serves until the process is told to stop.
pub(crate) async fn node(settings: Settings) -> Result<(), Failure> {
    let port = Port::bind(&settings).await?;
    let store = open_store(&settings.store).await?;
    let node = Node::start(node_config(&settings), store)
        .await
        .map_err(|error| Failure::of("the node cannot start", &error))?;
    let _metrics = metrics(&settings, Some(&node)).await?;
    let joined = joining::join(&settings, Role::Node, port.address()).await?;
    let secret = match &joined {
        Some(joined) => Some(joined.secret.clone()),
        None => {
            let secret = joining::secret(&settings)?;
            if secret.is_none() && !port.address().ip().is_loopback() {
                tracing::warn!(
                    "cluster.secret_file is not set: whoever reaches this node can read and write everything"
                );
            }
            secret
        }
    };
    let (health, health_service) = Health::new(&["antiphon.internal.v1.NodeService"]).await;
    let mut routes = RoutesBuilder::default();
    routes.add_service(node_service(&node, secret)).add_service(health_service);
    if let Some(Joined { membership, dialer, .. }) = &joined {
        node.join(Arc::clone(membership), dialer.clone()).await;
    }
    tracing::info!(id = settings.id, store = settings.store, "serving");
    let on_stop = async {
        node.drain(Duration::from_secs(settings.cluster.drain_s)).await;
        health.stop().await;
        if let Some(joined) = &joined {
            joined.membership.leave().await;
        }
    };
    let outcome = port.serve(routes.routes(), AccessLayer::default(), on_stop).await;
    node.stop().await;
    outcome
}

/// What a node answers its cluster's members.
pub(super) fn node_service(
    node: &Arc<Node>,
    secret: Option<Secret>,
) -> InterceptedService<NodeServiceServer<NodeServer>, MembersOnly> {
    let server = NodeServiceServer::new(NodeServer::new(Arc::clone(node)))
        .max_decoding_message_size(MAX_INTERNAL_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_INTERNAL_MESSAGE_BYTES);
    InterceptedService::new(server, MembersOnly(secret))
}
