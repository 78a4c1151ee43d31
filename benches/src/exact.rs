//! Ground truth computed here, without any of the product's code.

use crate::npy::Matrix;

/// The cosine in float64.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    let norm = |vector: &[f32]| vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    dot / (norm(a) * norm(b))
}

/// The rows nearest to a query by cosine, best first.
pub fn nearest(vectors: &Matrix, query: &[f32], count: usize) -> Vec<usize> {
    let mut scored: Vec<(f64, usize)> = (0..vectors.rows).map(|row| (cosine(vectors.row(row), query), row)).collect();
    let count = count.min(scored.len());
    if count < scored.len() {
        scored.select_nth_unstable_by(count, |a, b| b.0.total_cmp(&a.0));
    }
    scored.truncate(count);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, row)| row).collect()
}

/// The share of `truth` that `found` holds.
pub fn recall<T: PartialEq>(truth: &[T], found: &[T]) -> f64 {
    truth.iter().filter(|key| found.contains(key)).count() as f64 / truth.len().max(1) as f64
}
