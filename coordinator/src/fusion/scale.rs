//! What a place in one list is worth, before weights. Not what several lists make of it.
//!
//! Formulas are those of llama-index-core 0.14 (`QueryFusionRetriever`), whose reciprocal rank counts from 0 and is
//! thus ours with k one less. Sums run in the order of the list, in float64, so that the same list gives the same
//! bits everywhere. Points are always finite, whatever the scores.

/// The largest magnitude of a score. Scores come from float32 kernels, so beyond it only overflow is found.
const MAX_SCORE: f64 = f32::MAX as f64;

/// How the places of one list become points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// 1 / (k + rank), rank from 1.
    ReciprocalRank {
        /// How little the first ranks stand out.
        k: u32,
    },
    /// The score as it is.
    AsIs,
    /// 0 at `low`, 1 at `high`, linear between them and beyond. Where both are one, every match gets 1 if that is
    /// positive, else 0.
    Between {
        /// The score that gets 0.
        low: f64,
        /// The score that gets 1.
        high: f64,
    },
}

impl Scale {
    /// From the lowest to the highest score of the list.
    pub(super) fn extremes(scores: &[f64]) -> Self {
        let scores = || scores.iter().copied().map(tame);
        // For an empty list these are infinities, which no match will be measured by.
        Self::Between { low: scores().fold(f64::INFINITY, f64::min), high: scores().fold(f64::NEG_INFINITY, f64::max) }
    }

    /// From three standard deviations of the population below the mean to three above it. A match further out gets
    /// less than 0 or more than 1.
    ///
    /// If all scores are equal, rounding decides whether their mean differs from them in the last bit. Where it does,
    /// the list has a spread, and its matches get another value than 1. llama-index does the same.
    pub(super) fn distribution(scores: &[f64]) -> Self {
        let count = scores.len() as f64;
        let scores = || scores.iter().copied().map(tame);
        let mean = sum(scores()) / count;
        let variance = sum(scores().map(|score| (score - mean) * (score - mean))) / count;
        let reach = 3.0 * variance.sqrt();
        Self::Between { low: mean - reach, high: mean + reach }
    }

    /// The points of the match of rank `rank`, from 1, and score `score`, higher is better.
    pub(super) fn points(self, rank: usize, score: f64) -> f64 {
        match self {
            Self::ReciprocalRank { k } => 1.0 / (f64::from(k) + rank as f64),
            Self::AsIs => tame(score),
            Self::Between { low, high } if low == high => f64::from(high > 0.0),
            Self::Between { low, high } => (tame(score) - low) / (high - low),
        }
    }
}

/// A plain sum from left to right, beginning with 0.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    terms.fold(0.0, |sum, term| sum + term)
}

/// A finite score: an overflow becomes the largest, and what is no number, the worst. One document with extreme
/// values shall not make searches fail.
fn tame(score: f64) -> f64 {
    if score.is_nan() { -MAX_SCORE } else { score.clamp(-MAX_SCORE, MAX_SCORE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(scale: Scale, scores: &[f64]) -> Vec<f64> {
        scores.iter().enumerate().map(|(index, score)| scale.points(index + 1, *score)).collect()
    }

    #[test]
    fn extremes_get_one_and_zero() {
        let scores = [5.0, 2.0, 1.0];
        assert_eq!(points(Scale::extremes(&scores), &scores), [1.0, 0.25, 0.0]);
    }

    #[test]
    fn equal_scores_get_one_if_positive_else_zero() {
        for scale in [Scale::extremes, Scale::distribution] {
            assert_eq!(points(scale(&[0.5, 0.5]), &[0.5, 0.5]), [1.0, 1.0]);
            assert_eq!(points(scale(&[-0.5]), &[-0.5]), [0.0]);
            assert_eq!(points(scale(&[0.0]), &[0.0]), [0.0]);
        }
    }

    #[test]
    fn the_mean_gets_a_half() {
        let scores = [3.0, 2.0, 1.0];
        let points = points(Scale::distribution(&scores), &scores);
        assert_eq!(points[1], 0.5);
        assert!((points[0] - (0.5 + (1.5_f64).sqrt() / 6.0)).abs() < 1e-15);
    }

    #[test]
    fn rank_one_with_k_60_gets_a_sixty_first() {
        assert_eq!(Scale::ReciprocalRank { k: 60 }.points(1, f64::NAN), 1.0 / 61.0);
        assert_eq!(
            Scale::ReciprocalRank { k: u32::MAX }.points(usize::MAX, 0.0),
            1.0 / (u32::MAX as f64 + usize::MAX as f64)
        );
    }

    #[test]
    fn hostile_scores_give_finite_points() {
        let scores = [f64::INFINITY, f64::MAX, 1.0, 5e-324, -0.0, f64::MIN, f64::NEG_INFINITY, f64::NAN];
        for scale in [Scale::extremes(&scores), Scale::distribution(&scores), Scale::AsIs] {
            assert!(points(scale, &scores).iter().all(|points| points.is_finite()));
        }
        for scale in [Scale::extremes(&[5e-324, 0.0]), Scale::distribution(&[5e-324, 0.0])] {
            assert!(points(scale, &[5e-324, 0.0]).iter().all(|points| (0.0..=1.0).contains(points)));
        }
    }
}
