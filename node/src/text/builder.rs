//! Builds the text index of one segment, sealed or live.
//!
//! Documents get the DocIds 0, 1, 2, … in the order in which they are added: DocId = row. The
//! bundle depends on the documents alone, byte for byte: tantivy's random segment id is replaced.

use std::path::PathBuf;
use std::sync::OnceLock;

use tantivy::directory::{OwnedBytes, RamDirectory};
use tantivy::schema::{Field, Schema};
use tantivy::store::Compressor;
use tantivy::tokenizer::TokenizerManager;
use tantivy::{Directory, Index, IndexSettings, SingleSegmentIndexWriter, TantivyDocument};

use super::analyzer::Purpose;
use super::counted::{Counted, TokenCount};
use super::directory::META;
use super::schema::{IndexSchema, TextFieldSpec, tokenizer_name};
use super::{TextError, bundle};

/// tantivy derives from it the first size of its table of terms (4,096 here, 32 KiB), and nothing else: the table grows
/// by itself, and a single-segment writer never flushes. A larger one would cost each small index the clearing of its
/// table.
const MEM_BUDGET_BYTES: usize = 100_000;

/// tantivy's arenas are addressed by 32 bits and panic beyond; both together stay below this.
const MAX_MEM_BYTES: usize = (4 << 30) - (64 << 20);

/// No text takes more than this in tantivy's arenas for each of its bytes: a term takes at least 1.5 bytes of text (an
/// ideograph gives two terms) and at most some 60 bytes besides itself.
const MAX_MEM_PER_TEXT_BYTE: usize = 64;

/// The segment files of an index, by what their names end with.
const SEGMENT_FILES: [&str; 6] = ["term", "idx", "pos", "fieldnorm", "fast", STORE];
const STORE: &str = "store";

/// The id of every segment, in place of a random one.
const SEGMENT_ID: &str = "00000000-0000-0000-0000-000000000000";

/// Takes documents and gives the bundle of their index.
pub struct TextIndexBuilder {
    writer: SingleSegmentIndexWriter,
    directory: RamDirectory,
    fields: Vec<(Field, TokenCount)>,
}

impl TextIndexBuilder {
    /// An index of these fields, without documents.
    ///
    /// # Errors
    /// [`TextError::UnknownAnalyzer`], [`TextError::DuplicateField`].
    pub fn new(specs: &[TextFieldSpec]) -> Result<Self, TextError> {
        let IndexSchema { schema, fields } = IndexSchema::new(specs)?;
        let tokenizers = TokenizerManager::new();
        let mut counted_fields = Vec::with_capacity(fields.len());
        for (position, (field, analyzer)) in fields.into_iter().enumerate() {
            let count = TokenCount::default();
            let inner = analyzer.tokenizer(Purpose::Document);
            tokenizers.register(&tokenizer_name(position, analyzer), Counted { inner, count: count.clone() });
            counted_fields.push((field, count));
        }
        let directory = RamDirectory::create();
        let writer = start(schema, tokenizers, &directory)?;
        Ok(Self { writer, directory, fields: counted_fields })
    }

    /// Adds one document: for each field, in order, its string values. Returns the number of tokens of each field.
    ///
    /// # Errors
    /// [`TextError::FieldCount`]; [`TextError::TooLarge`] when the document might not fit any more. The document is
    /// then not added, and the builder is as it was.
    pub fn add(&mut self, texts: &[Vec<&str>]) -> Result<Vec<u32>, TextError> {
        if texts.len() != self.fields.len() {
            return Err(TextError::FieldCount { expected: self.fields.len(), found: texts.len() });
        }
        let text_bytes = texts.iter().flatten().map(|text| text.len()).sum::<usize>();
        let most_bytes = text_bytes.saturating_mul(MAX_MEM_PER_TEXT_BYTE).saturating_add(self.writer.mem_usage());
        if most_bytes > MAX_MEM_BYTES {
            return Err(TextError::TooLarge);
        }
        let mut document = TantivyDocument::new();
        for ((field, _), values) in self.fields.iter().zip(texts) {
            for value in values {
                document.add_text(*field, value);
            }
        }
        self.writer.add_document(document)?;
        Ok(self.fields.iter().map(|(_, count)| count.take()).collect())
    }

