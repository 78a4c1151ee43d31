//! Filters against the schema.

use antiphon_proto::error::ApiError;
use antiphon_proto::filter;
use antiphon_proto::v1::{Filter, Schema};

/// Checks a filter. `path` is where the request holds it.
///
/// # Errors
/// FIELD_UNKNOWN, FIELD_TYPE, NOT_FINITE; ARGUMENT_INVALID where it passes a bound or a condition is not set.
pub fn check_filter(sent: Option<&Filter>, schema: &Schema, path: &str) -> Result<(), ApiError> {
    sent.map_or(Ok(()), |sent| filter::resolve(sent, &schema.attributes, path).map(drop))
}
