//! Messages of the API as JSON, in the form that `import` reads.
//!
//! Times become RFC 3339 strings, numbers that JSON lacks (NaN, infinity) null.

use std::collections::BTreeMap;

use antiphon_proto::v1::{self, value::Kind};
use serde::{Serialize, Serializer};

/// A document as an import reads it.
#[derive(Debug, Serialize)]
pub(crate) struct DocumentJson<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    vectors: BTreeMap<&'a str, Vec<f32>>,
    fields: BTreeMap<&'a str, ValueJson<'a>>,
}

impl<'a> From<&'a v1::Document> for DocumentJson<'a> {
    fn from(document: &'a v1::Document) -> Self {
        let components = |vector| antiphon_proto::vector::components(vector).unwrap_or_default();
        Self {
            key: &document.key,
            vectors: document.vectors.iter().map(|(name, vector)| (name.as_str(), components(vector))).collect(),
            fields: document.fields.iter().map(|(name, value)| (name.as_str(), ValueJson(value))).collect(),
        }
    }
}

#[derive(Debug)]
struct ValueJson<'a>(&'a v1::Value);

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.kind {
            None | Some(Kind::Null(_)) => serializer.serialize_unit(),
            Some(Kind::Bool(value)) => serializer.serialize_bool(*value),
            Some(Kind::Int64(value)) => serializer.serialize_i64(*value),
            Some(Kind::Double(value)) => serializer.serialize_f64(*value),
            Some(Kind::String(value)) => serializer.serialize_str(value),
            Some(Kind::Timestamp(value)) => serializer.collect_str(value),
            Some(Kind::List(list)) => serializer.collect_seq(list.values.iter().map(ValueJson)),
            Some(Kind::Map(map)) => {
                serializer.collect_map(map.fields.iter().map(|(name, value)| (name, ValueJson(value))))
            }
        }
    }
}

/// A collection.
#[derive(Debug, Serialize)]
pub(crate) struct CollectionJson<'a> {
    name: &'a str,
    uid: &'a str,
    shard_count: u32,
    replica_count: u32,
    create_time: Option<String>,
    num_docs: u64,
    num_deleted: u64,
    num_segments: u64,
    size_bytes: u64,
    vectors: Vec<VectorFieldJson<'a>>,
    texts: Vec<TextFieldJson<'a>>,
    attributes: Vec<AttributeJson<'a>>,
    case_sensitive: bool,
}

#[derive(Debug, Serialize)]
struct VectorFieldJson<'a> {
    name: &'a str,
    dimensions: u32,
    metric: &'static str,
    element: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    embedder: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    embed_fields: &'a [String],
}

#[derive(Debug, Serialize)]
struct AttributeJson<'a> {
    name: &'a str,
    r#type: &'static str,
}

#[derive(Debug, Serialize)]
struct TextFieldJson<'a> {
    name: &'a str,
    analyzer: &'a str,
    /// As the shortest decimal that gives the float32.
    boost: f64,
}

impl<'a> From<&'a v1::Collection> for CollectionJson<'a> {
    fn from(collection: &'a v1::Collection) -> Self {
        let schema = collection.schema.as_ref();
        Self {
            name: &collection.name,
            uid: &collection.uid,
            shard_count: collection.shard_count,
            replica_count: collection.replica_count,
            create_time: collection.create_time.as_ref().map(ToString::to_string),
            num_docs: collection.num_docs,
            num_deleted: collection.num_deleted,
            num_segments: collection.num_segments,
            size_bytes: collection.size_bytes,
            vectors: schema
                .map(|schema| schema.vectors.iter().map(VectorFieldJson::from).collect())
                .unwrap_or_default(),
            texts: schema.map(|schema| schema.texts.iter().map(TextFieldJson::from).collect()).unwrap_or_default(),
            attributes: schema
                .map(|schema| schema.attributes.iter().map(AttributeJson::from).collect())
                .unwrap_or_default(),
            case_sensitive: schema.is_some_and(|schema| schema.key_case() == v1::KeyCase::CaseSensitive),
        }
    }
}

impl<'a> From<&'a v1::VectorField> for VectorFieldJson<'a> {
    fn from(field: &'a v1::VectorField) -> Self {
        Self {
            name: &field.name,
            dimensions: field.dimensions,
            metric: match field.metric() {
                v1::Metric::Unspecified | v1::Metric::Cosine => "cosine",
                v1::Metric::Dot => "dot",
                v1::Metric::Euclidean => "euclidean",
                v1::Metric::Hamming => "hamming",
            },
            element: match field.element_type() {
                v1::ElementType::Float32 => "float32",
                v1::ElementType::Float16 => "float16",
                v1::ElementType::Int8 => "int8",
                v1::ElementType::Bit => "bit",
                v1::ElementType::Unspecified | v1::ElementType::Bfloat16 => "bfloat16",
            },
            embedder: &field.embedder,
            embed_fields: &field.embed_fields,
        }
    }
}

impl<'a> From<&'a v1::AttributeField> for AttributeJson<'a> {
    fn from(field: &'a v1::AttributeField) -> Self {
        Self { name: &field.name, r#type: antiphon_proto::attribute::type_name(field.r#type()) }
    }
}

impl<'a> From<&'a v1::TextField> for TextFieldJson<'a> {
    fn from(field: &'a v1::TextField) -> Self {
        let analyzer = if field.analyzer.is_empty() { "standard" } else { &field.analyzer };
        Self { name: &field.name, analyzer, boost: shortest(if field.boost == 0.0 { 1.0 } else { field.boost }) }
    }
}

/// A double that is written as the float32 would be: 0.1 rather than 0.10000000149011612.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| f64::from(value))
}

impl CollectionJson<'_> {
    /// The fields in words, as `collection create` reads them.
    pub(crate) fn schema_words(&self) -> Vec<String> {
        let vectors = self
            .vectors
            .iter()
            .map(|field| format!("--vector {}:{}:{}:{}", field.name, field.dimensions, field.metric, field.element));
        let embedders = self.vectors.iter().filter(|field| !field.embedder.is_empty()).map(|field| {
            let texts = if field.embed_fields.is_empty() {
                String::new()
            } else {
                format!(":{}", field.embed_fields.join(","))
            };
            format!("--embedder {}={}{texts}", field.name, field.embedder)
        });
        let texts = self.texts.iter().map(|field| format!("--text {}:{}:{}", field.name, field.analyzer, field.boost));
        let case = self.case_sensitive.then(|| "--case-sensitive".to_owned());
        let attributes = self.attributes.iter().map(|field| format!("--attribute {}:{}", field.name, field.r#type));
        vectors.chain(embedders).chain(texts).chain(attributes).chain(case).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::import::parse_document;

    #[test]
    fn what_is_printed_can_be_imported() {
        let line = r#"{"key":"a","vectors":{"use":[0.1,-2.0]},"fields":{"d":1.5,"l":[1,"x",null,{"m":true}],"n":9007199254740993}}"#;
        let document = parse_document(line.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&DocumentJson::from(&document)).unwrap(), line);
    }

    #[test]
    fn times_are_rfc_3339() {
        let time = v1::Value { kind: Some(Kind::Timestamp(prost_types::Timestamp { seconds: 0, nanos: 5_000_000 })) };
        assert_eq!(serde_json::to_string(&ValueJson(&time)).unwrap(), r#""1970-01-01T00:00:00.005Z""#);
    }
}
