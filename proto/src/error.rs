//! Errors as callers meet them: one kind for each row of the contract, built into a `google.rpc.Status` in one place.
//!
//! Every status that leaves a server holds ErrorInfo{reason, domain "antiphon"}; INVALID_ARGUMENT also BadRequest,
//! RESOURCE_EXHAUSTED also RetryInfo.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The domain of every ErrorInfo.
pub const DOMAIN: &str = "antiphon";

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $reason:literal, $code:ident, $retry:literal;)*) => {
        /// What went wrong, each kind documented by what the caller should do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $($(#[$doc])* $name,)* }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$name,)*];

            /// The reason in ErrorInfo.
            pub fn reason(self) -> &'static str {
                match self { $(ErrorKind::$name => $reason,)* }
            }

            /// The gRPC code.
            pub fn code(self) -> Code {
                match self { $(ErrorKind::$name => Code::$code,)* }
            }

            /// Whether the same call can succeed later without a change of the request.
            pub fn is_retryable(self) -> bool {
                match self { $(ErrorKind::$name => $retry,)* }
            }
        }
    };
}

reasons! {
    /// Send a vector with as many components as the field has dimensions.
    DimensionMismatch = "DIMENSION_MISMATCH", InvalidArgument, false;
    /// Send finite numbers of a size that float32 can square.
    NotFinite = "NOT_FINITE", InvalidArgument, false;
    /// Send a vector that has a direction.
    ZeroVector = "ZERO_VECTOR", InvalidArgument, false;
    /// Name a field that the schema has.
    FieldUnknown = "FIELD_UNKNOWN", InvalidArgument, false;
    /// Send a value of the field's type.
    FieldType = "FIELD_TYPE", InvalidArgument, false;
    /// Say which field, since the schema has none or several.
    FieldAmbiguous = "FIELD_AMBIGUOUS", InvalidArgument, false;
    /// Send a key that is not blank and not too long.
    KeyInvalid = "KEY_INVALID", InvalidArgument, false;
    /// Send something to search for.
    QueryEmpty = "QUERY_EMPTY", InvalidArgument, false;
    /// Mend the query where the error says, or send it as plain text.
    QuerySyntax = "QUERY_SYNTAX", InvalidArgument, false;
    /// Send a collection, schema or name that is well formed.
    SchemaInvalid = "SCHEMA_INVALID", InvalidArgument, false;
    /// Send an argument within its bounds.
    ArgumentInvalid = "ARGUMENT_INVALID", InvalidArgument, false;
    /// Send a message of the contract: this one could not be decoded.
    MessageMalformed = "MESSAGE_MALFORMED", InvalidArgument, false;
    /// Pass on a token as an answer gave it.
    TokenMalformed = "TOKEN_MALFORMED", InvalidArgument, false;
    /// Ask for a page up to last_page.
    PageOutOfRange = "PAGE_OUT_OF_RANGE", OutOfRange, false;
    /// Create the collection first, or mind its name.
    CollectionNotFound = "COLLECTION_NOT_FOUND", NotFound, false;
    /// Take another name, or use the collection that is there.
    CollectionExists = "COLLECTION_EXISTS", AlreadyExists, false;
    /// Start over from page one: the state of the data that the token names is no longer held.
    SnapshotExpired = "SNAPSHOT_EXPIRED", FailedPrecondition, false;
    /// Change the request to what the collection's schema allows.
    SchemaConflict = "SCHEMA_CONFLICT", FailedPrecondition, false;
    /// Wait as long as RetryInfo says and retry.
    Overloaded = "OVERLOADED", ResourceExhausted, true;
    /// Send or ask for less in one message.
    TooLarge = "TOO_LARGE", ResourceExhausted, false;
    /// Call the operator: the node's disk is full.
    DiskFull = "DISK_FULL", ResourceExhausted, true;
    /// Retry; or allow partial answers.
    ShardUnavailable = "SHARD_UNAVAILABLE", Unavailable, true;
    /// Retry: the object store does not answer. A write may or may not have happened.
    StoreUnavailable = "STORE_UNAVAILABLE", Unavailable, true;
    /// Retry: the text could not be embedded, and nothing was searched or written.
    EmbedderUnavailable = "EMBEDDER_UNAVAILABLE", Unavailable, true;
    /// Retry elsewhere: the server is stopping.
    ShuttingDown = "SHUTTING_DOWN", Unavailable, true;
    /// Retry with more time. A write may or may not have happened.
    Deadline = "DEADLINE", DeadlineExceeded, true;
    /// Send a credential that is valid.
    TokenInvalid = "TOKEN_INVALID", Unauthenticated, false;
    /// Ask for a token with the scope that is missing.
    TokenScope = "TOKEN_SCOPE", PermissionDenied, false;
    /// Nobody waits for the answer any more.
    Cancelled = "CANCELLED", Cancelled, false;
    /// Call the operator: stored data is damaged. The segment is set aside; the node goes on.
    Corruption = "CORRUPTION", DataLoss, false;
    /// Report a bug.
    Internal = "INTERNAL", Internal, false;
}

