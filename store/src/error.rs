//! What can go wrong with the store, sorted by what the caller should do about it.
//!
//! Not here: faults of a frame's bytes ([`crate::frame::FrameError`]), which become [`StoreError::Corrupt`] once the path
//! is known, and "somebody was first", which is an outcome and not an error.

use std::error::Error;
use std::io;
use std::time::Duration;

/// An operation on the store that did not come out.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store did not answer, or not in time. **A write may have happened and may still appear.**
    #[error("the store is unavailable for {path}: {reason}")]
    Unavailable {
        /// What was asked for.
        path: String,
        /// What was seen.
        reason: String,
        /// The library's error, where there was one.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// An object is there and its bytes are not what was written, or say what cannot be.
    #[error("{path} is damaged: {reason}")]
    Corrupt {
        /// The damaged object.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The object (or the bucket) does not exist where it must.
    #[error("{path} is not in the store")]
    NotFound {
        /// What was asked for.
        path: String,
    },
    /// The store's disk or quota is full; nothing was written.
    #[error("the store is full, writing {path}")]
    Full {
        /// What was to be written.
        path: String,
        /// The library's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The credentials or file modes do not allow it.
    #[error("not permitted: {path}")]
    Permission {
        /// What was asked for.
        path: String,
        /// The library's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The request cannot be carried out by any store: a bad URL or option, a bad name, too large an object, a manifest
    /// that breaks its own rules.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// What is invalid.
        what: String,
        /// Why.
        reason: String,
    },
    /// A local file outside the store could not be read or written.
    #[error("local file {path}")]
    LocalFile {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What a caller should do about a [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Try again later, with backoff. A write's outcome is unknown: it may be in the store, now or in a moment.
    Unavailable,
    /// Don't retry: quarantine what depends on it, go on with the rest, call an operator.
    Corrupt,
    /// Don't retry as such: what named the object is older than the store's state, so read that anew.
    NotFound,
    /// Refuse writes until space was made; reads go on.
    Full,
    /// Don't retry: credentials, policies or modes must be changed.
    Permission,
    /// Don't retry: configuration or the calling code must be changed.
    Invalid,
    /// The disk of this host, not the store, is at fault: try elsewhere.
    LocalFile,
}

impl StoreError {
    /// What to do about it.
    pub fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Unavailable { .. } => StoreErrorKind::Unavailable,
            Self::Corrupt { .. } => StoreErrorKind::Corrupt,
            Self::NotFound { .. } => StoreErrorKind::NotFound,
            Self::Full { .. } => StoreErrorKind::Full,
            Self::Permission { .. } => StoreErrorKind::Permission,
            Self::Invalid { .. } => StoreErrorKind::Invalid,
            Self::LocalFile { .. } => StoreErrorKind::LocalFile,
        }
    }

    /// Whether the same call may succeed later without anybody's help.
    pub fn is_retryable(&self) -> bool {
        match self.kind() {
            StoreErrorKind::Unavailable => true,
            StoreErrorKind::Corrupt
            | StoreErrorKind::NotFound
            | StoreErrorKind::Full
            | StoreErrorKind::Permission
            | StoreErrorKind::Invalid
            | StoreErrorKind::LocalFile => false,
        }
    }

    pub(crate) fn timed_out(path: impl Into<String>, after: Duration) -> Self {
        Self::Unavailable {
            path: path.into(),
            reason: format!("no answer within {} ms", after.as_millis()),
            source: None,
        }
    }

    pub(crate) fn corrupt(path: impl Into<String>, reason: impl ToString) -> Self {
        Self::Corrupt { path: path.into(), reason: reason.to_string() }
    }

    pub(crate) fn invalid(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Invalid { what: what.into(), reason: reason.to_string() }
    }

    pub(crate) fn local_file(path: &std::path::Path, source: io::Error) -> Self {
        Self::LocalFile { path: path.display().to_string(), source }
    }

    /// Sorts a library error. `path` is what was asked for.
    pub(crate) fn from_library(path: impl Into<String>, error: object_store::Error) -> Self {
        use object_store::Error as Library;
        let path = path.into();
        match error {
            Library::NotFound { .. } => Self::NotFound { path },
            Library::PermissionDenied { .. } | Library::Unauthenticated { .. } => {
                Self::Permission { path, source: Box::new(error) }
            }
            Library::InvalidPath { .. }
            | Library::NotSupported { .. }
            | Library::NotImplemented { .. }
            | Library::UnknownConfigurationKey { .. } => Self::invalid(path, error),
            _ => match io_kind(&error) {
                Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                    Self::Full { path, source: Box::new(error) }
                }
                Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
                    Self::Permission { path, source: Box::new(error) }
                }
                _ => Self::Unavailable { path, reason: error.to_string(), source: Some(Box::new(error)) },
            },
        }
    }
}

/// The kind of the first `io::Error` among an error's causes.
fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(kind: io::ErrorKind) -> object_store::Error {
        object_store::Error::Generic { store: "test", source: Box::new(io::Error::from(kind)) }
    }

    #[test]
    fn library_errors_are_sorted_by_what_to_do() {
        let kind = |error| StoreError::from_library("p", error).kind();
        assert_eq!(kind(generic(io::ErrorKind::StorageFull)), StoreErrorKind::Full);
        assert_eq!(kind(generic(io::ErrorKind::PermissionDenied)), StoreErrorKind::Permission);
        assert_eq!(kind(generic(io::ErrorKind::TimedOut)), StoreErrorKind::Unavailable);
        assert!(StoreError::from_library("p", generic(io::ErrorKind::BrokenPipe)).is_retryable());
        assert!(!StoreError::corrupt("p", "x").is_retryable());
    }
}
