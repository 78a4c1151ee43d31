//! The public gRPC services: thin adapters from messages to the coordinator.

mod cluster;
mod collection;
mod document;
mod hybrid_search;
mod import;
mod keyword_search;
mod vector_search;
mod write;

use std::sync::Arc;

use antiphon_proto::v1::cluster_service_server::ClusterServiceServer;
use antiphon_proto::v1::collection_service_server::CollectionServiceServer;
use antiphon_proto::v1::document_service_server::DocumentServiceServer;
use antiphon_proto::v1::hybrid_search_service_server::HybridSearchServiceServer;
use antiphon_proto::v1::keyword_search_service_server::KeywordSearchServiceServer;
use antiphon_proto::v1::vector_search_service_server::VectorSearchServiceServer;
use tonic::service::{Routes, RoutesBuilder};

use crate::coordinator::Coordinator;

/// Names of the services that [`routes`] registers.
pub const NAMES: [&str; 6] = [
    "antiphon.v1.CollectionService",
    "antiphon.v1.DocumentService",
    "antiphon.v1.VectorSearchService",
    "antiphon.v1.KeywordSearchService",
    "antiphon.v1.HybridSearchService",
    "antiphon.v1.ClusterService",
];

/// A service of the API.
#[derive(Clone)]
pub(crate) struct Service(pub(crate) Arc<Coordinator>);

/// All services that work on this coordinator.
pub fn routes(coordinator: &Arc<Coordinator>) -> Routes {
    let most = coordinator.config.max_message_bytes;
    let service = || Service(Arc::clone(coordinator));
    let mut routes = RoutesBuilder::default();
    routes
        .add_service(CollectionServiceServer::new(service()).max_decoding_message_size(most))
        .add_service(DocumentServiceServer::new(service()).max_decoding_message_size(most))
        .add_service(VectorSearchServiceServer::new(service()).max_decoding_message_size(most))
        .add_service(KeywordSearchServiceServer::new(service()).max_decoding_message_size(most))
        .add_service(HybridSearchServiceServer::new(service()).max_decoding_message_size(most))
        .add_service(ClusterServiceServer::new(service()).max_decoding_message_size(most));
    routes.routes()
}
