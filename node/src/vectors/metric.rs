//! Metrics, and the scorer that turns a row into a score: higher is better, always.
//!
//! Not for choosing candidates in a graph. Invariants: a score comes from the float32 rows as sent, by the one kernel;
//! it is never NaN and never −0.0, so that comparing bits, values and total order is one and the same.

use crate::vectors::kernel;

/// How the nearness of two vectors of a field is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The cosine of the angle, in −1..=1.
    Cosine,
    /// The inner product.
    Dot,
    /// Minus the Euclidean distance.
    Euclidean,
    /// Minus the number of elements that are above zero in one vector alone.
    Hamming,
}

impl Metric {
    /// The number that stands for the metric in file headers.
    pub fn code(self) -> u8 {
        match self {
            Self::Cosine => 1,
            Self::Dot => 2,
            Self::Euclidean => 3,
            Self::Hamming => 4,
        }
    }

    /// The metric of a file header's number.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Cosine),
            2 => Some(Self::Dot),
            3 => Some(Self::Euclidean),
            4 => Some(Self::Hamming),
            _ => None,
        }
    }
}

/// The Euclidean length of a vector as files hold it and scores use it.
pub fn norm(vector: &[f32]) -> f32 {
    kernel::squared_norm(vector).sqrt()
}

/// A query prepared for scoring rows under one metric.
#[derive(Debug, Clone)]
pub struct Scorer {
    metric: Metric,
    query: Vec<f32>,
    query_norm: f64,
}

impl Scorer {
    /// Prepares `query`, which passed validation: finite elements, a squared length of at most `f32::MAX / 4`, and for
    /// [`Metric::Cosine`] a squared length that is a normal number.
    pub fn new(metric: Metric, query: &[f32]) -> Self {
        Self { metric, query: query.to_vec(), query_norm: f64::from(norm(query)) }
    }

    /// The metric that rows are scored by.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The query vector as given.
    pub fn query(&self) -> &[f32] {
        &self.query
    }

    /// The score of a row whose length is `row_norm` (see [`norm`]); the row passed the same validation as the query.
    #[inline]
    pub fn score(&self, row: &[f32], row_norm: f32) -> f64 {
        let score = match self.metric {
            Metric::Cosine => {
                let norms = self.query_norm * f64::from(row_norm);
                // Rows without a direction do not pass validation; were one here, it would be near nothing.
                if norms > 0.0 { (f64::from(kernel::dot(&self.query, row)) / norms).clamp(-1.0, 1.0) } else { 0.0 }
            }
            Metric::Dot => f64::from(kernel::dot(&self.query, row)),
            Metric::Euclidean => -f64::from(kernel::squared_distance(&self.query, row)).sqrt(),
            Metric::Hamming => -f64::from(kernel::differing_signs(&self.query, row)),
        };
        // Makes −0.0 to 0.0: the two are one score, and the total order must see a tie.
        score + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(metric: Metric, query: &[f32], row: &[f32]) -> f64 {
        Scorer::new(metric, query).score(row, norm(row))
    }

    #[test]
    fn scores_are_those_of_the_contract() {
        assert_eq!(score(Metric::Cosine, &[3.0, 0.0], &[0.0, 2.0]), 0.0);
        assert_eq!(score(Metric::Cosine, &[3.0, 0.0], &[5.0, 0.0]), 1.0);
        assert_eq!(score(Metric::Cosine, &[3.0, 0.0], &[-5.0, 0.0]), -1.0);
        assert_eq!(score(Metric::Dot, &[1.0, 2.0], &[3.0, -4.0]), -5.0);
        assert_eq!(score(Metric::Euclidean, &[1.0, 2.0], &[4.0, 6.0]), -5.0);
        assert_eq!(score(Metric::Hamming, &[1.0, 0.0, -2.0], &[4.0, 6.0, 5.0]), -2.0);
    }

    #[test]
    fn a_cosine_never_leaves_its_range() {
        for seed in 1..200u32 {
            let row: Vec<f32> = (0..7).map(|at| ((seed * 31 + at * 17) % 101) as f32 / 7.0 + 0.01).collect();
            let longer: Vec<f32> = row.iter().map(|x| x * 3.3).collect();
            let score = score(Metric::Cosine, &row, &longer);
            assert!((0.999_999..=1.0).contains(&score), "{score}");
        }
    }

    #[test]
    fn extreme_lengths_give_numbers() {
        let long = [f32::MAX.sqrt() / 2.1; 1];
        let short = [1.1e-19f32];
        for metric in [Metric::Cosine, Metric::Dot, Metric::Euclidean] {
            for (query, row) in [(&long, &long), (&long, &short), (&short, &short)] {
                let negated = [-row[0]];
                assert!(!score(metric, query, row).is_nan());
                assert!(!score(metric, query, &negated).is_nan());
            }
        }
        assert!((score(Metric::Cosine, &short, &long) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn zero_has_one_sign() {
        assert_eq!(score(Metric::Euclidean, &[1.0], &[1.0]).to_bits(), 0.0f64.to_bits());
        assert_eq!(score(Metric::Dot, &[-0.0], &[1.0]).to_bits(), 0.0f64.to_bits());
        assert_eq!(score(Metric::Hamming, &[1.0], &[1.0]).to_bits(), 0.0f64.to_bits());
    }

    #[test]
    fn codes_lead_back() {
        for metric in [Metric::Cosine, Metric::Dot, Metric::Euclidean, Metric::Hamming] {
            assert_eq!(Metric::from_code(metric.code()), Some(metric));
        }
        assert_eq!(Metric::from_code(0), None);
    }
}
