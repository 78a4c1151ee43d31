//! Real texts with vectors, bundled for the demo: paragraphs and questions in English, Russian and Chinese. Source, licence
//! and form: `cli/demo-data/README.md`.

use antiphon_proto::v1::*;
use antiphon_proto::vector;

use crate::sample::text;

const RECORDS: &[u8] = include_bytes!("../../cli/demo-data/xquad.jsonl.zst");
const VECTORS: &[u8] = include_bytes!("../../cli/demo-data/xquad.f16");
/// Components of a vector.
pub const DIMENSIONS: usize = 512;

/// A paragraph or a question.
#[derive(Debug, Clone)]
pub struct Record {
    pub is_question: bool,
    pub id: String,
    pub lang: String,
    pub title: String,
    pub text: String,
    pub vector: Vec<f32>,
}

impl Record {
    /// Vector `v`, `title`, and the text in the field of its language.
    pub fn document(&self) -> Document {
        Document {
            key: self.id.clone(),
            vectors: [("v".to_owned(), vector::to_proto(&self.vector))].into(),
            fields: [("title".to_owned(), text(&self.title)), (format!("text_{}", self.lang), text(&self.text))].into(),
        }
    }
}

/// A schema for [`Record::document`].
pub fn schema() -> Schema {
    let field = |name: &str, analyzer: &str, boost| TextField { name: name.into(), analyzer: analyzer.into(), boost };
    Schema {
        texts: vec![
            field("title", "standard", 2.0),
            field("text_en", "en", 1.0),
            field("text_ru", "ru", 1.0),
            field("text_zh", "zh", 1.0),
        ],
        ..crate::sample::schema(DIMENSIONS as u32, Metric::Cosine)
    }
}

pub fn records() -> Vec<Record> {
    let lines = zstd::decode_all(RECORDS).unwrap();
    let vectors = VECTORS.chunks_exact(DIMENSIONS * 2);
    let records = serde_json::Deserializer::from_slice(&lines).into_iter::<serde_json::Value>();
    let record = |(record, halves): (Result<serde_json::Value, _>, &[u8])| {
        let record = record.unwrap();
        let string = |name: &str| record[name].as_str().unwrap().to_owned();
        Record {
            is_question: string("kind") == "question",
            id: string("id"),
            lang: string("lang"),
            title: string("title"),
            text: string("text"),
            vector: halves.as_chunks::<2>().0.iter().map(|half| from_half(u16::from_le_bytes(*half))).collect(),
        }
    };
    records.zip(vectors).map(record).collect()
}

/// A binary16 number, which here is never infinite.
fn from_half(half: u16) -> f32 {
    let (exponent, fraction) = (i32::from(half >> 10 & 31), f32::from(half & 1023) / 1024.0);
    let magnitude = if exponent == 0 { fraction * 2f32.powi(-14) } else { (1.0 + fraction) * 2f32.powi(exponent - 15) };
    if half >> 15 == 1 { -magnitude } else { magnitude }
}
