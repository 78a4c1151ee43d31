//! The canonical keyword score: BM25 in float64, from collection-wide statistics.
//!
//! A row's score is the sum, over the query's terms in their order, of what the terms that it holds give:
//!
//! ```text
//! boost · idf · tf · (k1 + 1) / (tf + k1 · (1 − b + b · len / avg))      k1 = 1.2, b = 0.75
//! idf = ln(1 + (N − df + 0.5) / (df + 0.5))
//! ```
//! tf is how often the row's field has the term, len the field's length in tokens as tantivy quantises it (one byte a
//! row), avg the mean length, N the number of rows, df how many hold the term; N, df and avg count live rows of the
//! whole collection. So a score depends on the row's text and the statistics alone, to the last bit: not on the
//! segment, the shard, the other terms' order in an index, or what was deleted.

use tantivy::fieldnorm::FieldNormReader;

/// How soon more occurrences of a term stop to count.
pub(super) const K1: f64 = 1.2;
/// How much a field's length counts.
pub(super) const B: f64 = 0.75;

/// Inverse document frequency. Never negative and never NaN: a `doc_freq` above `num_docs` counts as `num_docs`.
pub(super) fn idf(num_docs: u64, doc_freq: u64) -> f64 {
    let doc_freq = doc_freq.min(num_docs);
    let others = (num_docs - doc_freq) as f64;
    let doc_freq = doc_freq as f64;
    (1.0 + (others + 0.5) / (doc_freq + 0.5)).ln()
}

/// What one term gives a row; `weight` is boost · idf.
#[inline]
pub(super) fn term_score(weight: f64, term_freq: u32, norm: f64) -> f64 {
    let tf = f64::from(term_freq);
    weight * tf * (K1 + 1.0) / (tf + norm)
}

/// k1 · (1 − b + b · len / avg) for each of tantivy's 256 quantised lengths.
pub(super) struct LengthNorms(Box<[f64; 256]>);

impl LengthNorms {
    pub(super) fn new(average: f64) -> Self {
        let mut norms = Box::new([0.0; 256]);
        for (id, norm) in (0..=u8::MAX).zip(norms.iter_mut()) {
            let len = f64::from(FieldNormReader::id_to_fieldnorm(id));
            *norm = K1 * (1.0 - B + B * len / average);
        }
        Self(norms)
    }

    #[inline]
    pub(super) fn of(&self, length_id: u8) -> f64 {
        self.0[usize::from(length_id)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_documents_with_a_term_than_documents_do_not_panic() {
        assert_eq!(idf(10, 11), idf(10, 10));
        assert_eq!(idf(0, 5), idf(0, 0));
        assert!(idf(u64::MAX, u64::MAX) >= 0.0);
        assert!(idf(u64::MAX, 0).is_finite());
    }

    #[test]
    fn a_shorter_field_scores_higher() {
        let norms = LengthNorms::new(10.0);
        assert!(term_score(1.0, 1, norms.of(5)) > term_score(1.0, 1, norms.of(20)));
        assert_eq!(term_score(2.0, 1, norms.of(10)), 2.0 * 2.2 / (1.0 + 1.2 * (1.0 - 0.75 + 0.75 * 10.0 / 10.0)));
    }
}
