//! A line of JSON to a document, in one pass.
//!
//! Whole numbers become int64, other numbers double; a whole number between 2^63 and 2^64 is refused rather than rounded.
//! Lists and objects nest at most [`MAX_DEPTH`] deep, as the API allows; deeper ones would make the whole message
//! unreadable to the server.

use std::collections::BTreeMap;
use std::fmt;

use antiphon_proto::{v1, vector};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use v1::value::Kind;

/// How deep lists and objects of a field nest.
pub(crate) const MAX_DEPTH: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    vectors: BTreeMap<String, Vec<f32>>,
    #[serde(default)]
    fields: BTreeMap<String, Field>,
}

/// Reads a document. A key that is missing or null is left empty.
///
/// # Errors
/// Why the line is no document, in words with a column.
pub(crate) fn parse_document(line: &[u8]) -> Result<v1::Document, String> {
    // A struct could also be read from a JSON list.
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err("is not a JSON object".to_owned());
    }
    let line: Line = serde_json::from_slice(line).map_err(|error| words(&error))?;
    for (name, values) in &line.vectors {
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(format!("vectors.{name}: component {index} is beyond what a 32-bit float holds"));
        }
    }
    Ok(v1::Document {
        key: line.key.unwrap_or_default(),
        vectors: line.vectors.into_iter().map(|(name, values)| (name, vector::to_proto(&values))).collect(),
        fields: line.fields.into_iter().map(|(name, field)| (name, field.0)).collect(),
    })
}

/// serde_json's message; the line it counts is always 1, so the column alone is told.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    if error.column() > 0 { format!("{what} at column {}", error.column()) } else { what.to_owned() }
}

struct Field(v1::Value);

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        At { depth: 0 }.deserialize(deserializer).map(Self)
    }
}

/// A value within so many lists and objects.
#[derive(Clone, Copy)]
struct At {
    depth: usize,
}

impl At {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth < MAX_DEPTH {
            Ok(Self { depth: self.depth + 1 })
        } else {
            Err(E::custom(format_args!("lists and objects nest more than {MAX_DEPTH} deep")))
        }
    }
}

fn value(kind: Kind) -> v1::Value {
    v1::Value { kind: Some(kind) }
}

impl<'de> DeserializeSeed<'de> for At {
    type Value = v1::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<v1::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At {
    type Value = v1::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<v1::Value, E> {
        Ok(value(Kind::Null(0)))
    }

    fn visit_bool<E: Error>(self, v: bool) -> Result<v1::Value, E> {
        Ok(value(Kind::Bool(v)))
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<v1::Value, E> {
        Ok(value(Kind::Int64(v)))
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<v1::Value, E> {
        i64::try_from(v).map(|v| value(Kind::Int64(v))).map_err(|_| {
            E::custom(format_args!("the whole number {v} is beyond 64 bits with a sign; write it as a string"))
        })
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<v1::Value, E> {
        Ok(value(Kind::Double(v)))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<v1::Value, E> {
        self.visit_string(v.to_owned())
    }

    fn visit_string<E: Error>(self, v: String) -> Result<v1::Value, E> {
        Ok(value(Kind::String(v)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<v1::Value, A::Error> {
        let inner = self.deeper()?;
        let mut values = Vec::new();
        while let Some(element) = seq.next_element_seed(inner)? {
            values.push(element);
        }
        Ok(value(Kind::List(v1::ValueList { values })))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<v1::Value, A::Error> {
        let inner = self.deeper()?;
        let mut fields = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            fields.insert(name, map.next_value_seed(inner)?);
        }
        Ok(value(Kind::Map(v1::ValueMap { fields })))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn parse(line: &str) -> Result<v1::Document, String> {
        parse_document(line.as_bytes())
    }

    #[test]
    fn values_keep_their_types() {
        let document = parse(
            r#" {"key":"a","vectors":{"v":[1,0.5,-2e0]},"fields":{"n":null,"t":true,"i":-9223372036854775808,
                "big":9223372036854775807,"d":1.0,"e":1e3,"s":"\u00e4","l":[1,[2.5]],"m":{"x":{"y":null}}}}"#,
        )
        .unwrap();
        assert_eq!(document.key, "a");
        assert_eq!(vector::components(&document.vectors["v"]).unwrap(), [1.0, 0.5, -2.0]);
        let kind = |name: &str| document.fields[name].kind.clone().unwrap();
        assert_eq!(kind("n"), Kind::Null(0));
        assert_eq!(kind("t"), Kind::Bool(true));
        assert_eq!(kind("i"), Kind::Int64(i64::MIN));
        assert_eq!(kind("big"), Kind::Int64(i64::MAX));
        assert_eq!(kind("d"), Kind::Double(1.0));
        assert_eq!(kind("e"), Kind::Double(1000.0));
        assert_eq!(kind("s"), Kind::String("ä".to_owned()));
        let Kind::List(list) = kind("l") else { panic!("{:?}", kind("l")) };
        assert_eq!(list.values[0].kind, Some(Kind::Int64(1)));
        assert!(matches!(&list.values[1].kind, Some(Kind::List(inner)) if inner.values.len() == 1));
        assert!(matches!(kind("m"), Kind::Map(map) if matches!(&map.fields["x"].kind, Some(Kind::Map(_)))));
    }

    #[test]
    fn everything_may_be_left_out() {
        assert_eq!(parse("{}").unwrap(), v1::Document::default());
        assert_eq!(parse(r#"{"key":null}"#).unwrap().key, "");
    }

    #[test]
    fn what_is_no_document_is_refused_in_words() {
        for (line, reason) in [
            ("", "is not a JSON object"),
            ("[\"a\",{},{}]", "is not a JSON object"),
            ("null", "is not a JSON object"),
            ("{", "EOF while parsing an object at column 1"),
            ("{} {}", "trailing characters at column 4"),
            (r#"{"key":1}"#, "invalid type: integer `1`, expected a string at column 8"),
            (r#"{"id":"a"}"#, "unknown field `id`"),
            (r#"{"vectors":{"v":"x"}}"#, "expected a sequence"),
            (r#"{"vectors":{"v":[1,"x"]}}"#, "expected f32"),
            (r#"{"vectors":{"v":[1,1e39]}}"#, "vectors.v: component 1 is beyond"),
            (r#"{"fields":[]}"#, "expected a map"),
            (r#"{"fields":{"n":9223372036854775808}}"#, "9223372036854775808 is beyond 64 bits"),
            (r#"{"fields":{"n":NaN}}"#, "expected value at column"),
            (r#"{"key":"a","key":"b"}"#, "duplicate field `key`"),
        ] {
            let found = parse(line).unwrap_err();
            assert!(found.contains(reason), "{line}: {found}");
            assert!(!found.contains("line 1"), "{line}: {found}");
        }
        assert!(parse_document(b"{\"key\":\"\xff\"}").unwrap_err().contains("unicode"));
    }

    #[test]
    fn nesting_ends_at_the_depth_of_the_api() {
        let nested = |depth: usize| format!("{{\"fields\":{{\"f\":{}{}}}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(parse(&nested(MAX_DEPTH + 1)).unwrap_err().contains("nest more than 32 deep"));
        assert!(parse(&nested(100_000)).is_err());
    }
}
