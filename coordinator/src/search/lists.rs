//! The lists of a search: one for a single query, one or two for each of several.
//!
//! Not for what several lists become: that is the fusion's. Where a query's vector comes from is the caller's affair.

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::{Channel, Keyword, Vector};

use super::request::{ListKind, ListQuery, RequestBuilder};
use crate::validate::{keyword_query, vector_query};

/// Most queries in one request.
const MAX_QUERIES: usize = 16;

/// One of the queries of a request: its number, and where it stands in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPath {
    /// From 0.
    pub query: u32,
    /// What stands before the names of its fields: nothing, or `queries[3].`.
    pub path: String,
}

impl QueryPath {
    /// The single query of a request.
    pub fn single() -> Self {
        Self { query: 0, path: String::new() }
    }

    /// A field of the query, by its path in the message.
    pub fn field(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }
}

/// The queries of a request that holds several, with their paths. `has_single` says whether it also holds a single one.
///
/// # Errors
/// ARGUMENT_INVALID for both at once, and for too many.
pub fn several<Q>(queries: &[Q], has_single: bool) -> Result<impl Iterator<Item = (QueryPath, &Q)>, ApiError> {
    let fault = |words: String| Err(ApiError::field(ErrorKind::ArgumentInvalid, "queries", words));
    if has_single {
        return fault("they stand in place of the single query: send either".into());
    }
    if queries.len() > MAX_QUERIES {
        return fault(format!("{} are too many; at most {MAX_QUERIES}", queries.len()));
    }
    let path = |query: u32| QueryPath { query, path: format!("queries[{query}].") };
    Ok((0..).map(path).zip(queries))
}

/// The queries of a request: its single one, or several.
///
/// # Errors
/// Those of [`several`].
pub fn one_or_several<'q, Q>(single: &'q Q, queries: &'q [Q]) -> Result<Vec<(QueryPath, &'q Q)>, ApiError>
where
    Q: Default + PartialEq,
{
    if queries.is_empty() {
        return Ok(vec![(QueryPath::single(), single)]);
    }
    Ok(several(queries, *single != Q::default())?.collect())
}

impl RequestBuilder<'_> {
    /// The list of a vector.
    ///
    /// # Errors
    /// Those of [`vector_query`].
    pub fn vector_list(&self, at: &QueryPath, sent: Option<&Vector>, field: &str) -> Result<ListQuery, ApiError> {
        let query = vector_query(&at.path, sent, field, self.options().exact, self.depth(), self.schema())?;
        Ok(ListQuery { channel: Channel::Vector, query: at.query, kind: ListKind::Vector(query) })
    }

    /// The list of a text.
    ///
    /// # Errors
    /// Those of [`keyword_query`].
    pub fn keyword_list(
        &mut self,
        at: &QueryPath,
        text: &str,
        fields: &[String],
        keyword: Option<&Keyword>,
    ) -> Result<ListQuery, ApiError> {
        let (schema, warnings) = self.schema_and_warnings();
        let query = keyword_query(&at.path, text, fields, keyword, schema, warnings)?;
        Ok(ListQuery { channel: Channel::Keyword, query: at.query, kind: ListKind::Keyword(query) })
    }
}
