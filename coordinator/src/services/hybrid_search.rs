//! HybridSearchService.

use antiphon_proto::v1::hybrid_search_service_server::HybridSearchService;
use antiphon_proto::v1::{Channel, SearchHybridRequest, SearchResponse};
use tonic::{Request, Response, Status};

use super::Service;
use crate::search::{ListKind, ListQuery, RequestBuilder};
use crate::validate::{keyword_query, vector_query};

#[tonic::async_trait]
impl HybridSearchService for Service {
    async fn search_hybrid(&self, request: Request<SearchHybridRequest>) -> Result<Response<SearchResponse>, Status> {
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let resolve = |collection| {
            let mut builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let vector = vector_query(
                request.vector.as_ref(),
                &request.vector_field,
                options.exact,
                builder.depth(),
                builder.schema(),
            )?;
            let (schema, warnings) = builder.schema_and_warnings();
            let keywords =
                keyword_query(&request.text, &request.text_fields, request.keyword.as_ref(), schema, warnings)?;
            let lists = vec![
                ListQuery { channel: Channel::Vector, query: 0, kind: ListKind::Vector(vector) },
                ListQuery { channel: Channel::Keyword, query: 0, kind: ListKind::Keyword(keywords) },
            ];
            builder.fused(lists, request.fusion.as_ref())
        };
        Ok(Response::new(self.0.search(&options.collection, deadline, resolve).await?))
    }
}
