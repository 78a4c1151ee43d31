//! What can go wrong on a node, and what coordinators are told of it.

use std::time::Duration;

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_store::{StoreError, StoreErrorKind};

use crate::schema::SchemaFault;
use crate::segment::SegmentError;
use crate::text::SyntaxFault;

/// Why a node could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NodeError {
    /// The catalog has no such collection, or the collection no such shard.
    #[error("the collection {uid:?} has no shard {shard}")]
    UnknownShard {
        /// The collection's uid.
        uid: String,
        /// The shard asked for.
        shard: u32,
    },
    /// The view that a token names is not held any more.
    #[error("the view at seq {seq}, manifest {manifest_version} is not held")]
    ViewExpired {
        /// Log position of the view.
        seq: u64,
        /// Its manifest.
        manifest_version: u64,
    },
    /// More is waiting than the node takes.
    #[error("{what}")]
    Overloaded {
        /// What is full.
        what: String,
        /// When to come back.
        retry_after: Duration,
    },
    /// Too late.
    #[error("the deadline passed before {what}")]
    Deadline {
        /// What was not reached.
        what: &'static str,
    },
    /// The caller went away.
    #[error("the call was cancelled")]
    Cancelled,
    /// The request is not of the protocol.
    #[error("{0}")]
    Invalid(String),
    /// A query with syntax cannot be answered.
    #[error("{path}: {fault}")]
    QuerySyntax {
        /// The text's path in the caller's request.
        path: String,
        /// What is wrong with it.
        fault: SyntaxFault,
    },
    /// Stored data is of a newer schema than this shard knows; it is opened anew with that.
    #[error("stored data is of version {found} of the schema, and version {known} is known")]
    SchemaStale {
        /// The version that the data is of.
        found: u32,
        /// The version known.
        known: u32,
    },
    /// The answer would be larger than the protocol takes.
    #[error("{0}")]
    TooLarge(String),
    /// The node is stopping.
    #[error("the node is stopping")]
    ShuttingDown,
    /// Stored data is damaged.
    #[error("{0}")]
    Corruption(String),
    /// No space.
    #[error("{0}")]
    DiskFull(String),
    /// The store did not answer, or said no.
    #[error("the object store: {0}")]
    StoreUnavailable(String),
    /// A bug, or a system call that failed.
    #[error("{0}")]
    Internal(String),
}

impl NodeError {
    /// The kind that callers are told.
    pub fn kind(&self) -> ErrorKind {
        match self {
            NodeError::UnknownShard { .. } => ErrorKind::CollectionNotFound,
            NodeError::ViewExpired { .. } => ErrorKind::SnapshotExpired,
            NodeError::Overloaded { .. } => ErrorKind::Overloaded,
            NodeError::Deadline { .. } => ErrorKind::Deadline,
            NodeError::Cancelled => ErrorKind::Cancelled,
            NodeError::Invalid(_) => ErrorKind::ArgumentInvalid,
            NodeError::QuerySyntax { fault: SyntaxFault::UnknownField { .. }, .. } => ErrorKind::FieldUnknown,
            NodeError::QuerySyntax { .. } => ErrorKind::QuerySyntax,
            NodeError::SchemaStale { .. } => ErrorKind::ShardUnavailable,
            NodeError::TooLarge(_) => ErrorKind::TooLarge,
            NodeError::ShuttingDown => ErrorKind::ShuttingDown,
            NodeError::Corruption(_) => ErrorKind::Corruption,
            NodeError::DiskFull(_) => ErrorKind::DiskFull,
            NodeError::StoreUnavailable(_) => ErrorKind::StoreUnavailable,
            NodeError::Internal(_) => ErrorKind::Internal,
        }
    }
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words.push_str(": ");
            words.push_str(&cause_words);
        }
        source = cause.source();
    }
    words
}

impl From<StoreError> for NodeError {
    fn from(error: StoreError) -> Self {
        let words = chain(&error);
        match error.kind() {
            StoreErrorKind::Corrupt => NodeError::Corruption(words),
            StoreErrorKind::Full => NodeError::DiskFull(words),
            _ => NodeError::StoreUnavailable(words),
        }
    }
}

impl From<SegmentError> for NodeError {
    fn from(error: SegmentError) -> Self {
        if error.is_stopped() {
            return NodeError::Cancelled;
        }
        if error.is_disk_full() {
            return NodeError::DiskFull(chain(&error));
        }
        match &error {
            SegmentError::Io(_) => NodeError::Internal(chain(&error)),
            _ => NodeError::Corruption(chain(&error)),
        }
    }
}

impl From<SchemaFault> for NodeError {
    fn from(fault: SchemaFault) -> Self {
        NodeError::Internal(fault.to_string())
    }
}

impl From<NodeError> for ApiError {
    fn from(error: NodeError) -> Self {
        let api = ApiError::new(error.kind(), error.to_string());
        match error {
            NodeError::QuerySyntax { path, fault } => api.with_violation(path, fault.to_string()),
            NodeError::Overloaded { retry_after, .. } => api.with_retry_after(retry_after),
            _ => api,
        }
    }
}

impl From<NodeError> for tonic::Status {
    fn from(error: NodeError) -> Self {
        ApiError::from(error).to_status()
    }
}
