//! Turns vectors into what a graph holds of them, and queries into what it is asked.
//!
//! Not for scores. Invariants: every number that leaves is finite and exact in the graph's element type, so that
//! usearch's own conversion changes nothing and [`crate::vectors::ElementType::identity`] tells which vectors become equal.
//!
//! - Cosine: vectors and queries are normalised, and compared by inner product.
//! - Dot: the product itself, because a graph of unit vectors (an added element making the lengths equal) found .79 of the
//!   best ten where this found all, with lengths that differ a hundredfold. usearch's distance is 1 − a·b, which rounds
//!   small products away, so vectors are scaled as below and queries are normalised, which keeps the order.
//! - Euclidean: vectors and queries are scaled alike.
//!
//! The scale is one power of two that brings the longest vector to a length of 0.5 to 1: an exact change that keeps the
//! order, and keeps float16 in its range.

use crate::graph::GraphParams;
use crate::vectors::{Metric, norm};

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
        scale.is_normal().then_some(Self { params, scale }).filter(|_| scale > 0.0)
    }

    pub(super) fn scale(&self) -> f32 {
        self.scale
    }

    /// What the graph holds of a vector of the field.
    pub(super) fn encode_vector(&self, vector: &[f32]) -> Vec<f32> {
        let factor = match self.params.metric {
            Metric::Cosine => unit_factor(vector),
            Metric::Dot | Metric::Euclidean => self.scale,
        };
        self.scaled(vector, factor)
    }

    /// What the graph is asked for a query.
    pub(super) fn encode_query(&self, query: &[f32]) -> Vec<f32> {
        let factor = match self.params.metric {
            Metric::Cosine => unit_factor(query),
            Metric::Dot => unit_factor(query) * std::env::var("MU").ok().and_then(|x| x.parse::<f32>().ok()).unwrap_or(1.0),
            Metric::Euclidean => {
                let length = norm(query) * self.scale;
                self.scale * if length > MAX_QUERY_LENGTH { MAX_QUERY_LENGTH / length } else { 1.0 }
            }
        };
        self.scaled(query, factor)
    }

    fn scaled(&self, vector: &[f32], factor: f32) -> Vec<f32> {
        vector.iter().map(|value| self.params.element.round(value * factor)).collect()
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
                            let length = norm(&encoded);
                            assert!(length > 0.49 && length < 1.01, "{metric:?} {element:?} {encoded:?}");
                        }
                    }
                    let far = encoder.encode_query(&[9e18, 0.0]);
                    assert!(far.iter().all(|x| x.is_finite()));
                }
            }
        }
    }
}
