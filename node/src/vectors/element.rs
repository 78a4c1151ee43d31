//! What a graph holds of a vector: its element type, and when two vectors are the same to it.
//!
//! Not for scores, which never see rounded values. Invariant: vectors with equal [`ElementType::identity`] are held as
//! one node, so a graph never has to find one of hundreds of equal vectors.

use std::hash::{DefaultHasher, Hasher};

use half::{bf16, f16};

use crate::vectors::{Metric, metric};

/// The greatest number that an element of [`ElementType::Int8`] is.
pub(crate) const INT8_MAX: f32 = 127.0;

/// What a graph holds of an element of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary16.
    Float16,
    /// The upper half of a binary32.
    BFloat16,
    /// A whole number from −127 to 127, of a step that all vectors of a graph share.
    Int8,
    /// Whether it is above zero.
    Bit,
}

impl ElementType {
    /// The number that stands for the type in file headers.
    pub fn code(self) -> u8 {
        match self {
            Self::Float32 => 1,
            Self::Float16 => 2,
            Self::BFloat16 => 3,
            Self::Int8 => 4,
            Self::Bit => 5,
        }
    }

    /// The type of a file header's number.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Float32),
            2 => Some(Self::Float16),
            3 => Some(Self::BFloat16),
            4 => Some(Self::Int8),
            5 => Some(Self::Bit),
            _ => None,
        }
    }

    /// The nearest finite number of a float type, ties to even, as a float32 that converts to it exactly. Never −0.0.
    /// For the other types, which the encoder of a graph rounds by itself, the value.
    pub fn round(self, value: f32) -> f32 {
        let rounded = match self {
            Self::Float32 | Self::Int8 | Self::Bit => value,
            Self::Float16 => f16::from_f32(value.clamp(f16::MIN.to_f32(), f16::MAX.to_f32())).to_f32(),
            Self::BFloat16 => bf16::from_f32(value.clamp(bf16::MIN.to_f32(), bf16::MAX.to_f32())).to_f32(),
        };
        rounded + 0.0
    }

    /// The next number of this type away from zero (`longer`) or towards it, with the same sign; `None` for zero, at the
    /// ends of the range, and where a step would change the exponent range. Takes what [`ElementType::round`] gives.
    pub fn neighbor(self, value: f32, longer: bool) -> Option<f32> {
        // Float16 has wider steps below its smallest normal number.
        let (step, least) = match self {
            Self::Float32 | Self::Int8 | Self::Bit => (1, f32::MIN_POSITIVE),
            Self::Float16 => (1 << 13, f16::MIN_POSITIVE.to_f32()),
            Self::BFloat16 => (1 << 16, f32::MIN_POSITIVE),
        };
        let bits = value.to_bits();
        let moved = f32::from_bits(if longer { bits.checked_add(step)? } else { bits.checked_sub(step)? });
        let is_number = value.abs() >= least && moved.abs() >= least && moved.is_finite() && self.round(moved) == moved;
        is_number.then_some(moved)
    }

    /// A number that two vectors share if and, but for accidents, only if a graph of this type may hold them as one:
    ///
    /// - Float types: with [`Metric::Cosine`] where they are the same after normalisation and rounding, else after
    ///   rounding to the precision of the type. (The graph scales the vectors of those metrics into the type's range, so
    ///   the range does not matter.)
    /// - [`ElementType::Int8`], whose step is known only when all vectors are: with [`Metric::Cosine`] after rounding to
    ///   the widest step that a graph can have, 1/127 of the unit length; else as [`ElementType::BFloat16`].
    /// - [`ElementType::Bit`]: where they are above zero at the same places, whatever the metric.
    ///
    /// An accident, two of 2⁶⁴ numbers meeting, costs recall and nothing else: scores come from the rows.
    pub fn identity(self, metric: Metric, vector: &[f32]) -> u64 {
        let mut hasher = DefaultHasher::new();
        let mut write = |value: f32| hasher.write_u32(value.to_bits());
        if self == Self::Bit {
            vector.iter().for_each(|&value| write(f32::from(u8::from(value > 0.0))));
            return hasher.finish();
        }
        match metric {
            Metric::Cosine => {
                let factor = 1.0 / metric::norm(vector);
                vector.iter().for_each(|&value| write(self.round_unit(value * factor)));
            }
            Metric::Dot | Metric::Euclidean | Metric::Hamming => {
                vector.iter().for_each(|&value| write(self.round_precision(value)));
            }
        }
        hasher.finish()
    }

    /// Rounds an element of a unit vector.
    fn round_unit(self, value: f32) -> f32 {
        match self {
            Self::Int8 => (value * INT8_MAX).round() + 0.0,
            _ => self.round(value),
        }
    }

    /// Rounds to as many significant bits as this type has, keeping the exponent range of float32.
    fn round_precision(self, value: f32) -> f32 {
        let dropped_bits = match self {
            Self::Float32 => return value + 0.0,
            Self::Float16 => 13,
            Self::BFloat16 | Self::Int8 | Self::Bit => 16,
        };
        let bits = value.to_bits();
        let half_less_one = (1u32 << (dropped_bits - 1)) - 1;
        let odd = (bits >> dropped_bits) & 1;
        f32::from_bits(bits.wrapping_add(half_less_one + odd) & !((1u32 << dropped_bits) - 1)) + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ElementType; 3] = [ElementType::Float32, ElementType::Float16, ElementType::BFloat16];

    #[test]
    fn rounding_is_to_nearest_and_stays_finite() {
        assert_eq!(ElementType::BFloat16.round(1.0 + 1.0 / 256.0), 1.0);
        assert_eq!(ElementType::BFloat16.round(1.0 + 3.0 / 256.0), 1.0 + 4.0 / 256.0);
        assert_eq!(ElementType::Float16.round(1e9), 65504.0);
        assert_eq!(ElementType::BFloat16.round(f32::MAX), bf16::MAX.to_f32());
        for element in ALL {
            assert_eq!(element.round(-0.0).to_bits(), 0);
            let once = element.round(0.123_456_78);
            assert_eq!(element.round(once), once);
        }
    }

    #[test]
    fn neighbors_are_one_step_away() {
        assert_eq!(ElementType::BFloat16.neighbor(1.0, true), Some(1.0 + 1.0 / 128.0));
        assert_eq!(ElementType::BFloat16.neighbor(-1.0, false), Some(-1.0 + 1.0 / 256.0));
        assert_eq!(ElementType::Float16.neighbor(65504.0, true), None);
        for element in ALL {
            assert_eq!(element.neighbor(0.0, true), None);
            let longer = element.neighbor(0.375, true).unwrap_or_default();
            assert_eq!(element.neighbor(longer, false), Some(0.375));
        }
    }

    #[test]
    fn precision_is_rounded_as_the_type_rounds() {
        for seed in 0..10_000u32 {
            let value = (seed.wrapping_mul(2_654_435_761) >> 8) as f32 / 16_777_216.0 * 4.0 - 2.0;
            for element in ALL {
                if value.abs() > 1e-4 {
                    assert_eq!(element.round_precision(value), element.round(value), "{value} {element:?}");
                }
            }
        }
        assert!(ElementType::Float16.round_precision(1e30) > 0.9e30);
    }

    #[test]
    fn identity_ignores_what_the_graph_ignores() {
        let row = [0.3f32, -0.7, 0.2];
        let scaled = [0.6f32, -1.4, 0.4];
        let near = [0.3f32 + 1e-7, -0.7, 0.2];
        for element in ALL {
            assert_eq!(element.identity(Metric::Cosine, &row), element.identity(Metric::Cosine, &scaled));
            assert_ne!(element.identity(Metric::Dot, &row), element.identity(Metric::Dot, &scaled));
            let same = element.identity(Metric::Euclidean, &row) == element.identity(Metric::Euclidean, &near);
            assert_eq!(same, element != ElementType::Float32);
            assert_eq!(element.identity(Metric::Dot, &[0.0, 1.0]), element.identity(Metric::Dot, &[-0.0, 1.0]));
        }
    }

    #[test]
    fn identity_of_codes_is_as_coarse_as_they_may_be() {
        let row = [0.3f32, -0.7, 0.2];
        let (longer, near, other) = ([0.6f32, -1.4, 0.4], [0.3001f32, -0.7, 0.2], [0.35f32, -0.7, 0.2]);
        let int8 = |metric, vector: &[f32]| ElementType::Int8.identity(metric, vector);
        assert_eq!(int8(Metric::Cosine, &row), int8(Metric::Cosine, &longer));
        assert_eq!(int8(Metric::Cosine, &row), int8(Metric::Cosine, &near));
        assert_ne!(int8(Metric::Cosine, &row), int8(Metric::Cosine, &other));
        assert_ne!(int8(Metric::Euclidean, &row), int8(Metric::Euclidean, &longer));
        for metric in [Metric::Cosine, Metric::Dot, Metric::Euclidean, Metric::Hamming] {
            let bit = |vector: &[f32]| ElementType::Bit.identity(metric, vector);
            assert_eq!(bit(&row), bit(&[1.0, -0.0, 9.0]));
            assert_ne!(bit(&row), bit(&[1.0, 1.0, 9.0]));
        }
    }

    #[test]
    fn codes_lead_back() {
        for element in ALL {
            assert_eq!(ElementType::from_code(element.code()), Some(element));
        }
        for element in [ElementType::Int8, ElementType::Bit] {
            assert_eq!(ElementType::from_code(element.code()), Some(element));
        }
        assert_eq!(ElementType::from_code(9), None);
    }
}