/// A code as the gRPC documents write it.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

impl ErrorKind {
    /// The kind of a reason.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.reason() == reason)
    }
}

/// A fault of one field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field, as `documents[3].vectors["body"]`.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

/// An error on its way to a caller.
#[derive(Debug, Clone)]
pub struct ApiError {
    kind: ErrorKind,
    message: String,
    violations: Vec<Violation>,
    metadata: HashMap<String, String>,
    retry_after: Option<Duration>,
}

/// Most violations listed in one answer.
const MAX_VIOLATIONS: usize = 20;

// A status travels in headers, of which many clients and proxies take no more than 8 KiB. Its words hold names that
// strangers chose, so each part has a bound, and all together stay below that.

/// Most bytes of a message as a header writes it, where most characters but letters and digits take three.
const MAX_MESSAGE_BYTES: usize = 1536;
/// Most bytes of a violation's field, of its description, and of a value in the metadata.
const MAX_WORDS_BYTES: usize = 256;
/// Most bytes of all violations together.
const MAX_VIOLATIONS_BYTES: usize = 2048;

/// As much of a text as `most` bytes hold, where each character takes what `cost` says.
fn shorten(text: String, most: usize, cost: impl Fn(char) -> usize) -> String {
    let mut left = most;
    let end = text.char_indices().find_map(|(at, c)| match left.checked_sub(cost(c)) {
        Some(rest) => {
            left = rest;
            None
        }
        None => Some(at),
    });
    match end {
        None => text,
        Some(end) => format!("{}…", &text[..end]),
    }
}

impl ApiError {
    /// An error of a kind, with words for a person.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let cost = |c: char| if c.is_ascii_alphanumeric() { 1 } else { 3 * c.len_utf8() };
        let message = shorten(message.into(), MAX_MESSAGE_BYTES, cost);
        Self { kind, message, violations: Vec::new(), metadata: HashMap::new(), retry_after: None }
    }

    /// A fault of one field.
    pub fn field(kind: ErrorKind, field: impl Into<String>, description: impl Into<String>) -> Self {
        let (field, description) = (field.into(), description.into());
        Self::new(kind, format!("{field}: {description}")).with_violation(field, description)
    }

    /// Adds a violation; those beyond a bound are dropped.
    #[must_use]
    pub fn with_violation(mut self, field: impl Into<String>, description: impl Into<String>) -> Self {
        let field = shorten(field.into(), MAX_WORDS_BYTES, char::len_utf8);
        let description = shorten(description.into(), MAX_WORDS_BYTES, char::len_utf8);
        let listed: usize = self.violations.iter().map(|listed| listed.field.len() + listed.description.len()).sum();
        let has_room = listed + field.len() + description.len() <= MAX_VIOLATIONS_BYTES;
        if self.violations.len() < MAX_VIOLATIONS && has_room {
            self.violations.push(Violation { field, description });
        }
        self
    }

    /// Adds a fact to ErrorInfo's metadata.
    #[must_use]
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.metadata.insert(name.into(), shorten(value.to_string(), MAX_WORDS_BYTES, char::len_utf8));
        self
    }

    /// Says when to retry.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The faulty fields.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// ErrorInfo's metadata.
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.metadata
    }

    /// The status that carries all of it.
    pub fn to_status(&self) -> Status {
        let mut details = ErrorDetails::with_error_info(self.kind.reason(), DOMAIN, self.metadata.clone());
        match self.kind.code() {
            Code::InvalidArgument => {
                for violation in &self.violations {
                    details.add_bad_request_violation(&violation.field, &violation.description);
                }
                if self.violations.is_empty() {
                    let words = shorten(self.message.clone(), MAX_WORDS_BYTES, char::len_utf8);
                    details.add_bad_request_violation("", words);
                }
            }
            Code::ResourceExhausted => {
                details.set_retry_info(Some(self.retry_after.unwrap_or(Duration::from_secs(1))));
            }
            _ => {}
        }
        Status::with_error_details(self.kind.code(), &self.message, details)
    }

    /// Reads a status that another server of ours sent, or that the transport made.
    pub fn from_status(status: &Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == DOMAIN);
        let Some(kind) = info.and_then(|info| ErrorKind::from_reason(&info.reason)) else {
            return Self::new(kind_of_code(status.code()), status.message());
        };
        let mut error = Self::new(kind, status.message());
        if let Some(info) = info {
            error.metadata.clone_from(&info.metadata);
        }
        if let Some(request) = details.bad_request() {
            for violation in request.field_violations.iter().filter(|violation| !violation.field.is_empty()) {
                error = error.with_violation(&violation.field, &violation.description);
            }
        }
        error.retry_after = details.retry_info().and_then(|info| info.retry_delay);
        error
    }
}

