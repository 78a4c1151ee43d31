//! The demo's paragraphs and questions, with vectors. Source, licence and form: `demo-data/README.md`.

use antiphon_proto::v1::{self, value::Kind};
use antiphon_proto::vector;
use serde::Deserialize;

use super::half;
use crate::failure::Failure;

const RECORDS: &[u8] = include_bytes!("../../demo-data/xquad.jsonl.zst");
const VECTORS: &[u8] = include_bytes!("../../demo-data/xquad.f16");
/// Components of a vector.
pub(super) const DIMENSIONS: usize = 512;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RecordKind {
    /// To be imported.
    Paragraph,
    /// To be asked.
    Question,
}

/// A paragraph or a question.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// Which of them.
    pub(super) kind: RecordKind,
    /// A paragraph's is its key; a question's is the same in every language.
    pub(super) id: String,
    /// en, ru or zh.
    pub(super) lang: String,
    /// Of the article.
    pub(super) title: String,
    /// The text.
    pub(super) text: String,
    /// A question's: ids of the paragraphs that answer it.
    #[serde(default)]
    pub(super) answers: Vec<String>,
    /// Its vector.
    #[serde(skip)]
    pub(super) vector: Vec<f32>,
}

impl Record {
    /// The text field of the record's language.
    pub(super) fn text_field(&self) -> String {
        format!("text_{}", self.lang)
    }

    /// The document of a paragraph.
    pub(super) fn document(&self) -> v1::Document {
        let string = |text: &str| v1::Value { kind: Some(Kind::String(text.to_owned())) };
        v1::Document {
            key: self.id.clone(),
            vectors: [("use".to_owned(), vector::to_proto(&self.vector))].into(),
            fields: [
                ("title".to_owned(), string(&self.title)),
                ("lang".to_owned(), string(&self.lang)),
                (self.text_field(), string(&self.text)),
            ]
            .into(),
        }
    }
}

/// All records.
///
/// # Errors
/// Data that was built in wrongly.
pub(super) fn records() -> Result<Vec<Record>, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::of("the demo's data can't be read", error);
    let lines = zstd::decode_all(RECORDS).map_err(|error| failed(&error))?;
    let mut vectors = VECTORS.chunks_exact(DIMENSIONS * 2);
    let mut records = Vec::new();
    for record in serde_json::Deserializer::from_slice(&lines).into_iter::<Record>() {
        let mut record = record.map_err(|error| failed(&error))?;
        let halves =
            vectors.next().ok_or_else(|| Failure::new("the demo's data can't be read: vectors are missing"))?;
        let (halves, _) = halves.as_chunks::<2>();
        record.vector = halves.iter().map(|bytes| half::to_f32(u16::from_le_bytes(*bytes))).collect();
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn every_record_has_a_text_and_a_vector_of_unit_length() {
        let records = records().unwrap();
        assert_eq!(VECTORS.len(), records.len() * DIMENSIONS * 2);
        assert_eq!(records.iter().filter(|record| record.kind == RecordKind::Paragraph).count(), 720);
        for record in &records {
            let length: f32 = record.vector.iter().map(|value| value * value).sum();
            assert!((length - 1.0).abs() < 0.01, "{} {length}", record.id);
            assert!(!record.text.is_empty() && ["en", "ru", "zh"].contains(&record.lang.as_str()));
            assert_eq!(record.answers.is_empty(), record.kind == RecordKind::Paragraph);
        }
    }

    #[test]
    fn a_question_is_near_the_paragraph_that_answers_it() {
        let records = records().unwrap();
        let question = records
            .iter()
            .find(|record| record.kind == RecordKind::Question && record.text.contains("Priestley"))
            .unwrap();
        let score = |record: &&Record| -> f32 { record.vector.iter().zip(&question.vector).map(|(a, b)| a * b).sum() };
        let paragraphs = records.iter().filter(|record| record.kind == RecordKind::Paragraph);
        let best = paragraphs.max_by(|a, b| score(a).total_cmp(&score(b))).unwrap();
        assert_eq!(best.id, question.answers[0]);
    }
}
