//! How a command ends when it doesn't end well: one line for a person and an exit code.
//!
//! Not for faults of single documents, which an import counts and goes on.

use std::fmt;

/// Exit code: everything was done.
pub(crate) const EXIT_OK: u8 = 0;
/// Exit code: the command failed.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Exit code: the import went through, without some documents.
pub(crate) const EXIT_SOME_REJECTED: u8 = 3;

/// Why a command failed, in words. Printed as `antiphon: WORDS`; the exit code is [`EXIT_FAILED`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure in words.
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// A failure of something named, with the causes of the error.
    pub(crate) fn of(what: impl fmt::Display, error: &dyn std::error::Error) -> Self {
        Self(format!("{what}: {}", causes(error)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// An error with its causes on one line; a cause that the words already hold is left out.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        cause = error.source();
    }
    words.replace('\n', " ")
}
