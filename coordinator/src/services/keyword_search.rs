//! KeywordSearchService.

use antiphon_proto::v1::keyword_search_service_server::KeywordSearchService;
use antiphon_proto::v1::{Channel, SearchKeywordRequest, SearchResponse};
use tonic::{Request, Response, Status};

use super::Service;
use crate::search::{ListKind, ListQuery, RequestBuilder};
use crate::validate::keyword_query;

#[tonic::async_trait]
impl KeywordSearchService for Service {
    async fn search_keyword(&self, request: Request<SearchKeywordRequest>) -> Result<Response<SearchResponse>, Status> {
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let resolve = |collection| {
            let mut builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let (schema, warnings) = builder.schema_and_warnings();
            let query = keyword_query(&request.text, &request.text_fields, request.keyword.as_ref(), schema, warnings)?;
            builder.single(ListQuery { channel: Channel::Keyword, query: 0, kind: ListKind::Keyword(query) })
        };
        Ok(Response::new(self.0.search(&options.collection, deadline, resolve).await?))
    }
}
