//! VectorSearchService.

use antiphon_access::tokens::Right;
use antiphon_proto::v1::vector_search_service_server::VectorSearchService;
use antiphon_proto::v1::{SearchResponse, SearchVectorRequest};
use tonic::{Request, Response, Status};

use super::{Service, admit, searched};
use crate::search::{QueryPath, RequestBuilder, several};

#[tonic::async_trait]
impl VectorSearchService for Service {
    async fn search_vector(&self, request: Request<SearchVectorRequest>) -> Result<Response<SearchResponse>, Status> {
        let caller = admit(&request, Right::Read, searched(&request.get_ref().options))?;
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let resolve = |collection| {
            let builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let lists = if request.queries.is_empty() {
                vec![builder.vector_list(&QueryPath::single(), request.vector.as_ref(), &request.vector_field)?]
            } else {
                let has_single = request.vector.is_some() || !request.vector_field.is_empty();
                several(&request.queries, has_single)?
                    .map(|(at, query)| builder.vector_list(&at, query.vector.as_ref(), &query.vector_field))
                    .collect::<Result<_, _>>()?
            };
            builder.fused(lists, request.fusion.as_ref())
        };
        Ok(Response::new(self.0.search(&caller, &options.collection, deadline, resolve).await?))
    }
}
