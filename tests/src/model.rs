//! A brute-force model of what searches promise: every ranking is a full sort over all live documents.
//!
//! Not for speed, and not a copy of the engine: it knows no shards, segments, graphs or windows of its own making. It takes
//! from the contract the formulas (BM25, metrics, fusions), in their documented order of operations, so that scores are
//! compared bit by bit. Vectors are exact where their components are small whole numbers: then no sum is rounded.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_node::text::Analyzer;
use antiphon_proto::v1::*;
use antiphon_proto::vector;

/// How soon more occurrences of a term stop to count.
const K1: f64 = 1.2;
/// How much a field's length counts.
const B: f64 = 0.75;

/// A match in one ranked list.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The folded key.
    pub folded: String,
    pub score: f64,
}

/// A term and where it begins in its text.
type Terms = Vec<(usize, String)>;

/// A live document.
#[derive(Debug, Clone)]
pub struct Held {
    pub document: Document,
    pub vector: Option<Vec<f32>>,
    /// For each text field, its terms.
    terms: Vec<Vec<String>>,
}

/// All live documents of one collection, whose vector field is the first of its schema.
#[derive(Debug, Clone)]
pub struct Model {
    schema: Schema,
    documents: BTreeMap<String, Held>,
    /// Only documents that meet it are found.
    filter: Option<Filter>,
    /// Matches below it are not found.
    pub min_score: Option<f64>,
}

/// A keyword query.
#[derive(Debug, Clone, PartialEq)]
pub struct Words {
    pub text: String,
    /// Names of the fields; empty means all.
    pub fields: Vec<String>,
    pub operator: Operator,
}

impl Model {
    pub fn new(schema: Schema) -> Self {
        Self { schema, documents: BTreeMap::new(), filter: None, min_score: None }
    }

    /// The same documents, of which only those that meet a filter and reach a score are found.
    pub fn narrowed(&self, filter: Option<&Filter>, min_score: Option<f64>) -> Self {
        Self { filter: filter.cloned(), min_score, ..self.clone() }
    }

    fn finds(&self, held: &Held) -> bool {
        self.filter.as_ref().is_none_or(|filter| crate::filters::meets(filter, &held.document))
    }

    pub fn metric(&self) -> Metric {
        self.schema.vectors[0].metric()
    }

    /// What a key is compared by.
    pub fn fold(&self, key: &str) -> String {
        if self.schema.key_case() == KeyCase::CaseSensitive { key.to_owned() } else { fold(key) }
    }

    pub fn len(&self) -> usize {
        self.documents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The live documents by folded key.
    pub fn documents(&self) -> &BTreeMap<String, Held> {
        &self.documents
    }

    /// The spelled key of a folded one.
    pub fn key(&self, folded: &str) -> &str {
        &self.documents[folded].document.key
    }

    pub fn upsert(&mut self, documents: &[Document]) {
        for document in documents {
            let name = &self.schema.vectors[0].name;
            let vector = document.vectors.get(name).map(|vector| vector::components(vector).unwrap());
            let terms = self.schema.texts.iter().map(|field| document_terms(field, document)).collect();
            let held = Held { document: document.clone(), vector, terms };
            self.documents.insert(self.fold(&document.key), held);
        }
    }

    /// How many documents were there and are no more.
    pub fn delete(&mut self, keys: &[String]) -> u64 {
        keys.iter().filter(|key| self.documents.remove(&self.fold(key)).is_some()).count() as u64
    }

    /// Every document with a vector, best first.
    pub fn vector_list(&self, query: &[f32]) -> Vec<Entry> {
        let found = self.documents.iter().filter(|(_, held)| self.finds(held));
        let entries = found.filter_map(|(folded, held)| {
            Some(Entry { folded: folded.clone(), score: vector_score(self.metric(), query, held.vector.as_ref()?) })
        });
        sorted(entries.collect())
    }

    /// Every document that holds one of the words, or all of them, best first.
    pub fn keyword_list(&self, words: &Words) -> Vec<Entry> {
        let mut terms: Vec<(usize, usize, String)> = Vec::new();
        for (index, field) in self.schema.texts.iter().enumerate() {
            if !words.fields.is_empty() && !words.fields.contains(&field.name) {
                continue;
            }
            for (offset, term) in query_terms(field, &words.text) {
                if !terms.iter().any(|(field, _, held)| *field == index && *held == term) {
                    terms.push((index, offset, term));
                }
            }
        }
        let places: BTreeSet<usize> = terms.iter().map(|(_, offset, _)| *offset).collect();
        let weights: Vec<f64> = terms.iter().map(|(field, _, term)| self.weight(*field, term)).collect();
        let averages: Vec<f64> = (0..self.schema.texts.len()).map(|field| self.average(field)).collect();
        let found = self.documents.iter().filter(|(_, held)| self.finds(held));
        let entries = found.filter_map(|(folded, held)| {
            let mut score = 0.0;
            let mut found = BTreeSet::new();
            for ((field, offset, term), weight) in terms.iter().zip(&weights) {
                let own = &held.terms[*field];
                let tf = own.iter().filter(|held| *held == term).count() as f64;
                if tf > 0.0 {
                    let norm = K1 * (1.0 - B + B * f64::from(quantised(own.len() as u32)) / averages[*field]);
                    score += weight * tf * (K1 + 1.0) / (tf + norm);
                    found.insert(*offset);
                }
            }
            let matches = if words.operator == Operator::And { found == places } else { true };
            (matches && !found.is_empty()).then(|| Entry { folded: folded.clone(), score })
        });
        sorted(entries.collect())
    }

    fn with_tokens(&self, field: usize) -> impl Iterator<Item = &Held> {
        self.documents.values().filter(move |held| !held.terms[field].is_empty())
    }

    fn average(&self, field: usize) -> f64 {
        let num_tokens: usize = self.with_tokens(field).map(|held| held.terms[field].len()).sum();
        num_tokens as f64 / self.with_tokens(field).count() as f64
    }

    fn weight(&self, field: usize, term: &str) -> f64 {
        let num_docs = self.with_tokens(field).count() as f64;
        let doc_freq =
            self.documents.values().filter(|held| held.terms[field].iter().any(|held| held == term)).count() as f64;
        let boost = self.schema.texts[field].boost;
        let boost = if boost == 0.0 { 1.0 } else { boost };
        f64::from(boost) * (1.0 + (num_docs - doc_freq + 0.5) / (doc_freq + 0.5)).ln()
    }
}

/// Best first; ties by the bytes of the folded key.
pub fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.folded.cmp(&b.folded)));
    entries
}

