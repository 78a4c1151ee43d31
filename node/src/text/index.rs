//! The text index of one segment, opened: what keyword search and its statistics read.
//!
//! DocId = row. Whether a row is dead is not known here: tombstones come with each call.

use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::SegmentPostings;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, Index, InvertedIndexReader, ReloadPolicy, Searcher, SegmentReader, TERMINATED, Term};

use super::TextError;
use super::directory::BundleDirectory;
use super::schema::{IndexSchema, TextFieldSpec};
use crate::mapped::Blob;

/// Seeking one row costs about as much as walking so many.
const SEEK_COST_ROWS: u64 = 16;

/// An opened text index.
pub struct TextIndex {
    searcher: Searcher,
    fields: Vec<FieldIndex>,
    num_rows: u32,
}

/// One field of an index.
pub(super) struct FieldIndex {
    field: Field,
    inverted: Arc<InvertedIndexReader>,
    /// The quantised length of each row.
    pub(super) lengths: FieldNormReader,
    /// Mean length of the segment's rows in tokens, dead ones too: what tantivy chose block maxima under.
    pub(super) segment_average: f64,
    longest: OnceLock<u32>,
}

impl FieldIndex {
    pub(super) fn term(&self, text: &str) -> Term {
        Term::from_field_text(self.field, text)
    }

    /// The greatest quantised length of a row, found once (1 ms for a million rows).
    pub(super) fn longest(&self) -> u32 {
        *self.longest.get_or_init(|| {
            let longest = (0..self.lengths.num_docs()).map(|row| self.lengths.fieldnorm_id(row)).max();
            FieldNormReader::id_to_fieldnorm(longest.unwrap_or(0))
        })
    }

    pub(super) fn postings(&self, text: &str, option: IndexRecordOption) -> Result<Option<SegmentPostings>, TextError> {
        Ok(self.inverted.read_postings(&self.term(text), option)?)
    }
}

impl TextIndex {
    /// Opens a bundle whose checksum has been verified.
    ///
    /// # Errors
    /// [`TextError::Damaged`]; [`TextError::Mismatch`] where the index has other fields, other analyzers or another
    /// number of rows; [`TextError::Tantivy`].
    pub fn open(bundle: Blob, specs: &[TextFieldSpec], num_rows: u32) -> Result<Self, TextError> {
        let expected = IndexSchema::new(specs)?;
        let index = Index::open(BundleDirectory::open(&bundle)?)?;
        if index.schema() != expected.schema {
            return Err(TextError::Mismatch("its fields or analyzers are others"));
        }
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        let [segment] = searcher.segment_readers() else {
            return Err(TextError::Mismatch("it has not exactly one segment"));
        };
        if segment.max_doc() != num_rows || segment.num_docs() != num_rows {
            return Err(TextError::Mismatch("its number of rows is another"));
        }
        let fields = expected
            .fields
            .iter()
            .map(|(field, _)| {
                let inverted = segment.inverted_index(*field)?;
                let lengths = segment.get_fieldnorms_reader(*field)?;
                if lengths.num_docs() != num_rows {
                    return Err(TextError::Mismatch("it has not one length a row"));
                }
                let segment_average = inverted.total_num_tokens() as f64 / f64::from(num_rows.max(1));
                Ok(FieldIndex { field: *field, inverted, lengths, segment_average, longest: OnceLock::new() })
            })
            .collect::<Result<_, TextError>>()?;
        Ok(Self { searcher, fields, num_rows })
    }

    /// Number of rows, dead ones too.
    pub fn num_rows(&self) -> u32 {
        self.num_rows
    }

    /// Number of rows, dead ones too, that hold a term in a field.
    ///
    /// # Errors
    /// [`TextError::UnknownField`], [`TextError::Io`].
    pub fn doc_freq(&self, field: usize, term: &str) -> Result<u32, TextError> {
        let field = self.field(field)?;
        Ok(field.inverted.doc_freq(&field.term(term))?)
    }

    /// Number of rows of a bitmap that hold a term in a field, by walking the term's postings or by seeking each row in
    /// them, whichever costs less.
    ///
    /// # Errors
    /// [`TextError::UnknownField`], [`TextError::Io`].
    pub fn doc_freq_among(&self, field: usize, term: &str, rows: &RoaringBitmap) -> Result<u32, TextError> {
        if rows.is_empty() {
            return Ok(0);
        }
        let Some(mut postings) = self.field(field)?.postings(term, IndexRecordOption::Basic)? else { return Ok(0) };
        let mut count = 0;
        if rows.len().saturating_mul(SEEK_COST_ROWS) < u64::from(postings.doc_freq()) {
            for row in rows.iter().take_while(|row| *row < self.num_rows) {
                if postings.doc() < row {
                    postings.seek(row);
                }
                count += u32::from(postings.doc() == row);
            }
        } else {
            let mut row = postings.doc();
            while row != TERMINATED {
                count += u32::from(rows.contains(row));
                row = postings.advance();
            }
        }
        Ok(count)
    }

    pub(super) fn field(&self, field: usize) -> Result<&FieldIndex, TextError> {
        self.fields.get(field).ok_or(TextError::UnknownField(field))
    }

    pub(super) fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    pub(super) fn segment(&self) -> &SegmentReader {
        // `open` has checked that there is exactly one.
        self.searcher.segment_reader(0)
    }
}
