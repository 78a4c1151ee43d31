//! How far tantivy's block-max pruning can be trusted: thresholds that lose none of the first n rows.
//!
//! tantivy walks the postings with float32 scores and leaves out a row when a sum of upper bounds, one a term, does not
//! exceed a threshold T. [`Pruning::threshold`] gives a T, as large as can be, for which every row is still offered
//! whose canonical score is at least the nth best one. Below, for one term of a field, A is the collection's mean
//! length, S the segment's, and for a row with tf and quantised length len
//!
//! ```text
//! g = tf / (tf + K(A)),  s = tf / (tf + K(S)),   K(x) = k1 · (1 − b + b · len / x)
//! ```
//! so that the term gives the row w · (k1 + 1) · g, and tantivy's own score under the statistics that it is given is
//! the same in float32. Each of tantivy's bounds is one of these:
//!
//! 1. The row's own score. Nothing is lost.
//! 2. A block's maximum. At indexing, tantivy stores for each block the pair (len, tf) with the highest s (average S,
//!    from the exact number of tokens and all rows of the segment; the idf is the same for all), and at search it
//!    scores that pair m with g. For tf ≥ 1 and len ≤ L, the greatest length of a row, the larger of g and s is at most
//!    r times the smaller, r = (1 + k1·(1−b) + k1·b·L/min(A, S)) / (1 + k1·(1−b) + k1·b·L/max(A, S)): their ratio rises
//!    with len and falls with tf. Which one is larger is the same for all rows: if S ≥ A then g ≤ s ≤ r·g, else
//!    s ≤ g ≤ r·s. In the first case, for any row x of the block, g(x) ≤ s(x) ≤ s(m) ≤ r·g(m), in the second
//!    g(x) ≤ r·s(x) ≤ r·s(m) ≤ r·g(m). So the bound is short by at most r. (A stored tf of 255 is read as infinity,
//!    which only raises it.)
//! 3. The term's maximum, used before a block is decoded: g for len = tf = 2,013,265,944, which is at least
//!    1 / (1 + 0.9/A + 2e-10). A row's tf is at most its true length, but its len is quantised, down to 8/9 of it at
//!    the worst: g(x) ≤ 1 / (1 + 0.8/A). So the bound is short by at most q = (1 + 0.9/A) / (1 + 0.8/A).
//!
//! With c = max(r, q) over the terms' fields, sums of such bounds are short by at most c: T = nth / c. Rounding to
//! float32 comes on top, in units u = 2^-24 of relative error: less than 16 u for a score that tantivy computes (4 for
//! the weight, 8 for the norm, 3 for quotient and product), less than 22 u for the choice of m at indexing, which
//! compares float32 quotients, and less than t u for a sum of t terms, all of one sign. And nth is not the nth best
//! canonical score but the nth best of tantivy's scores so far, another 16 + t units off. So T is lowered by 128 + 8 t
//! units, [`Pruning::margin`].
//!
//! Weights are given relative to the largest of the query, so that no boost overflows; a T so small that float32 loses
//! its relative precision is not used at all.

use super::index::FieldIndex;
use super::score::{B, K1};

/// Lets every row pass, also those whose score is 0.
pub(super) const NO_THRESHOLD: f32 = -1.0;

/// Thresholds below this are not used.
const SMALLEST_THRESHOLD: f64 = 1e-30;

/// The law by which candidates are left out for one query and one segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pruning {
    /// One over the largest weight: from canonical weights to those that tantivy works with.
    unit: f64,
    /// c of the module's text, at least 1.
    slack: f64,
    margin: f64,
}

impl Pruning {
    /// For terms of these weights; `slack` is the largest of their fields' [`slack_of`].
    pub(super) fn new(weights: impl Iterator<Item = f64> + Clone, slack: f64) -> Self {
        let largest = weights.clone().fold(0.0, f64::max);
        let unit = if largest > 0.0 { 1.0 / largest } else { 1.0 };
        let margin = (128.0 + 8.0 * weights.count() as f64) * f64::from(f32::EPSILON) / 2.0;
        Self { unit, slack, margin }
    }

    /// A term's weight as tantivy is to have it, between 0 and 1.
    pub(super) fn relative(&self, weight: f64) -> f64 {
        weight * self.unit
    }

    /// What a bound in tantivy must exceed, when the nth best of tantivy's scores so far is `nth`.
    pub(super) fn threshold(&self, nth: f32) -> f32 {
        self.lowered(f64::from(nth) / self.slack)
    }

    /// What tantivy's score of a row must exceed for the row to be among the first n.
    pub(super) fn score_threshold(&self, nth: f32) -> f32 {
        self.lowered(f64::from(nth))
    }

    fn lowered(&self, score: f64) -> f32 {
        let threshold = score * (1.0 - self.margin);
        // False for NaN (an infinite slack) as well.
        if threshold >= SMALLEST_THRESHOLD { threshold as f32 } else { NO_THRESHOLD }
    }
}

/// c of the module's text for one field, whose mean length in the collection is `average`.
pub(super) fn slack_of(field: &FieldIndex, average: f64) -> f64 {
    let longest = f64::from(field.longest());
    let denominator = |average: f64| 1.0 + K1 * (1.0 - B) + K1 * B * longest / average;
    let (shorter, longer) = (average.min(field.segment_average), average.max(field.segment_average));
    let block_maxima = denominator(shorter) / denominator(longer);
    let quantised = (1.0 + 0.9 / average) / (1.0 + 0.8 / average);
    block_maxima.max(quantised)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_below_scores_and_never_wrong() {
        let pruning = Pruning::new([2.0, 4.0].into_iter(), 1.5);
        assert_eq!(pruning.relative(4.0), 1.0);
        assert!(pruning.score_threshold(1.0) < 1.0 && pruning.score_threshold(1.0) > 0.9999);
        assert!(pruning.threshold(1.0) < 1.0 / 1.5 && pruning.threshold(1.0) > 0.6666);
        assert_eq!(Pruning::new([0.0].into_iter(), 1.0).threshold(0.0), NO_THRESHOLD);
        assert_eq!(Pruning::new([1.0].into_iter(), f64::INFINITY).threshold(1.0), NO_THRESHOLD);
    }
}
