//! The public gRPC services: thin adapters from messages to the coordinator.

mod cluster;
mod collection;
mod document;
mod embedded;
mod export;
mod hybrid_search;
mod hybrid_text_search;
mod import;
mod keyword_search;
mod matching;
mod text_search;
mod vector_search;
mod write;

use std::sync::Arc;

use antiphon_access::Caller;
use antiphon_access::tokens::Right;
use antiphon_proto::error::ApiError;
use antiphon_proto::v1::SearchOptions;
use antiphon_proto::v1::cluster_service_server::ClusterServiceServer;
use antiphon_proto::v1::collection_service_server::CollectionServiceServer;
use antiphon_proto::v1::document_service_server::DocumentServiceServer;
use antiphon_proto::v1::hybrid_search_service_server::HybridSearchServiceServer;
use antiphon_proto::v1::hybrid_text_search_service_server::HybridTextSearchServiceServer;
use antiphon_proto::v1::keyword_search_service_server::KeywordSearchServiceServer;
use antiphon_proto::v1::text_search_service_server::TextSearchServiceServer;
use antiphon_proto::v1::vector_search_service_server::VectorSearchServiceServer;
use prost::Message;
use tonic::Request;
use tonic::service::{Routes, RoutesBuilder};

use crate::coordinator::Coordinator;

/// Names of the services that [`routes`] always registers.
pub const NAMES: [&str; 6] = [
    "antiphon.v1.CollectionService",
    "antiphon.v1.DocumentService",
    "antiphon.v1.VectorSearchService",
    "antiphon.v1.KeywordSearchService",
    "antiphon.v1.HybridSearchService",
    "antiphon.v1.ClusterService",
];

/// Names of the services that [`routes`] registers where there is an embedder.
pub const EMBEDDING_NAMES: [&str; 2] = ["antiphon.v1.TextSearchService", "antiphon.v1.HybridTextSearchService"];

/// Names of all services that work on this coordinator.
pub fn names(coordinator: &Coordinator) -> Vec<&'static str> {
    let more: &[&str] = if coordinator.has_embedders() { &EMBEDDING_NAMES } else { &[] };
    NAMES.iter().chain(more).copied().collect()
}

/// A service of the API.
#[derive(Clone)]
pub(crate) struct Service(pub(crate) Arc<Coordinator>);

/// Lets a call on that its caller may make, before anything is looked up: who may not, learns not even what there is.
///
/// # Errors
/// TOKEN_SCOPE, TOKEN_INVALID, TOO_LARGE.
fn admit<T: Message>(request: &Request<T>, right: Right, collection: &str) -> Result<Caller, ApiError> {
    let caller = Caller::of(request)?;
    caller.may(right, collection)?;
    caller.check_size(request.get_ref())?;
    Ok(caller)
}

/// The collection that a search names.
fn searched(options: &Option<SearchOptions>) -> &str {
    options.as_ref().map_or("", |options| options.collection.as_str())
}

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
    if coordinator.has_embedders() {
        routes
            .add_service(TextSearchServiceServer::new(service()).max_decoding_message_size(most))
            .add_service(HybridTextSearchServiceServer::new(service()).max_decoding_message_size(most));
    }
    routes.routes()
}
