//! Vectors as they cross the wire: decoding and validation.
//!
//! INV-2: no vector or query that fails [`validate`] reaches a graph or a log.

use bytes::Bytes;

use crate::v1::{self, Metric};

/// Why a vector was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum VectorFault {
    /// No components were sent.
    #[error("the vector is empty")]
    Empty,
    /// `float32_le` does not hold whole numbers.
    #[error("float32_le has {len} bytes, which is no multiple of 4")]
    Ragged {
        /// Bytes sent.
        len: usize,
    },
    /// The field has another number of dimensions.
    #[error("the vector has {found} components, the field {expected} dimensions")]
    Dimensions {
        /// The schema's.
        expected: usize,
        /// The vector's.
        found: usize,
    },
    /// A component is NaN or infinite.
    #[error("component {index} (from 0) is NaN or infinite")]
    NotFinite {
        /// From 0.
        index: usize,
    },
    /// The squared length is beyond what float32 can add up.
    #[error("the vector is too long: its squared length overflows float32")]
    TooLong,
    /// A cosine needs a direction.
    #[error("the vector's length is zero or as good as (below 1e-15): it has no direction, which the cosine needs")]
    Zero,
}

/// The components of a vector, in whichever form they were sent.
///
/// # Errors
/// [`VectorFault::Empty`] and [`VectorFault::Ragged`].
pub fn components(vector: &v1::Vector) -> Result<Vec<f32>, VectorFault> {
    let values = match &vector.kind {
        None => return Err(VectorFault::Empty),
        Some(v1::vector::Kind::Floats(floats)) => floats.values.clone(),
        Some(v1::vector::Kind::Float32Le(bytes)) => from_le_bytes(bytes)?,
    };
    if values.is_empty() { Err(VectorFault::Empty) } else { Ok(values) }
}

/// Little-endian binary32 to floats.
///
/// # Errors
/// [`VectorFault::Ragged`] where the length is no multiple of 4.
pub fn from_le_bytes(bytes: &[u8]) -> Result<Vec<f32>, VectorFault> {
    let (words, rest) = bytes.as_chunks::<4>();
    if rest.is_empty() {
        Ok(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
    } else {
        Err(VectorFault::Ragged { len: bytes.len() })
    }
}

/// Floats to little-endian binary32.
pub fn to_le_bytes(values: &[f32]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
}

/// The wire form of a vector.
pub fn to_proto(values: &[f32]) -> v1::Vector {
    v1::Vector { kind: Some(v1::vector::Kind::Float32Le(to_le_bytes(values))) }
}

/// Checks a vector against its field: dimensions, finite components, a squared length that float32 can hold with room
/// for the distance of two, and for the cosine a length that is not zero.
///
/// # Errors
/// The first fault found.
pub fn validate(values: &[f32], dimensions: usize, metric: Metric) -> Result<(), VectorFault> {
    if values.len() != dimensions {
        return Err(VectorFault::Dimensions { expected: dimensions, found: values.len() });
    }
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(VectorFault::NotFinite { index });
    }
    let squared_length: f64 = values.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    if squared_length > f64::from(f32::MAX) / 8.0 {
        return Err(VectorFault::TooLong);
    }
    let is_cosine = matches!(metric, Metric::Cosine | Metric::Unspecified);
    if is_cosine && squared_length < 1e-30 {
        return Err(VectorFault::Zero);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_named() {
        assert_eq!(validate(&[1.0], 2, Metric::Dot), Err(VectorFault::Dimensions { expected: 2, found: 1 }));
        assert_eq!(validate(&[0.0, f32::NAN], 2, Metric::Dot), Err(VectorFault::NotFinite { index: 1 }));
        assert_eq!(validate(&[f32::INFINITY], 1, Metric::Dot), Err(VectorFault::NotFinite { index: 0 }));
        assert_eq!(validate(&[1e20], 1, Metric::Dot), Err(VectorFault::TooLong));
        assert_eq!(validate(&[0.0, -0.0], 2, Metric::Cosine), Err(VectorFault::Zero));
        assert_eq!(validate(&[1e-30], 1, Metric::Cosine), Err(VectorFault::Zero));
        assert_eq!(validate(&[0.0, 0.0], 2, Metric::Euclidean), Ok(()));
        assert_eq!(from_le_bytes(&[0; 5]), Err(VectorFault::Ragged { len: 5 }));
    }

    #[test]
    fn both_forms_hold_the_same_components() {
        let values = vec![1.5, -2.25, 0.0];
        let floats = v1::Vector { kind: Some(v1::vector::Kind::Floats(v1::Floats { values: values.clone() })) };
        assert_eq!(components(&floats), Ok(values.clone()));
        assert_eq!(components(&to_proto(&values)), Ok(values));
        assert_eq!(components(&v1::Vector { kind: None }), Err(VectorFault::Empty));
    }
}
