//! Documents as they are sent.

use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::{Document, Value};
use antiphon_proto::vector;

use crate::corpus::Corpus;

/// A string value.
pub fn string(text: &str) -> Value {
    Value { kind: Some(Kind::String(text.to_owned())) }
}

/// One document of a corpus: the vector `v`, the fields `title`, `text`, `pos` and `lexfile`.
pub fn document(corpus: &Corpus, row: usize) -> Document {
    let entry = &corpus.entries[row];
    let mut document = Document { key: entry.id.clone(), ..Document::default() };
    document.vectors.insert("v".into(), vector::to_proto(corpus.vectors.row(row)));
    document.fields.insert("title".into(), string(&entry.title));
    document.fields.insert("text".into(), string(&entry.text));
    if !entry.pos.is_empty() {
        document.fields.insert("pos".into(), string(&entry.pos));
        document.fields.insert("lexfile".into(), Value { kind: Some(Kind::Int64(entry.lexfile)) });
    }
    document
}
