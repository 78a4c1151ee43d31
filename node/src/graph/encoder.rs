//! Turns vectors into what a graph holds of them, and queries into what it is asked.
//!
//! Not for scores. Invariant: every number that leaves is finite and exact in the graph's element type, so that usearch's
//! own conversion changes nothing.
//!
//! Float types:
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
//!
//! Int8: vectors, under the cosine normalised, are scaled by one factor that brings the greatest element of all to 127, and
//! compared by distance. A factor for each vector would use the range better, but then distances would mean nothing.
//! Queries are scaled alike; where that leaves the range, under the cosine by less, which keeps the direction, under the
//! distance element by element. Under Dot the graph is linked by distance and searched by inner product.
//!
//! Bit: whether each element is above zero, of vectors and queries, compared by the number of differing bits.

use usearch::b1x8;

use crate::graph::code::Code;
use crate::graph::{ElementType, GraphParams};
use crate::vectors::{Extent, INT8_MAX, Metric, norm};

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
    /// An encoder for vectors of this extent, which is finite.
    pub(super) fn for_extent(params: GraphParams, extent: Extent) -> Self {
        let scale = match (params.element, params.metric) {
            (ElementType::Bit, _) => 1.0,
            (ElementType::Int8, _) => int8_factor(extent.max_element),
            (_, Metric::Cosine) => 1.0,
            (_, Metric::Dot | Metric::Euclidean | Metric::Hamming) => power_of_two_below_inverse(extent.max_norm),
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
    pub(super) fn encode_vector(&self, vector: &[f32]) -> Code {
        match (self.params.element, self.params.metric) {
            (ElementType::Bit, _) => bits(vector),
            (ElementType::Int8, Metric::Cosine) => bytes(vector, self.scale * unit_factor(vector)),
            (ElementType::Int8, _) => bytes(vector, self.scale),
            (_, Metric::Cosine) => self.round_unit_vector(vector),
            (_, Metric::Dot | Metric::Euclidean | Metric::Hamming) => self.scaled(vector, self.scale),
        }
    }

    /// What the graph is asked for a query.
    pub(super) fn encode_query(&self, query: &[f32]) -> Code {
        match (self.params.element, self.params.metric) {
            (ElementType::Bit, _) => bits(query),
            // By inner product only the direction counts.
            (ElementType::Int8, Metric::Dot) => bytes(query, int8_factor(max_element(query))),
            (ElementType::Int8, Metric::Cosine) => {
                let factor = self.scale * unit_factor(query);
                bytes(query, factor.min(int8_factor(max_element(query))))
            }
            (ElementType::Int8, Metric::Euclidean | Metric::Hamming) => bytes(query, self.scale),
            // The same as for a vector, so that a vector is its own nearest.
            (_, Metric::Cosine) => self.round_unit_vector(query),
            (_, Metric::Dot) => self.scaled(query, DOT_QUERY_LENGTH * unit_factor(query)),
            (_, Metric::Euclidean | Metric::Hamming) => {
                let length = norm(query) * self.scale;
                let nearer = if length > MAX_QUERY_LENGTH { MAX_QUERY_LENGTH / length } else { 1.0 };
                self.scaled(query, self.scale * nearer)
            }
        }
    }

    fn scaled(&self, vector: &[f32], factor: f32) -> Code {
        Code::Floats(self.rounded(vector, factor))
    }

    fn rounded(&self, vector: &[f32], factor: f32) -> Vec<f32> {
        vector.iter().map(|value| self.params.element.round(value * factor)).collect()
    }

    /// Normalises and rounds a vector, then moves a few elements by one step of the element type, each time the one that
    /// brings the length nearest to 1.
    fn round_unit_vector(&self, vector: &[f32]) -> Code {
        let mut unit = self.rounded(vector, unit_factor(vector));
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
        Code::Floats(unit)
    }
}

/// The reciprocal of the vector's length; 1 where it has none.
fn unit_factor(vector: &[f32]) -> f32 {
    let norm = norm(vector);
    if norm > 0.0 { 1.0 / norm } else { 1.0 }
}

fn bits(vector: &[f32]) -> Code {
    let byte = |part: &[f32]| (0..8u8).zip(part).fold(0, |byte, (at, &value)| byte | u8::from(value > 0.0) << at);
    Code::Bits(vector.chunks(8).map(|part| b1x8(byte(part))).collect())
}

fn bytes(vector: &[f32], factor: f32) -> Code {
    Code::Bytes(vector.iter().map(|value| (value * factor).round().clamp(-INT8_MAX, INT8_MAX) as i8).collect())
}

fn max_element(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0, |max, value| value.abs().max(max))
}

/// The factor that brings `value` to 127; 1 for zero.
fn int8_factor(value: f32) -> f32 {
    if value > 0.0 { (INT8_MAX / value).clamp(f32::MIN_POSITIVE, f32::MAX) } else { 1.0 }
}

/// The power of two that brings `value` into 0.5..1; 1 for zero.
pub(super) fn power_of_two_below_inverse(value: f32) -> f32 {
    if value > 0.0 { (-(value.log2().floor() + 1.0)).clamp(-100.0, 100.0).exp2() } else { 1.0 }
}
