//! `antiphon node`: holds shards, asked by coordinators.

use antiphon_node::{Node, NodeServer};
use antiphon_proto::internal::node_service_server::NodeServiceServer;
use tonic::service::RoutesBuilder;

use super::coordinator::Health;
use super::listen::Port;
use super::{node_config, open_store};
use crate::failure::Failure;
use crate::settings::Settings;

/// Largest message between coordinator and node, in bytes.
const MAX_INTERNAL_MESSAGE_BYTES: usize = 256 << 20;

/// Serves until the process is told to stop.
pub(crate) async fn node(settings: Settings) -> Result<(), Failure> {
    let port = Port::bind(settings.listen).await?;
    let store = open_store(&settings.store).await?;
    let node = Node::start(node_config(&settings), store)
        .await
        .map_err(|error| Failure::of("the node cannot start", &error))?;
    let server = NodeServiceServer::new(NodeServer::new(std::sync::Arc::clone(&node)))
        .max_decoding_message_size(MAX_INTERNAL_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_INTERNAL_MESSAGE_BYTES);
    let (health, health_service) = Health::new(&["antiphon.internal.v1.NodeService"]).await;
    let mut routes = RoutesBuilder::default();
    routes.add_service(server).add_service(health_service);
    tracing::info!(id = settings.id, store = settings.store, "serving");
    let outcome = port.serve(routes.routes(), health.stop()).await;
    node.stop().await;
    outcome
}
