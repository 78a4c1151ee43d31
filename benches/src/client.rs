//! A client of the services that the benchmarks use, and short ways to write requests.

use std::time::Duration;

use antiphon_proto::error::ApiError;
use antiphon_proto::v1::cluster_service_client::ClusterServiceClient;
use antiphon_proto::v1::collection_service_client::CollectionServiceClient;
use antiphon_proto::v1::document_service_client::DocumentServiceClient;
use antiphon_proto::v1::hybrid_search_service_client::HybridSearchServiceClient;
use antiphon_proto::v1::keyword_search_service_client::KeywordSearchServiceClient;
use antiphon_proto::v1::vector_search_service_client::VectorSearchServiceClient;
use antiphon_proto::v1::{
    Collection, CreateCollectionRequest, Metric, Replica, Schema, SearchHybridRequest, SearchKeywordRequest,
    SearchOptions, SearchResponse, SearchVectorRequest, TextField, VectorField,
};
use antiphon_proto::vector;
use clap::ValueEnum;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::Outcome;
use crate::queries::Query;

/// Largest message taken: pages of benchmarks are larger than most clients'.
const MAX_MESSAGE: usize = 64 << 20;

/// Which search is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// SearchVector.
    Vector,
    /// SearchKeyword.
    Keyword,
    /// SearchHybrid.
    Hybrid,
}

/// Clients over one connection. Clones share it.
#[derive(Debug, Clone)]
pub struct Client {
    /// Collections.
    pub collections: CollectionServiceClient<Channel>,
    /// Documents.
    pub documents: DocumentServiceClient<Channel>,
    cluster: ClusterServiceClient<Channel>,
    vector: VectorSearchServiceClient<Channel>,
    keyword: KeywordSearchServiceClient<Channel>,
    hybrid: HybridSearchServiceClient<Channel>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// Where nobody answers.
    pub async fn connect(url: &str) -> Outcome<Self> {
        let endpoint =
            Endpoint::from_shared(url.to_owned())?.tcp_nodelay(true).connect_timeout(Duration::from_secs(10));
        let channel = endpoint.connect().await?;
        Ok(Self {
            collections: CollectionServiceClient::new(channel.clone()),
            documents: DocumentServiceClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE),
            cluster: ClusterServiceClient::new(channel.clone()),
            vector: VectorSearchServiceClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE),
            keyword: KeywordSearchServiceClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE),
            hybrid: HybridSearchServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE),
        })
    }

    /// Creates a collection with the vector field `v` (cosine, defaults) and the text fields `title` and `text`
    /// (English).
    ///
    /// # Errors
    /// The server's.
    pub async fn create(&self, name: &str, dims: usize, num_shards: u32) -> Outcome<()> {
        self.create_analyzed(name, dims, num_shards, "en").await
    }

    /// As [`Client::create`], with another analyzer.
    ///
    /// # Errors
    /// The server's.
    pub async fn create_analyzed(&self, name: &str, dims: usize, num_shards: u32, analyzer: &str) -> Outcome<()> {
        let vector = VectorField {
            name: "v".into(),
            dimensions: u32::try_from(dims)?,
            metric: Metric::Cosine as i32,
            ..VectorField::default()
        };
        let text = |name: &str| TextField { name: name.into(), analyzer: analyzer.into(), boost: 1.0 };
        let schema = Schema { vectors: vec![vector], texts: vec![text("title"), text("text")], ..Schema::default() };
        let collection =
            Collection { name: name.into(), schema: Some(schema), shard_count: num_shards, ..Collection::default() };
        self.collections.clone().create_collection(CreateCollectionRequest { collection: Some(collection) }).await?;
        Ok(())
    }

    /// The replicas of all shards.
    ///
    /// # Errors
    /// The server's.
    pub async fn replicas(&self) -> Result<Vec<Replica>, Status> {
        let response = self.cluster.clone().describe_cluster(antiphon_proto::v1::DescribeClusterRequest {}).await?;
        Ok(response.into_inner().shards.into_iter().flat_map(|shard| shard.replicas).collect())
    }

    /// Searches.
    ///
    /// # Errors
    /// The server's.
    pub async fn search(&self, request: Search) -> Result<SearchResponse, Status> {
        Ok(match request {
            Search::Vector(request) => self.vector.clone().search_vector(request).await?.into_inner(),
            Search::Keyword(request) => self.keyword.clone().search_keyword(request).await?.into_inner(),
            Search::Hybrid(request) => self.hybrid.clone().search_hybrid(request).await?.into_inner(),
        })
    }
}

/// A request of one of the searches.
#[derive(Debug, Clone)]
pub enum Search {
    /// SearchVector.
    Vector(SearchVectorRequest),
    /// SearchKeyword.
    Keyword(SearchKeywordRequest),
    /// SearchHybrid.
    Hybrid(SearchHybridRequest),
}

impl Search {
    /// Puts a request together.
    pub fn new(method: Method, query: &Query, options: SearchOptions) -> Self {
        let (vector, text, options) = (Some(vector::to_proto(&query.vector)), query.text.clone(), Some(options));
        match method {
            Method::Vector => Self::Vector(SearchVectorRequest { vector, options, ..SearchVectorRequest::default() }),
            Method::Keyword => Self::Keyword(SearchKeywordRequest { text, options, ..SearchKeywordRequest::default() }),
            Method::Hybrid => {
                Self::Hybrid(SearchHybridRequest { vector, text, options, ..SearchHybridRequest::default() })
            }
        }
    }
}

/// Options of a search of the first page.
pub fn options(collection: &str, page_size: u32) -> SearchOptions {
    SearchOptions { collection: collection.into(), page_size, ..SearchOptions::default() }
}

/// An error as `CODE REASON`, for counting.
pub fn name_of(status: &Status) -> String {
    format!("{:?} {}", status.code(), ApiError::from_status(status).kind().reason())
}
