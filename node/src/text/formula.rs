//! Which rows of a segment meet a condition on terms: the side of a query with syntax that is not its scores.
//!
//! Exact, and without scores: rows come from the postings of whole terms. Dead rows are not known here.

use roaring::RoaringBitmap;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

use super::{TextError, TextIndex};

/// A condition on the terms of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Formula {
    /// The row holds the term in the field.
    Term {
        /// Index of the text field.
        field: usize,
        /// The term as the index holds it.
        text: String,
    },
    /// All hold; with none, every row.
    All(Vec<Formula>),
    /// One holds; with none, no row.
    Any(Vec<Formula>),
    /// It does not hold.
    Not(Box<Formula>),
}

impl Formula {
    /// Whether each row that holds the term meets it, as far as can be told from the term alone.
    pub fn is_met_by(&self, field: usize, text: &str) -> bool {
        match self {
            Self::Term { field: own, text: term } => *own == field && term == text,
            Self::Any(parts) => parts.iter().any(|part| part.is_met_by(field, text)),
            Self::All(parts) => matches!(parts.as_slice(), [only] if only.is_met_by(field, text)),
            Self::Not(_) => false,
        }
    }
}

impl TextIndex {
    /// The rows that meet a condition, live or dead. `stop` is asked before each term.
    ///
    /// # Errors
    /// [`TextError::Stopped`]; [`TextError::UnknownField`]; [`TextError::Io`] where the index cannot be read.
    pub fn matching(&self, formula: &Formula, stop: &dyn Fn() -> bool) -> Result<RoaringBitmap, TextError> {
        match formula {
            Formula::Term { field, text } => {
                if stop() {
                    return Err(TextError::Stopped);
                }
                self.rows_of(*field, text)
            }
            Formula::All(parts) => {
                let mut all: Option<RoaringBitmap> = None;
                for part in parts {
                    let rows = self.matching(part, stop)?;
                    all = Some(all.map_or_else(|| rows.clone(), |all| all & &rows));
                }
                Ok(all.unwrap_or_else(|| self.every_row()))
            }
            Formula::Any(parts) => {
                let mut any = RoaringBitmap::new();
                for part in parts {
                    any |= self.matching(part, stop)?;
                }
                Ok(any)
            }
            Formula::Not(part) => Ok(self.every_row() - self.matching(part, stop)?),
        }
    }

    fn every_row(&self) -> RoaringBitmap {
        let mut rows = RoaringBitmap::new();
        rows.insert_range(0..self.num_rows());
        rows
    }

    fn rows_of(&self, field: usize, term: &str) -> Result<RoaringBitmap, TextError> {
        let mut rows = RoaringBitmap::new();
        let Some(mut postings) = self.field(field)?.postings(term, IndexRecordOption::Basic)? else { return Ok(rows) };
        let mut row = postings.doc();
        while row != TERMINATED {
            rows.insert(row);
            row = postings.advance();
        }
        Ok(rows)
    }
}
