//! What goes wrong with embedders: while they start, and while they embed.

use std::path::PathBuf;
use std::time::Duration;

use antiphon_proto::error::{ApiError, ErrorKind};

/// Why texts were not embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The schema names an embedder that this server was not told of.
    #[error("this server has none of that name")]
    Missing,
    /// No answer, or one that says so, and trying again did not help.
    #[error("{0}")]
    Unavailable(String),
    /// An answer that is not what was asked for.
    #[error("the answer is of no use: {0}")]
    Answer(String),
    /// The model has other dimensions than the schema's field, or than it had.
    #[error("a vector has {found} dimensions instead of {expected}")]
    Dimensions {
        /// The field's, or the model's at start.
        expected: usize,
        /// The vector's.
        found: usize,
    },
    /// Too much is waiting already.
    #[error("{0}")]
    Overloaded(String),
    /// The caller's time is over.
    #[error("not done in time")]
    Deadline,
}

impl EmbedError {
    /// The error that callers get, naming the embedder.
    pub fn to_api(&self, embedder: &str) -> ApiError {
        let kind = match self {
            Self::Missing | Self::Unavailable(_) | Self::Answer(_) | Self::Dimensions { .. } => {
                ErrorKind::EmbedderUnavailable
            }
            Self::Overloaded(_) => ErrorKind::Overloaded,
            Self::Deadline => ErrorKind::Deadline,
        };
        let error = ApiError::new(kind, format!("the embedder {embedder:?}: {self}"));
        error.with_metadata("embedder", embedder).with_retry_after(Duration::from_millis(200))
    }
}

/// Why an embedder did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file of the model, or one with a key, cannot be read.
    #[error("{path} cannot be read", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of the model is not there.
    #[error("{folder} holds no {what}", folder = folder.display())]
    NoFile {
        /// The model's folder.
        folder: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// A file of the model is not what it should be.
    #[error("{path}: {words}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        words: String,
    },
    /// The settings don't fit the model, or one another.
    #[error("{0}")]
    Settings(String),
    /// The endpoint was asked for a vector and gave none.
    #[error("the first text was not embedded")]
    Probe(#[source] EmbedError),
    /// Threads or connections could not be had.
    #[error("{what} could not be made")]
    Resources {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
