//! Documents and keys as they are written and read.

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::{Document, Schema, Value, value::Kind};
use antiphon_proto::vector::{self, VectorFault};
use antiphon_proto::{attribute, filter, key};
use prost::Message;

use super::Faults;

/// Most documents in one request.
const MAX_DOCUMENTS: usize = 10_000;
/// Largest document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 8 << 20;
/// How deep values nest. A timestamp, a message of its own, counts as one level. 32 levels of maps take 96 of the 100 levels
/// of messages that protobuf's readers follow, and the documents' wrappers in the log and in answers the other 4.
const MAX_DEPTH: usize = 32;
/// Most fields of one document.
const MAX_FIELDS: usize = 1_000;
/// Longest name of a field, in bytes.
const MAX_FIELD_NAME_BYTES: usize = 256;

/// Checks documents and gives those without a key one.
///
/// # Errors
/// The first fault's kind, with a violation for each fault; TOO_LARGE for a document beyond the bound.
pub fn check_documents(documents: &mut [Document], schema: &Schema) -> Result<(), ApiError> {
    count("documents", documents.len(), MAX_DOCUMENTS)?;
    let mut faults = Faults::default();
    for (index, document) in documents.iter_mut().enumerate() {
        let bytes = document.encoded_len();
        if bytes > MAX_DOCUMENT_BYTES {
            return Err(ApiError::new(
                ErrorKind::TooLarge,
                format!("documents[{index}] has {bytes} bytes; a document may have {MAX_DOCUMENT_BYTES}"),
            ));
        }
        if document.key.is_empty() {
            document.key = ulid::Ulid::generate().to_string().to_lowercase();
        } else if let Some(fault) = key_fault(&document.key) {
            faults.add(ErrorKind::KeyInvalid, format!("documents[{index}].key"), fault);
        }
        check_vectors(index, document, schema, &mut faults);
        check_fields(index, document, schema, &mut faults);
    }
    faults.into_result()
}

/// Checks keys that name documents.
///
/// # Errors
/// KEY_INVALID; ARGUMENT_INVALID for none or too many.
pub fn check_keys(keys: &[String], most: usize) -> Result<(), ApiError> {
    if keys.is_empty() {
        return Err(ApiError::field(ErrorKind::ArgumentInvalid, "keys", "none were sent"));
    }
    count("keys", keys.len(), most)?;
    let mut faults = Faults::default();
    for (index, key) in keys.iter().enumerate() {
        if let Some(fault) = key_fault(key) {
            faults.add(ErrorKind::KeyInvalid, format!("keys[{index}]"), fault);
        }
    }
    faults.into_result()
}

fn count(what: &str, count: usize, most: usize) -> Result<(), ApiError> {
    if count > most {
        return Err(ApiError::field(
            ErrorKind::ArgumentInvalid,
            what,
            format!("{count} were sent; one request takes at most {most}"),
        ));
    }
    Ok(())
}

fn key_fault(key: &str) -> Option<String> {
    if key::is_blank(key) {
        Some("the key consists of white space alone, or of nothing".into())
    } else if key.len() > key::MAX_KEY_BYTES {
        Some(format!("the key has {} bytes; a key may have {}", key.len(), key::MAX_KEY_BYTES))
    } else {
        None
    }
}

fn check_vectors(index: usize, document: &Document, schema: &Schema, faults: &mut Faults) {
    for (name, sent) in &document.vectors {
        let path = format!("documents[{index}].vectors[{name:?}]");
        let Some(field) = schema.vectors.iter().find(|field| field.name == *name) else {
            faults.add(ErrorKind::FieldUnknown, path, "the schema has no vector field of that name");
            continue;
        };
        let outcome = vector::components(sent)
            .and_then(|values| vector::validate(&values, field.dimensions as usize, field.metric()));
        if let Err(fault) = outcome {
            faults.add(vector_kind(&fault), path, fault.to_string());
        }
    }
}

/// The kind that callers are told of a vector's fault.
pub(super) fn vector_kind(fault: &VectorFault) -> ErrorKind {
    match fault {
        VectorFault::Empty | VectorFault::Ragged { .. } | VectorFault::Dimensions { .. } => {
            ErrorKind::DimensionMismatch
        }
        VectorFault::NotFinite { .. } | VectorFault::TooLong => ErrorKind::NotFinite,
        VectorFault::Zero => ErrorKind::ZeroVector,
    }
}

