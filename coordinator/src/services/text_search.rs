//! TextSearchService.

use std::mem::take;

use antiphon_access::tokens::Right;
use antiphon_proto::v1::text_search_service_server::TextSearchService;
use antiphon_proto::v1::{SearchResponse, SearchTextRequest, TextQuery};
use tonic::{Request, Response, Status};

use super::embedded::QueryText;
use super::{Service, admit, searched};
use crate::search::{RequestBuilder, one_or_several};

#[tonic::async_trait]
impl TextSearchService for Service {
    async fn search_text(&self, request: Request<SearchTextRequest>) -> Result<Response<SearchResponse>, Status> {
        let caller = admit(&request, Right::Read, searched(&request.get_ref().options))?;
        let deadline = self.0.deadline(&request);
        let mut request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let single = TextQuery { text: take(&mut request.text), vector_field: take(&mut request.vector_field) };
        let queries = one_or_several(&single, &request.queries)?;
        let texts: Vec<QueryText<'_>> = queries
            .iter()
            .map(|(at, query)| QueryText { at, text: &query.text, vector_field: &query.vector_field })
            .collect();
        let embedded = self.embed_queries(&texts, &options, deadline).await?;
        let resolve = |collection| {
            let builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let lists = embedded.iter().map(|embedded| embedded.list(&builder)).collect::<Result<_, _>>()?;
            builder.fused(lists, request.fusion.as_ref())
        };
        Ok(Response::new(self.0.search(&caller, &options.collection, deadline, resolve).await?))
    }
}
