//! HybridTextSearchService.

use antiphon_proto::v1::hybrid_text_search_service_server::HybridTextSearchService;
use antiphon_proto::v1::{SearchHybridTextRequest, SearchResponse};
use tonic::{Request, Response, Status};

use super::Service;
use crate::search::{QueryPath, RequestBuilder};

#[tonic::async_trait]
impl HybridTextSearchService for Service {
    async fn search_hybrid_text(
        &self,
        request: Request<SearchHybridTextRequest>,
    ) -> Result<Response<SearchResponse>, Status> {
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let embedded = self.embed_query(&request.text, &request.vector_field, &options, deadline).await?;
        let resolve = |collection| {
            let mut builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let (fields, keyword) = (&request.text_fields, request.keyword.as_ref());
            let vector = embedded.list(&builder, &request.vector_field)?;
            let words = builder.keyword_list(&QueryPath::single(), &request.text, fields, keyword)?;
            builder.fused(vec![vector, words], request.fusion.as_ref())
        };
        Ok(Response::new(self.0.search(&options.collection, deadline, resolve).await?))
    }
}
