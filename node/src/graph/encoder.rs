//! Turns vectors into what a graph holds of them, and queries into what it is asked.
//!
//! Not for scores. Invariant: every number that leaves is finite and exact in the graph's element type, so that usearch's
//! own conversion changes nothing.
//!
//! - Cosine: vectors and queries are normalised, and compared by inner product. That order is the one of nearness only
//!   while lengths are equal, and among near-equal vectors the lengths after rounding would outweigh the angles: so
//!   vectors are rounded to keep their length (see `Encoder::round_unit_vector`).
//! - Euclidean: vectors and queries are scaled by one power of two that brings the longest vector to a length of 0.5 to
//!   1: an exact change that keeps the order, and keeps float16 in its range.
//! - Dot: vectors are scaled alike, but compared by distance, and the query is put far out in its direction, where the
//!   nearest vectors are those of the greatest product: |q − v|² = |q|² − 2 q·v + |v|², and |v| is at most 1. A graph
//!   linked by inner products leaves shorter vectors without links to them (with the longer half deleted it found .31 of
//!   the best ten, this one .99; without deletions on clusters .87 and .98).

use crate::graph::GraphParams;
use crate::vectors::{Metric, norm};

/// The length of a query under [`Metric::Dot`], where vectors are no longer than 1.
const DOT_QUERY_LENGTH: f32 = 16.0;

/// Elements that are moved at most to keep a vector's length.
const LENGTH_STEPS: usize = 8;

/// A query further away than this many times the longest vector is moved nearer on its ray: from there the order of the
/// vectors hardly changes, while the distances outgrow the element type.
const MAX_QUERY_LENGTH: f32 = 64.0;

/// Encodes the vectors of one graph.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    params: GraphParams,
    scale: f32,
}

impl Encoder {
    /// An encoder for vectors whose greatest norm is `max_norm`, finite.
    pub(super) fn for_max_norm(params: GraphParams, max_norm: f32) -> Self {
        let scale = match params.metric {
            Metric::Cosine => 1.0,
            Metric::Dot | Metric::Euclidean => power_of_two_below_inverse(max_norm),
        };
        Self { params, scale }
    }

    /// The encoder of a stored graph, or `None` where no encoder has this scale.
    pub(super) fn with_scale(params: GraphParams, scale: f32) -> Option<Self> {
        (scale.is_normal() && scale > 0.0).then_some(Self { params, scale })
    }

    pub(super) fn scale(&self) -> f32 {
        self.scale
    }

    /// What the graph holds of a vector of the field.
    pub(super) fn encode_vector(&self, vector: &[f32]) -> Vec<f32> {
        match self.params.metric {
            Metric::Cosine => self.round_unit_vector(vector),
            Metric::Dot | Metric::Euclidean => self.scaled(vector, self.scale),
        }
    }

    /// What the graph is asked for a query.
    pub(super) fn encode_query(&self, query: &[f32]) -> Vec<f32> {
        match self.params.metric {
            // The same as for a vector, so that a vector is its own nearest.
            Metric::Cosine => self.round_unit_vector(query),
            Metric::Dot => self.scaled(query, DOT_QUERY_LENGTH * unit_factor(query)),
            Metric::Euclidean => {
                let length = norm(query) * self.scale;
                let nearer = if length > MAX_QUERY_LENGTH { MAX_QUERY_LENGTH / length } else { 1.0 };
                self.scaled(query, self.scale * nearer)
            }
        }
    }

    fn scaled(&self, vector: &[f32], factor: f32) -> Vec<f32> {
        vector.iter().map(|value| self.params.element.round(value * factor)).collect()
    }

    /// Normalises and rounds a vector, then moves a few elements by one step of the element type, each time the one that
    /// brings the length nearest to 1.
    fn round_unit_vector(&self, vector: &[f32]) -> Vec<f32> {
        let mut unit = self.scaled(vector, unit_factor(vector));
        let squared = |value: f32| f64::from(value) * f64::from(value);
        let mut missing = 1.0 - unit.iter().map(|&value| squared(value)).sum::<f64>();
        for _ in 0..LENGTH_STEPS {
            let moved = unit.iter().enumerate().filter_map(|(at, &value)| {
                let value = self.params.element.neighbor(value, missing > 0.0)?;
                Some((at, value, missing - (squared(value) - squared(unit[at]))))
            });
            let Some((at, value, left)) = moved.min_by(|a, b| a.2.abs().total_cmp(&b.2.abs())) else { break };
            if left.abs() >= missing.abs() {
                break;
            }
            unit[at] = value;
            missing = left;
        }
        unit
    }
}

/// The reciprocal of the vector's length; 1 where it has none.
fn unit_factor(vector: &[f32]) -> f32 {
    let norm = norm(vector);
    if norm > 0.0 { 1.0 / norm } else { 1.0 }
}

/// The power of two that brings `value` into 0.5..1; 1 for zero.
fn power_of_two_below_inverse(value: f32) -> f32 {
    if value > 0.0 { (-(value.log2().floor() + 1.0)).clamp(-100.0, 100.0).exp2() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::ElementType;

    fn params(metric: Metric, element: ElementType) -> GraphParams {
        GraphParams { dims: 2, metric, element, connectivity: 16, expansion_add: 128 }
    }

    #[test]
    fn scales_are_powers_of_two() {
        for (value, expected) in [(1.0, 0.5), (0.99, 1.0), (3.0, 0.25), (0.0, 1.0), (1e19, 2f32.powi(-64))] {
            assert_eq!(power_of_two_below_inverse(value), expected, "{value}");
        }
        assert!(power_of_two_below_inverse(3.8e-23).is_normal());
    }

    #[test]
    fn what_leaves_is_finite_and_exact_in_the_element_type() {
        for element in [ElementType::Float32, ElementType::Float16, ElementType::BFloat16] {
            for metric in [Metric::Cosine, Metric::Dot, Metric::Euclidean] {
                for length in [2e-19f32, 1.0, 7e4, 8e18] {
                    let encoder = Encoder::for_max_norm(params(metric, element), length);
                    for vector in [[length, 0.0], [length * 0.6, length * -0.8]] {
                        for encoded in [encoder.encode_vector(&vector), encoder.encode_query(&vector)] {
                            assert_eq!(encoded.len(), encoder.params.dims);
                            assert!(encoded.iter().all(|&x| element.round(x).to_bits() == x.to_bits()));
                            let range = if metric == Metric::Dot { 0.49..16.1 } else { 0.49..1.01 };
                            assert!(range.contains(&norm(&encoded)), "{metric:?} {element:?} {encoded:?}");
                        }
                    }
                    let far = encoder.encode_query(&[9e18, 0.0]);
                    assert!(far.iter().all(|x| x.is_finite()));
                }
            }
        }
    }

    #[test]
    fn rounding_keeps_unit_vectors_at_unit_length() {
        for element in [ElementType::Float16, ElementType::BFloat16] {
            let encoder = Encoder::for_max_norm(GraphParams { dims: 64, ..params(Metric::Cosine, element) }, 1.0);
            for seed in 1..50u32 {
                let vector: Vec<f32> =
                    (0..64u32).map(|at| ((seed * 7_919 + at * 104_729) % 1_009) as f32 - 504.5).collect();
                let length = norm(&vector);
                let encoded = encoder.encode_vector(&vector);
                assert!((norm(&encoded) - 1.0).abs() < 1e-5, "{}", norm(&encoded));
                for (value, held) in vector.iter().zip(&encoded) {
                    let exact = value / length;
                    assert!((exact - held).abs() <= exact.abs() / 16.0, "{exact} {held}");
                }
            }
        }
    }
}
