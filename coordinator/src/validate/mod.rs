//! Bad input gets a clear error before anything is done with it. Pure functions.

mod collection;
mod document;
mod filter;
mod query;
mod update;

pub use collection::{check_alias, check_collection};
pub use document::{check_documents, check_keys};
pub use filter::check_filter;
pub use query::{Depth, MAX_TERMS, keyword_query, vector_field, vector_query};

pub use update::{Updated, updated};

use antiphon_proto::error::{ApiError, ErrorKind};

/// Whether a name is [a-z0-9_-]{1,64}.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

/// Collects the faults of a request, so that a caller sees them all at once.
#[derive(Default)]
pub(crate) struct Faults(Option<ApiError>);

impl Faults {
    /// Notes a fault; the first one's kind becomes the error's.
    pub(crate) fn add(&mut self, kind: ErrorKind, field: impl Into<String>, description: impl Into<String>) {
        let (field, description) = (field.into(), description.into());
        self.0 = Some(match self.0.take() {
            None => ApiError::field(kind, field, description),
            Some(error) => error.with_violation(field, description),
        });
    }

    /// The error, if there was any fault.
    pub(crate) fn into_result(self) -> Result<(), ApiError> {
        self.0.map_or(Ok(()), Err)
    }
}