/// The kind of a status that carries no reason of ours.
fn kind_of_code(code: Code) -> ErrorKind {
    match code {
        Code::Unavailable | Code::Unknown => ErrorKind::ShardUnavailable,
        Code::DeadlineExceeded => ErrorKind::Deadline,
        Code::Cancelled => ErrorKind::Cancelled,
        Code::ResourceExhausted => ErrorKind::Overloaded,
        Code::OutOfRange => ErrorKind::TooLarge,
        Code::InvalidArgument => ErrorKind::ArgumentInvalid,
        Code::DataLoss => ErrorKind::Corruption,
        Code::NotFound => ErrorKind::CollectionNotFound,
        Code::AlreadyExists => ErrorKind::CollectionExists,
        Code::Ok | Code::Internal | Code::FailedPrecondition | Code::Aborted | Code::Unimplemented => {
            ErrorKind::Internal
        }
        Code::PermissionDenied => ErrorKind::TokenScope,
        Code::Unauthenticated => ErrorKind::TokenInvalid,
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.reason(), self.message)
    }
}

impl std::error::Error for ApiError {}

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Self {
        error.to_status()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_survives_the_way_there_and_back() {
        for kind in ErrorKind::ALL {
            let sent = ApiError::field(*kind, "documents[0]", "is off").with_metadata("last_page", 9);
            let got = ApiError::from_status(&sent.to_status());
            assert_eq!(got.kind(), *kind);
            assert_eq!(got.message(), sent.message());
            assert_eq!(got.metadata(), sent.metadata());
            if kind.code() == Code::InvalidArgument {
                assert_eq!(got.violations(), sent.violations());
            }
        }
    }

    #[test]
    fn what_the_contract_promises_is_attached() {
        for kind in ErrorKind::ALL {
            let status = ApiError::new(*kind, "words").to_status();
            let details = status.get_error_details();
            assert_eq!(details.error_info().map(|info| info.domain.as_str()), Some(DOMAIN));
            assert_eq!(details.bad_request().is_some(), kind.code() == Code::InvalidArgument);
            assert_eq!(details.retry_info().is_some(), kind.code() == Code::ResourceExhausted);
        }
    }

    #[test]
    fn words_of_strangers_leave_room_in_the_headers() {
        for stranger in ["x", "\u{0}", "\"", "北", "🦀"] {
            let long = stranger.repeat(1 << 14);
            let mut error = ApiError::field(ErrorKind::FieldUnknown, &long, &long).with_metadata("shard", &long);
            for index in 0..30 {
                error = error.with_violation(format!("documents[{index}].vectors[{long:?}]"), &long);
            }
            for error in [error, ApiError::new(ErrorKind::CollectionNotFound, &long)] {
                let headers = error.to_status().into_http::<()>().into_parts().0.headers;
                // As HTTP/2 counts them.
                let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
                assert!(bytes < 8 << 10, "{bytes} bytes for {stranger:?}");
                assert_eq!(ApiError::from_status(&error.to_status()).kind(), error.kind());
            }
        }
    }

    #[test]
    fn short_words_stay_whole() {
        let error = ApiError::field(ErrorKind::KeyInvalid, "documents[0].key", "北京");
        assert_eq!(error.message(), "documents[0].key: 北京");
        assert_eq!(error.violations()[0].description, "北京");
    }

    #[test]
    fn reasons_are_unique() {
        let mut reasons: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.reason()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons.len(), ErrorKind::ALL.len());
    }
}