fn check_fields(index: usize, document: &Document, schema: &Schema, faults: &mut Faults) {
    if document.fields.len() > MAX_FIELDS {
        let words = format!("the document has {} fields; it may have {MAX_FIELDS}", document.fields.len());
        faults.add(ErrorKind::ArgumentInvalid, format!("documents[{index}].fields"), words);
    }
    for (name, value) in &document.fields {
        let path = || format!("documents[{index}].fields[{name:?}]");
        if name.is_empty() || name.len() > MAX_FIELD_NAME_BYTES {
            let words = format!("the name has {} bytes; a field's name has 1 to {MAX_FIELD_NAME_BYTES}", name.len());
            faults.add(ErrorKind::ArgumentInvalid, path(), words);
        }
        if depth(value, MAX_DEPTH).is_none() {
            faults.add(
                ErrorKind::ArgumentInvalid,
                path(),
                format!("lists and maps nest more than {MAX_DEPTH} deep (a timestamp counts as one level)"),
            );
        } else if schema.texts.iter().any(|field| field.name == *name) && !is_text(value) {
            faults.add(ErrorKind::FieldType, path(), "a text field holds a string or a list of strings");
        } else if let Some(declared) = schema.attributes.iter().find(|attribute| attribute.name == *name)
            && let Err(fault) = attribute::check(value, declared.r#type())
        {
            faults.add(filter::kind_of(&fault), path(), format!("attribute {name:?}: {fault}"));
        }
    }
}

fn is_text(value: &Value) -> bool {
    match &value.kind {
        None | Some(Kind::Null(_) | Kind::String(_)) => true,
        Some(Kind::List(list)) => list.values.iter().all(|value| matches!(value.kind, Some(Kind::String(_)))),
        Some(Kind::Bool(_) | Kind::Int64(_) | Kind::Double(_) | Kind::Timestamp(_) | Kind::Map(_)) => false,
    }
}

/// How much of `left` a value leaves; none where it is deeper.
fn depth(value: &Value, left: usize) -> Option<usize> {
    match &value.kind {
        Some(Kind::List(list)) => {
            let left = left.checked_sub(1)?;
            list.values.iter().try_fold(left, |least, value| Some(depth(value, left)?.min(least)))
        }
        Some(Kind::Map(map)) => {
            let left = left.checked_sub(1)?;
            map.fields.values().try_fold(left, |least, value| Some(depth(value, left)?.min(least)))
        }
        Some(Kind::Timestamp(_)) => left.checked_sub(1),
        None | Some(Kind::Null(_) | Kind::Bool(_) | Kind::Int64(_) | Kind::Double(_) | Kind::String(_)) => Some(left),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use antiphon_proto::v1::{AttributeField, AttributeType, TextField, ValueList, VectorField};

    fn schema() -> Schema {
        Schema {
            vectors: vec![VectorField { name: "v".into(), dimensions: 2, ..VectorField::default() }],
            texts: vec![TextField { name: "t".into(), ..TextField::default() }],
            attributes: vec![AttributeField { name: "a".into(), r#type: AttributeType::Double.into() }],
            key_case: 0,
        }
    }

    fn value(kind: Kind) -> Value {
        Value { kind: Some(kind) }
    }

    fn fault_of(document: Document) -> Option<ErrorKind> {
        check_documents(&mut [document], &schema()).err().map(|error| error.kind())
    }

    #[test]
    fn each_fault_has_its_kind() {
        let with_key = |key: &str| Document { key: key.into(), ..Document::default() };
        let with_vector = |name: &str, values: &[f32]| Document {
            vectors: [(name.to_owned(), vector::to_proto(values))].into(),
            ..with_key("k")
        };
        let with_field = |kind| Document { fields: [("t".to_owned(), value(kind))].into(), ..with_key("k") };
        assert_eq!(fault_of(with_key("k")), None);
        assert_eq!(fault_of(with_key("")), None);
        assert_eq!(fault_of(with_key(" \t\u{a0}")), Some(ErrorKind::KeyInvalid));
        assert_eq!(fault_of(with_key(&"k".repeat(1025))), Some(ErrorKind::KeyInvalid));
        assert_eq!(fault_of(with_vector("w", &[1.0, 2.0])), Some(ErrorKind::FieldUnknown));
        assert_eq!(fault_of(with_vector("v", &[1.0])), Some(ErrorKind::DimensionMismatch));
        assert_eq!(fault_of(with_vector("v", &[])), Some(ErrorKind::DimensionMismatch));
        assert_eq!(fault_of(with_vector("v", &[1.0, f32::NAN])), Some(ErrorKind::NotFinite));
        assert_eq!(fault_of(with_vector("v", &[0.0, 0.0])), Some(ErrorKind::ZeroVector));
        assert_eq!(fault_of(with_field(Kind::Int64(1))), Some(ErrorKind::FieldType));
        assert_eq!(fault_of(with_field(Kind::String("x".into()))), None);
        let with_attribute = |kind| Document { fields: [("a".to_owned(), value(kind))].into(), ..with_key("k") };
        let list = |kinds: Vec<Kind>| Kind::List(ValueList { values: kinds.into_iter().map(value).collect() });
        assert_eq!(fault_of(with_attribute(Kind::Null(0))), None);
        assert_eq!(fault_of(with_attribute(Kind::Double(1.5))), None);
        assert_eq!(fault_of(with_attribute(list(vec![Kind::Double(1.5), Kind::Double(-0.0)]))), None);
        assert_eq!(fault_of(with_attribute(Kind::Int64(1))), Some(ErrorKind::FieldType));
        assert_eq!(fault_of(with_attribute(list(vec![Kind::Double(1.5), Kind::Null(0)]))), Some(ErrorKind::FieldType));
        assert_eq!(fault_of(with_attribute(Kind::Double(f64::NAN))), Some(ErrorKind::NotFinite));
        assert_eq!(fault_of(with_field(Kind::String("x".repeat(9 << 20)))), Some(ErrorKind::TooLarge));
    }

    #[test]
    fn values_may_nest_so_deep_and_no_deeper() {
        let nested = |levels| {
            (0..levels).fold(value(Kind::Bool(true)), |inner, _| value(Kind::List(ValueList { values: vec![inner] })))
        };
        assert_eq!(depth(&nested(32), MAX_DEPTH), Some(0));
        assert_eq!(depth(&nested(33), MAX_DEPTH), None);
    }
}
