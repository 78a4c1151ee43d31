//! TextSearchService.

use antiphon_proto::v1::text_search_service_server::TextSearchService;
use antiphon_proto::v1::{SearchResponse, SearchTextRequest};
use tonic::{Request, Response, Status};

use super::Service;
use crate::search::RequestBuilder;

#[tonic::async_trait]
impl TextSearchService for Service {
    async fn search_text(&self, request: Request<SearchTextRequest>) -> Result<Response<SearchResponse>, Status> {
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let embedded = self.embed_query(&request.text, &request.vector_field, &options, deadline).await?;
        let resolve = |collection| {
            let builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let list = embedded.list(&builder, &request.vector_field)?;
            builder.fused(vec![list], None)
        };
        Ok(Response::new(self.0.search(&options.collection, deadline, resolve).await?))
    }
}
