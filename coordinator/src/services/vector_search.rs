//! VectorSearchService.

use antiphon_proto::v1::vector_search_service_server::VectorSearchService;
use antiphon_proto::v1::{Channel, SearchResponse, SearchVectorRequest};
use tonic::{Request, Response, Status};

use super::Service;
use crate::search::{ListKind, ListQuery, RequestBuilder};
use crate::validate::vector_query;

#[tonic::async_trait]
impl VectorSearchService for Service {
    async fn search_vector(&self, request: Request<SearchVectorRequest>) -> Result<Response<SearchResponse>, Status> {
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let resolve = |collection| {
            let builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let query = vector_query(
                request.vector.as_ref(),
                &request.vector_field,
                options.exact,
                builder.depth(),
                builder.schema(),
            )?;
            builder.single(ListQuery { channel: Channel::Vector, query: 0, kind: ListKind::Vector(query) })
        };
        Ok(Response::new(self.0.search(&options.collection, deadline, resolve).await?))
    }
}
