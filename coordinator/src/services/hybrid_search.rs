//! HybridSearchService.

use antiphon_access::tokens::Right;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::hybrid_search_service_server::HybridSearchService;
use antiphon_proto::v1::{HybridQuery, SearchHybridRequest, SearchResponse};
use tonic::{Request, Response, Status};

use super::{Service, admit, searched};
use crate::search::{ListQuery, QueryPath, RequestBuilder, several};

#[tonic::async_trait]
impl HybridSearchService for Service {
    async fn search_hybrid(&self, request: Request<SearchHybridRequest>) -> Result<Response<SearchResponse>, Status> {
        let caller = admit(&request, Right::Read, searched(&request.get_ref().options))?;
        let deadline = self.0.deadline(&request);
        let request = request.into_inner();
        let options = request.options.unwrap_or_default();
        let resolve = |collection| {
            let mut builder = RequestBuilder::new(&self.0.config.law, collection, &options)?;
            let (vector, field) = (request.vector.as_ref(), &request.vector_field);
            let (text, fields, keyword) = (&request.text, &request.text_fields, request.keyword.as_ref());
            let lists = if request.queries.is_empty() {
                let at = QueryPath::single();
                vec![builder.vector_list(&at, vector, field)?, builder.keyword_list(&at, text, fields, keyword)?]
            } else {
                let has_single = vector.is_some()
                    || !field.is_empty()
                    || !text.is_empty()
                    || !fields.is_empty()
                    || keyword.is_some();
                let mut lists = Vec::new();
                for (at, query) in several(&request.queries, has_single)? {
                    lists_of(&mut builder, &at, query, &mut lists)?;
                }
                lists
            };
            builder.fused(lists, request.fusion.as_ref())
        };
        Ok(Response::new(self.0.search(&caller, &options.collection, deadline, resolve).await?))
    }
}

/// The lists of one query of several: its vector's, its text's, or both.
///
/// # Errors
/// QUERY_EMPTY for a query without either; ARGUMENT_INVALID for parameters of what it does not have; those of the lists.
fn lists_of(
    builder: &mut RequestBuilder<'_>,
    at: &QueryPath,
    query: &HybridQuery,
    lists: &mut Vec<ListQuery>,
) -> Result<(), ApiError> {
    let fault = |kind, name, words: &str| Err(ApiError::field(kind, at.field(name), words));
    match &query.vector {
        Some(vector) => lists.push(builder.vector_list(at, Some(vector), &query.vector_field)?),
        None if !query.vector_field.is_empty() => {
            return fault(ErrorKind::ArgumentInvalid, "vector_field", "the query has no vector");
        }
        None if query.text.is_none() => {
            return fault(ErrorKind::QueryEmpty, "vector", "neither a vector nor a text was sent");
        }
        None => {}
    }
    match &query.text {
        Some(text) => lists.push(builder.keyword_list(at, text, &query.text_fields, query.keyword.as_ref())?),
        None if !query.text_fields.is_empty() => {
            return fault(ErrorKind::ArgumentInvalid, "text_fields", "the query has no text");
        }
        None if query.keyword.is_some() => {
            return fault(ErrorKind::ArgumentInvalid, "keyword", "the query has no text");
        }
        None => {}
    }
    Ok(())
}
