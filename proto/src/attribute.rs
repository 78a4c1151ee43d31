//! Values of attributes: which value fits which type, and the bytes that they are compared by.
//!
//! Invariant: of two values of one type, the lesser one has the lesser bytes, and equal values have equal bytes.

use prost_types::Timestamp;

use crate::v1::{AttributeType, Value, value::Kind};

/// Longest string of an attribute, in bytes.
pub const MAX_STRING_BYTES: usize = 4096;

/// Why a value is none of an attribute's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeFault {
    /// It is of another type.
    #[error("a value of the type {expected} is needed")]
    Type {
        /// The attribute's type.
        expected: &'static str,
    },
    /// It cannot be ordered.
    #[error("NaN is no value of an attribute")]
    NotANumber,
    /// It is too long a string.
    #[error("the string has {bytes} bytes; an attribute's may have {MAX_STRING_BYTES}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// It is no point in time.
    #[error("the timestamp's nanos are not from 0 to 999,999,999")]
    Nanos,
}

/// A type's name for people.
pub fn type_name(attribute_type: AttributeType) -> &'static str {
    match attribute_type {
        AttributeType::Unspecified => "unspecified",
        AttributeType::String => "string",
        AttributeType::Integer => "integer",
        AttributeType::Double => "double",
        AttributeType::Boolean => "boolean",
        AttributeType::Timestamp => "timestamp",
    }
}

/// The elements of a field's value: those of a list, or the one value; none for null.
pub fn elements(value: &Value) -> &[Value] {
    match &value.kind {
        None | Some(Kind::Null(_)) => &[],
        Some(Kind::List(list)) => &list.values,
        Some(_) => std::slice::from_ref(value),
    }
}

/// Whether a field is there and not null.
pub fn is_present(value: &Value) -> bool {
    !matches!(value.kind, None | Some(Kind::Null(_)))
}

/// Checks a document's value of an attribute: null, a value of the type, or a list of such.
///
/// # Errors
/// [`AttributeFault`] of the first element that does not fit.
pub fn check(value: &Value, attribute_type: AttributeType) -> Result<(), AttributeFault> {
    elements(value).iter().try_for_each(|element| sortable(element, attribute_type).map(drop))
}

/// The bytes that a single value is compared by.
///
/// # Errors
/// [`AttributeFault`]; lists, maps and null are of no attribute's type.
pub fn sortable(value: &Value, attribute_type: AttributeType) -> Result<Vec<u8>, AttributeFault> {
    match (&value.kind, attribute_type) {
        (Some(Kind::String(text)), AttributeType::String) => match text.len() {
            bytes if bytes > MAX_STRING_BYTES => Err(AttributeFault::TooLong { bytes }),
            _ => Ok(text.as_bytes().to_vec()),
        },
        (Some(Kind::Int64(number)), AttributeType::Integer) => Ok(sortable_integer(*number).to_vec()),
        (Some(Kind::Double(number)), AttributeType::Double) => match number.is_nan() {
            true => Err(AttributeFault::NotANumber),
            false => Ok(sortable_double(*number).to_vec()),
        },
        (Some(Kind::Bool(flag)), AttributeType::Boolean) => Ok(vec![u8::from(*flag)]),
        (Some(Kind::Timestamp(time)), AttributeType::Timestamp) => sortable_timestamp(time),
        _ => Err(AttributeFault::Type { expected: type_name(attribute_type) }),
    }
}

/// Big-endian with the sign bit turned over.
fn sortable_integer(number: i64) -> [u8; 8] {
    (number as u64 ^ 1 << 63).to_be_bytes()
}

/// The bits big-endian; all turned over below zero, else the sign bit alone.
fn sortable_double(number: f64) -> [u8; 8] {
    // Minus zero equals zero.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let ordered = if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 };
    ordered.to_be_bytes()
}

fn sortable_timestamp(time: &Timestamp) -> Result<Vec<u8>, AttributeFault> {
    let nanos = u32::try_from(time.nanos).ok().filter(|nanos| *nanos < 1_000_000_000).ok_or(AttributeFault::Nanos)?;
    Ok([sortable_integer(time.seconds).as_slice(), &nanos.to_be_bytes()].concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn bytes(kind: Kind, attribute_type: AttributeType) -> Result<Vec<u8>, AttributeFault> {
        sortable(&Value { kind: Some(kind) }, attribute_type)
    }

    #[test]
    fn bytes_ascend_with_values() {
        let integers = [i64::MIN, -2, -1, 0, 1, (1 << 53), (1 << 53) + 1, i64::MAX];
        let doubles = [f64::NEG_INFINITY, f64::MIN, -1.5, -1e-320, 0.0, 1e-320, 1.0, 1.5, f64::MAX, f64::INFINITY];
        let times = [(-62_135_596_800, 0), (-1, 999_999_999), (0, 0), (0, 1), (1, 0), (253_402_300_799, 999_999_999)];
        let all: [Vec<Vec<u8>>; 3] = [
            integers.map(|n| bytes(Kind::Int64(n), AttributeType::Integer).unwrap()).into(),
            doubles.map(|n| bytes(Kind::Double(n), AttributeType::Double).unwrap()).into(),
            times
                .map(|(seconds, nanos)| {
                    bytes(Kind::Timestamp(Timestamp { seconds, nanos }), AttributeType::Timestamp).unwrap()
                })
                .into(),
        ];
        for values in all {
            assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
        }
        assert_eq!(bytes(Kind::Double(-0.0), AttributeType::Double), bytes(Kind::Double(0.0), AttributeType::Double));
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let wrong = |kind, attribute_type| bytes(kind, attribute_type).unwrap_err();
        assert!(matches!(wrong(Kind::Int64(1), AttributeType::Double), AttributeFault::Type { expected: "double" }));
        assert!(matches!(wrong(Kind::Double(1.0), AttributeType::Integer), AttributeFault::Type { .. }));
        assert!(matches!(wrong(Kind::Null(0), AttributeType::String), AttributeFault::Type { .. }));
        assert_eq!(wrong(Kind::Double(f64::NAN), AttributeType::Double), AttributeFault::NotANumber);
        assert_eq!(
            wrong(Kind::String("x".repeat(4097)), AttributeType::String),
            AttributeFault::TooLong { bytes: 4097 }
        );
        let time = Kind::Timestamp(Timestamp { seconds: 0, nanos: -1 });
        assert_eq!(wrong(time, AttributeType::Timestamp), AttributeFault::Nanos);
    }
}
