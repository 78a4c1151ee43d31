//! Full-text search within one segment. The only folder that knows tantivy.
//!
//! A text index is built with its segment ([`TextIndexBuilder`]), kept as one bundle, and opened over mapped or owned
//! bytes ([`TextIndex`]). It finds the first rows by a keyword query under statistics that the caller brings. It knows
//! nothing of keys, tombstones, filters or other segments.

mod analyzer;
mod builder;
mod bundle;
mod candidates;
mod chars;
mod counted;
mod directory;
mod error;
mod formula;
mod index;
mod pruning;
mod query;
mod schema;
mod score;
mod spelling;
mod stemmer;
mod syntax;
mod whole;
mod window;
mod words;

#[cfg(test)]
mod analyzer_tests;
#[cfg(test)]
mod bundle_tests;
#[cfg(test)]
mod window_tests;

pub use analyzer::{AnalyzedTerm, Analyzer};
pub use builder::TextIndexBuilder;
pub use error::TextError;
pub use formula::Formula;
pub use index::TextIndex;
pub use query::{FieldStatistics, KeywordQuery, QueryTerm};
pub use schema::TextFieldSpec;
pub use syntax::{ScoredTerm, SyntaxFault, SyntaxField, SyntaxQuery, parse};
pub use words::MAX_TERM_BYTES;
