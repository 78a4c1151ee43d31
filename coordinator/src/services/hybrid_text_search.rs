//! HybridTextSearchService.

use std::mem::take;

use antiphon_access::tokens::Right;
use antiphon_proto::v1::hybrid_text_search_service_server::HybridTextSearchService;
use antiphon_proto::v1::{HybridTextQuery, SearchHybridTextRequest, SearchResponse};
use tonic::{Request, Response, Status};

use super::embedded::QueryText;
use super::{Service, admit, searched};
use crate::search::{RequestBuilder, one_or_several};

#[tonic::async_trait]
impl HybridTextSearchService for Service {
    async fn search_hybrid_text(
        &self,
        request: Request<SearchHybridTextRequest>,
    ) -> Result<Response<SearchResponse>, Status> {
        let caller = admit(&request, Right::Read, searched(&request.get_ref().options))?;
        let deadline = self.0.deadline(&request);
        let mut request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let single = HybridTextQuery {
            text: take(&mut request.text),
            vector_field: take(&mut request.vector_field),
            text_fields: take(&mut request.text_fields),
            keyword: request.keyword.take(),
        };
        let queries = one_or_several(&single, &request.queries)?;
        let texts: Vec<QueryText<'_>> = queries
            .iter()
            .map(|(at, query)| QueryText { at, text: &query.text, vector_field: &query.vector_field })
            .collect();
        let embedded = self.embed_queries(&texts, &options, deadline).await?;
        let resolve = |collection| {
            let mut builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let mut lists = Vec::with_capacity(2 * queries.len());
            for ((at, query), embedded) in queries.iter().zip(&embedded) {
                lists.push(embedded.list(&builder)?);
                lists.push(builder.keyword_list(at, &query.text, &query.text_fields, query.keyword.as_ref())?);
            }
            builder.fused(lists, request.fusion.as_ref())
        };
        Ok(Response::new(self.0.search(&caller, &options.collection, deadline, resolve).await?))
    }
}
