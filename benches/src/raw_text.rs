//! tantivy as one would use it alone: what the keyword channel is compared with.
//!
//! Two fields, title and text, split at what is neither letter nor digit, lower case, stemmed; a query asks both fields
//! for each of its terms, as a collection of two text fields does.

use std::path::Path;
use std::time::{Duration, Instant};

use tantivy::collector::TopDocs;
use tantivy::directory::MmapDirectory;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{Language, LowerCaser, SimpleTokenizer, Stemmer, TextAnalyzer, TokenStream, TokenizerManager};
use tantivy::{Index, ReloadPolicy, Searcher, SingleSegmentIndexWriter, TantivyDocument, Term};

use crate::Outcome;
use crate::corpus::Entry;

const TOKENIZER: &str = "words";
/// The first size of tantivy's tables derives from it.
const MEMORY_BYTES: usize = 100_000_000;

/// An index of one segment, mapped from a directory.
pub struct RawText {
    searcher: Searcher,
    fields: [Field; 2],
    /// How long one thread took to build it.
    pub build_time: Duration,
}

fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).filter(Stemmer::new(Language::English)).build()
}

impl RawText {
    /// Builds it on this thread in an empty directory.
    ///
    /// # Errors
    /// tantivy's.
    pub fn build(entries: &[Entry], dir: &Path) -> Outcome<Self> {
        let begun = Instant::now();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(TOKENIZER)
            .set_index_option(IndexRecordOption::WithFreqs)
            .set_fieldnorms(true);
        let options = TextOptions::default().set_indexing_options(indexing);
        let mut schema = Schema::builder();
        let fields = [schema.add_text_field("title", options.clone()), schema.add_text_field("text", options)];
        let tokenizers = TokenizerManager::new();
        tokenizers.register(TOKENIZER, analyzer());
        let builder = Index::builder().schema(schema.build()).tokenizers(tokenizers);
        let mut writer: SingleSegmentIndexWriter =
            builder.single_segment_index_writer(MmapDirectory::open(dir)?, MEMORY_BYTES)?;
        for entry in entries {
            let mut document = TantivyDocument::new();
            document.add_text(fields[0], &entry.title);
            document.add_text(fields[1], &entry.text);
            writer.add_document(document)?;
        }
        let index = writer.finalize()?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { searcher: reader.searcher(), fields, build_time: begun.elapsed() })
    }

    /// The addresses of the best `count` documents.
    ///
    /// # Errors
    /// tantivy's.
    pub fn search(&self, text: &str, count: usize) -> Outcome<usize> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        let mut tokenizer = analyzer();
        let mut tokens = tokenizer.token_stream(text);
        while let Some(token) = tokens.next() {
            for field in self.fields {
                let term = Term::from_field_text(field, &token.text);
                clauses.push((Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))));
            }
        }
        let query = BooleanQuery::new(clauses);
        Ok(self.searcher.search(&query, &TopDocs::with_limit(count).order_by_score())?.len())
    }
}
