//! What can go wrong with a text index.

use tantivy::TantivyError;

/// Why a text index could not be built, opened or searched.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// No analyzer has this name.
    #[error("there is no analyzer {0:?}")]
    UnknownAnalyzer(String),
    /// Two fields of one index have the same name.
    #[error("the text field {0:?} is there twice")]
    DuplicateField(String),
    /// A document was added with values for another number of fields than the index has.
    #[error("a document with values for {found} text fields was added to an index of {expected}")]
    FieldCount {
        /// Fields of the index.
        expected: usize,
        /// Fields of the document.
        found: usize,
    },
    /// The documents of one index do not fit in the memory that tantivy can address (4 GiB of terms and postings).
    #[error("a text index would be larger than one index can be")]
    TooLarge,
    /// A query names a field that the index does not have, or has no statistics for it.
    #[error("a keyword query names text field {0}, which the index or the query's statistics do not have")]
    UnknownField(usize),
    /// A boost is negative, NaN or infinite.
    #[error("the boost of text field {0} is not a finite number of at least 0")]
    Boost(usize),
    /// The bundle is not one, or not whole.
    #[error("a text bundle is damaged: {0}")]
    Damaged(&'static str),
    /// The bundle is whole but made for another schema, or for another number of rows.
    #[error("a text bundle does not fit its segment: {0}")]
    Mismatch(&'static str),
    /// tantivy refused.
    #[error("the text index failed")]
    Tantivy(#[from] TantivyError),
    /// Bytes of the index could not be read.
    #[error("the text index could not be read")]
    Io(#[from] std::io::Error),
    /// The search was told to stop.
    #[error("stopped")]
    Stopped,
}
