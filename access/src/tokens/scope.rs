//! What a token may do, and to which collections.

use std::fmt;
use std::str::FromStr;

/// What can be done to a collection. None holds another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// Search, get, count and export documents.
    Read,
    /// Write and delete documents.
    Write,
    /// Create, change and delete collections and aliases.
    Admin,
}

impl Right {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// A right over the collections of a name, or of all names that begin alike: `read:docs`, `write:logs-*`, `admin:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    right: Right,
    start: String,
    is_whole: bool,
}

impl Scope {
    /// Whether it is about a collection or alias of this name.
    pub fn covers(&self, collection: &str) -> bool {
        if self.is_whole { self.start == collection } else { collection.starts_with(&self.start) }
    }

    /// Whether it is about all collections.
    pub fn covers_all(&self) -> bool {
        !self.is_whole && self.start.is_empty()
    }

    /// What it allows.
    pub fn right(&self) -> Right {
        self.right
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("the scope {text:?} is not of the form right:collection, as read:docs, write:logs-* or admin:*");
        let (right, pattern) = text.split_once(':').ok_or_else(wrong)?;
        let right = match right {
            "read" => Right::Read,
            "write" => Right::Write,
            "admin" => Right::Admin,
            _ => return Err(wrong()),
        };
        let (start, is_whole) = match pattern.strip_suffix('*') {
            Some(start) => (start, false),
            None => (pattern, true),
        };
        let is_name = start.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
        if !is_name || (is_whole && start.is_empty()) {
            return Err(wrong());
        }
        Ok(Self { right, start: start.to_owned(), is_whole })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}{}", self.right.as_str(), self.start, if self.is_whole { "" } else { "*" })
    }
}
