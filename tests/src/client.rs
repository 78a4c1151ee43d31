//! A client of all public services.

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::cluster_service_client::ClusterServiceClient;
use antiphon_proto::v1::collection_service_client::CollectionServiceClient;
use antiphon_proto::v1::document_service_client::DocumentServiceClient;
use antiphon_proto::v1::hybrid_search_service_client::HybridSearchServiceClient;
use antiphon_proto::v1::hybrid_text_search_service_client::HybridTextSearchServiceClient;
use antiphon_proto::v1::keyword_search_service_client::KeywordSearchServiceClient;
use antiphon_proto::v1::text_search_service_client::TextSearchServiceClient;
use antiphon_proto::v1::vector_search_service_client::VectorSearchServiceClient;
use antiphon_proto::v1::*;
use tonic::Status;

use crate::secure::{self, Channel};

/// Clients over one connection.
#[derive(Clone)]
pub struct Client {
    pub collections: CollectionServiceClient<Channel>,
    pub documents: DocumentServiceClient<Channel>,
    pub vector: VectorSearchServiceClient<Channel>,
    pub keyword: KeywordSearchServiceClient<Channel>,
    pub hybrid: HybridSearchServiceClient<Channel>,
    pub text: TextSearchServiceClient<Channel>,
    pub hybrid_text: HybridTextSearchServiceClient<Channel>,
    pub cluster: ClusterServiceClient<Channel>,
}

/// The kind of an error that a server of ours sent; panics where it lacks our details.
pub fn kind_of(status: &Status) -> ErrorKind {
    use tonic_types::StatusExt;
    let info = status.get_details_error_info();
    let info = info.unwrap_or_else(|| panic!("no ErrorInfo in {status:?}"));
    assert_eq!(info.domain, "antiphon");
    let kind = ApiError::from_status(status).kind();
    assert_eq!((kind.reason(), kind.code()), (info.reason.as_str(), status.code()), "{status:?}");
    kind
}

impl Client {
    /// Connects when it is first used.
    pub fn connect_lazy(url: &str) -> Self {
        Self::over(secure::connect_lazy(url))
    }

    pub fn over(channel: Channel) -> Self {
        const MOST: usize = 256 << 20;
        Self {
            collections: CollectionServiceClient::new(channel.clone()),
            documents: DocumentServiceClient::new(channel.clone()).max_decoding_message_size(MOST),
            vector: VectorSearchServiceClient::new(channel.clone()).max_decoding_message_size(MOST),
            keyword: KeywordSearchServiceClient::new(channel.clone()).max_decoding_message_size(MOST),
            hybrid: HybridSearchServiceClient::new(channel.clone()).max_decoding_message_size(MOST),
            text: TextSearchServiceClient::new(channel.clone()).max_decoding_message_size(MOST),
            hybrid_text: HybridTextSearchServiceClient::new(channel.clone()).max_decoding_message_size(MOST),
            cluster: ClusterServiceClient::new(channel),
        }
    }

    pub async fn create(&self, collection: Collection) -> Result<Collection, Status> {
        let request = CreateCollectionRequest { collection: Some(collection) };
        Ok(self.collections.clone().create_collection(request).await?.into_inner().collection.unwrap())
    }

    pub async fn get_collection(&self, name: &str) -> Result<Collection, Status> {
        let request = GetCollectionRequest { name: name.into() };
        Ok(self.collections.clone().get_collection(request).await?.into_inner().collection.unwrap())
    }

    pub async fn upsert(&self, collection: &str, documents: Vec<Document>) -> Result<UpsertDocumentsResponse, Status> {
        let request = UpsertDocumentsRequest { collection: collection.into(), documents };
        Ok(self.documents.clone().upsert_documents(request).await?.into_inner())
    }

    pub async fn delete(&self, collection: &str, keys: &[&str]) -> Result<DeleteDocumentsResponse, Status> {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let request = DeleteDocumentsRequest { collection: collection.into(), keys, filter: None };
        Ok(self.documents.clone().delete_documents(request).await?.into_inner())
    }

    pub async fn get(&self, collection: &str, keys: &[&str]) -> Result<GetDocumentsResponse, Status> {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let request =
            GetDocumentsRequest { collection: collection.into(), keys, fields: vec![], include_vectors: true };
        Ok(self.documents.clone().get_documents(request).await?.into_inner())
    }

    pub async fn count(&self, collection: &str) -> Result<u64, Status> {
        let request = CountDocumentsRequest { collection: collection.into(), filter: None };
        Ok(self.documents.clone().count_documents(request).await?.into_inner().count)
    }

    pub async fn count_matching(&self, collection: &str, filter: &Filter) -> Result<u64, Status> {
        let request = CountDocumentsRequest { collection: collection.into(), filter: Some(filter.clone()) };
        Ok(self.documents.clone().count_documents(request).await?.into_inner().count)
    }

    pub async fn delete_matching(&self, collection: &str, filter: &Filter) -> Result<DeleteDocumentsResponse, Status> {
        let request =
            DeleteDocumentsRequest { collection: collection.into(), filter: Some(filter.clone()), keys: vec![] };
        Ok(self.documents.clone().delete_documents(request).await?.into_inner())
    }

    /// All documents of an export, in order.
    pub async fn export(&self, collection: &str, filter: Option<&Filter>) -> Result<Vec<Document>, Status> {
        let request =
            ExportDocumentsRequest { collection: collection.into(), filter: filter.cloned(), include_vectors: true };
        let mut answers = self.documents.clone().export_documents(request).await?.into_inner();
        let mut documents = Vec::new();
        while let Some(answer) = answers.message().await? {
            assert!(!answer.documents.is_empty());
            documents.extend(answer.documents);
        }
        Ok(documents)
    }

    pub async fn search_vector(&self, request: SearchVectorRequest) -> Result<SearchResponse, Status> {
        Ok(self.vector.clone().search_vector(request).await?.into_inner())
    }

    pub async fn search_keyword(&self, request: SearchKeywordRequest) -> Result<SearchResponse, Status> {
        Ok(self.keyword.clone().search_keyword(request).await?.into_inner())
    }

    pub async fn search_hybrid(&self, request: SearchHybridRequest) -> Result<SearchResponse, Status> {
        Ok(self.hybrid.clone().search_hybrid(request).await?.into_inner())
    }

    pub async fn search_text(&self, request: SearchTextRequest) -> Result<SearchResponse, Status> {
        Ok(self.text.clone().search_text(request).await?.into_inner())
    }

    pub async fn search_hybrid_text(&self, request: SearchHybridTextRequest) -> Result<SearchResponse, Status> {
        Ok(self.hybrid_text.clone().search_hybrid_text(request).await?.into_inner())
    }

    pub async fn describe_cluster(&self) -> Result<DescribeClusterResponse, Status> {
        Ok(self.cluster.clone().describe_cluster(DescribeClusterRequest {}).await?.into_inner())
    }
}