/// Upper case, one code point for one code point, never from another script into ASCII.
pub fn fold(key: &str) -> String {
    let upper = |c: char| {
        let mut upper = c.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(single), None) if c.is_ascii() || !single.is_ascii() => single,
            _ => c,
        }
    };
    key.chars().map(upper).collect()
}

/// The score of the contract. Exact as long as no sum needs more than 24 bits.
pub fn vector_score(metric: Metric, query: &[f32], row: &[f32]) -> f64 {
    let pairs = || query.iter().zip(row).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let dot: f64 = pairs().map(|(a, b)| a * b).sum();
    let length = |values: &[f32]| {
        let squared: f64 = values.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
        f64::from((squared as f32).sqrt())
    };
    let score = match metric {
        Metric::Dot => dot,
        Metric::Hamming => -(pairs().filter(|(a, b)| (*a > 0.0) != (*b > 0.0)).count() as f64) + 0.0,
        Metric::Euclidean => -pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
        Metric::Cosine | Metric::Unspecified => (dot / (length(query) * length(row))).clamp(-1.0, 1.0),
    };
    score + 0.0
}

/// A length as an index keeps it, in one byte: up to 40 as it is, beyond by its highest four bits above 24, rounded down.
pub fn quantised(len: u32) -> u32 {
    let Some(rest) = len.checked_sub(24).filter(|rest| *rest > 15) else { return len };
    let dropped = rest.ilog2() - 3;
    24 + (rest >> dropped << dropped)
}

fn document_terms(field: &TextField, document: &Document) -> Vec<String> {
    let texts: Vec<&str> = match document.fields.get(&field.name).and_then(|value| value.kind.as_ref()) {
        Some(value::Kind::String(text)) => vec![text],
        Some(value::Kind::List(list)) => {
            let strings = list.values.iter().filter_map(|value| match &value.kind {
                Some(value::Kind::String(text)) => Some(text.as_str()),
                _ => None,
            });
            strings.collect()
        }
        _ => Vec::new(),
    };
    let terms = texts.iter().flat_map(|text| match field.analyzer.as_str() {
        "standard" if text.is_ascii() => ascii_words(text),
        name => own(Analyzer::by_name(name).unwrap().document_terms(text)),
    });
    terms.map(|(_, term)| term).collect()
}

fn query_terms(field: &TextField, text: &str) -> Terms {
    match field.analyzer.as_str() {
        "standard" if text.is_ascii() => ascii_words(text),
        name => own(Analyzer::by_name(name).unwrap().terms(text)),
    }
}

fn own(terms: Vec<antiphon_node::text::AnalyzedTerm>) -> Terms {
    terms.into_iter().map(|term| (term.offset, term.text)).collect()
}

/// Runs of letters and digits, in lower case.
fn ascii_words(text: &str) -> Terms {
    let mut terms = Vec::new();
    let mut at = 0;
    for run in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        if !run.is_empty() {
            terms.push((at, run.to_lowercase()));
        }
        at += run.len() + 1;
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_kept_in_one_byte() {
        for len in 0..=40 {
            assert_eq!(quantised(len), len);
        }
        for (len, kept) in [(41, 40), (42, 42), (55, 54), (56, 56), (59, 56), (60, 60), (87, 84), (88, 88), (100, 96)] {
            assert_eq!(quantised(len), kept, "{len}");
        }
    }

    #[test]
    fn folding_keeps_scripts_apart() {
        assert_eq!(fold("straße-ı-Éclair-ключ"), "STRAßE-ı-ÉCLAIR-КЛЮЧ");
    }
}
