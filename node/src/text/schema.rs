//! The fields of a text index, and the tantivy schema made of them.
//!
//! Terms, frequencies and field lengths are indexed; positions are not, and nothing is stored. Names of fields and of
//! analyzers are in the schema, so that an index opened for others is noticed.

use std::collections::HashSet;

use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};

use super::{Analyzer, TextError};

/// One text field: its name and the name of its analyzer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFieldSpec {
    /// Name in the schema of the collection.
    pub name: String,
    /// See [`Analyzer::by_name`].
    pub analyzer: String,
}

/// A schema with its fields and their analyzers in order.
pub(super) struct IndexSchema {
    pub(super) schema: Schema,
    pub(super) fields: Vec<(Field, Analyzer)>,
}

impl IndexSchema {
    /// # Errors
    /// [`TextError::UnknownAnalyzer`], [`TextError::DuplicateField`].
    pub(super) fn new(specs: &[TextFieldSpec]) -> Result<Self, TextError> {
        let mut builder = Schema::builder();
        let mut names = HashSet::new();
        let mut fields = Vec::with_capacity(specs.len());
        for (position, spec) in specs.iter().enumerate() {
            let analyzer =
                Analyzer::by_name(&spec.analyzer).ok_or_else(|| TextError::UnknownAnalyzer(spec.analyzer.clone()))?;
            if !names.insert(&spec.name) {
                return Err(TextError::DuplicateField(spec.name.clone()));
            }
            let indexing = TextFieldIndexing::default()
                .set_tokenizer(&tokenizer_name(position, analyzer))
                .set_index_option(IndexRecordOption::WithFreqs)
                .set_fieldnorms(true);
            // With the prefix every name is one that tantivy allows (not empty, no leading minus).
            let name = format!("text:{}", spec.name);
            fields
                .push((builder.add_text_field(&name, TextOptions::default().set_indexing_options(indexing)), analyzer));
        }
        Ok(Self { schema: builder.build(), fields })
    }
}

/// The name that a field's tokenizer is registered by: each field has its own, which counts its tokens.
pub(super) fn tokenizer_name(position: usize, analyzer: Analyzer) -> String {
    format!("{position}:{}", analyzer.name())
}
