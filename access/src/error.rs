//! What can be wrong with the files that access goes by.

use std::path::Path;

/// Why a file or what it holds can't be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A file that can't be read, or holds what it should not.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it; never its contents.
        reason: String,
    },
    /// Files that don't go together, or a name that is none.
    #[error("{0}")]
    Tls(String),
}

impl AccessError {
    pub(crate) fn file(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::File { path: path.display().to_string(), reason: reason.to_string() }
    }
}
