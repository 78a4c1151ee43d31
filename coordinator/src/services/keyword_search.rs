//! KeywordSearchService.

use antiphon_access::tokens::Right;
use antiphon_proto::v1::keyword_search_service_server::KeywordSearchService;
use antiphon_proto::v1::{SearchKeywordRequest, SearchResponse};
use tonic::{Request, Response, Status};

use super::{Service, admit, searched};
use crate::search::{QueryPath, RequestBuilder, several};

#[tonic::async_trait]
impl KeywordSearchService for Service {
    async fn search_keyword(&self, request: Request<SearchKeywordRequest>) -> Result<Response<SearchResponse>, Status> {
        let caller = admit(&request, Right::Read, searched(&request.get_ref().options))?;
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let resolve = |collection| {
            let mut builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let (text, fields, keyword) = (&request.text, &request.text_fields, request.keyword.as_ref());
            let lists = if request.queries.is_empty() {
                vec![builder.keyword_list(&QueryPath::single(), text, fields, keyword)?]
            } else {
                let has_single = !text.is_empty() || !fields.is_empty() || keyword.is_some();
                several(&request.queries, has_single)?
                    .map(|(at, query)| {
                        builder.keyword_list(&at, &query.text, &query.text_fields, query.keyword.as_ref())
                    })
                    .collect::<Result<_, _>>()?
            };
            builder.fused(lists, request.fusion.as_ref())
        };
        Ok(Response::new(self.0.search(&caller, &options.collection, deadline, resolve).await?))
    }
}