    /// The bundle of the index (its layout is in `bundle.rs`).
    ///
    /// # Errors
    /// [`TextError::Tantivy`], [`TextError::Io`].
    pub fn finish(self) -> Result<Vec<u8>, TextError> {
        let Self { writer, directory, .. } = self;
        let index = writer.finalize()?;
        let segment_id = segment_id(&index)?;
        let meta = String::from_utf8_lossy(&directory.atomic_read(META.as_ref()).map_err(tantivy_error)?)
            .replace(&hyphenated(&segment_id), SEGMENT_ID);
        let mut lens = vec![(META, meta.len())];
        for name in SEGMENT_FILES {
            let len = if name == STORE { empty_store()?.len() } else { read(&directory, &segment_id, name)?.len() };
            lens.push((name, len));
        }
        let mut bundle = bundle::begin(&lens)?;
        bundle.extend_from_slice(meta.as_bytes());
        for name in SEGMENT_FILES {
            if name == STORE {
                bundle.extend_from_slice(empty_store()?);
            } else {
                bundle.extend_from_slice(&read(&directory, &segment_id, name)?);
                directory
                    .delete(&segment_path(&segment_id, name))
                    .map_err(|error| TextError::Io(std::io::Error::other(error)))?;
            }
        }
        Ok(bundle)
    }
}

fn start(
    schema: Schema,
    tokenizers: TokenizerManager,
    directory: &RamDirectory,
) -> Result<SingleSegmentIndexWriter, TextError> {
    let settings = IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    };
    let builder = Index::builder().schema(schema).settings(settings).tokenizers(tokenizers);
    Ok(builder.single_segment_index_writer(directory.clone(), MEM_BUDGET_BYTES)?)
}

/// The store of an index without documents, in place of one that would hold five bytes for each document and nothing
/// else: tantivy opens a store with every segment, and none is ever read here, for no field is stored.
fn empty_store() -> Result<&'static [u8], TextError> {
    static EMPTY_STORE: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(store) = EMPTY_STORE.get() {
        return Ok(store);
    }
    let directory = RamDirectory::create();
    let index = start(Schema::builder().build(), TokenizerManager::new(), &directory)?.finalize()?;
    let store = read(&directory, &segment_id(&index)?, STORE)?;
    Ok(EMPTY_STORE.get_or_init(|| store.to_vec()))
}

fn segment_id(index: &Index) -> Result<String, TextError> {
    let metas = index.load_metas()?;
    let segment = metas.segments.first().ok_or(TextError::Damaged("an index was built without a segment"))?;
    Ok(segment.id().uuid_string())
}

/// The form in which `meta.json` has an id: in groups of 8, 4, 4, 4 and 12 digits.
fn hyphenated(id: &str) -> String {
    let mut form = String::with_capacity(36);
    for (position, digit) in id.chars().enumerate() {
        if matches!(position, 8 | 12 | 16 | 20) {
            form.push('-');
        }
        form.push(digit);
    }
    form
}

fn segment_path(segment_id: &str, name: &str) -> PathBuf {
    PathBuf::from(format!("{segment_id}.{name}"))
}

fn read(directory: &RamDirectory, segment_id: &str, name: &str) -> Result<OwnedBytes, TextError> {
    let file = directory.open_read(&segment_path(segment_id, name)).map_err(tantivy_error)?;
    Ok(file.read_bytes()?)
}

fn tantivy_error(error: tantivy::directory::error::OpenReadError) -> TextError {
    TextError::Tantivy(error.into())
}
