//! Collections as they are created.

use std::collections::HashSet;

use antiphon_proto::analyzers;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::{AttributeType, Collection, ElementType, KeyCase, Metric, Schema, TextField, VectorField};

use super::{Faults, is_name};
use crate::embed::Embedders;

const MAX_SHARDS: u32 = 256;
const MAX_REPLICAS: u32 = 8;
const MAX_VECTOR_FIELDS: usize = 16;
const MAX_TEXT_FIELDS: usize = 64;
const MAX_ATTRIBUTES: usize = 64;
const MAX_DIMENSIONS: u32 = 65_536;

/// Checks a collection, fills in its defaults and clears what only the server sets. Its vector fields may name these
/// embedders.
///
/// # Errors
/// SCHEMA_INVALID with a violation for each fault.
pub fn check_collection(collection: Collection, embedders: &Embedders) -> Result<Collection, ApiError> {
    let mut faults = Faults::default();
    let mut fault = |field: String, description: String| faults.add(ErrorKind::SchemaInvalid, field, description);
    if !is_name(&collection.name) {
        fault("collection.name".into(), format!("{:?} is not of the form [a-z0-9_-]{{1,64}}", collection.name));
    }
    let shard_count = collection.shard_count.max(1);
    if shard_count > MAX_SHARDS {
        fault("collection.shard_count".into(), format!("{shard_count} is too many; at most {MAX_SHARDS}"));
    }
    let replica_count = collection.replica_count.max(1);
    if replica_count > MAX_REPLICAS {
        fault("collection.replica_count".into(), format!("{replica_count} is too many; at most {MAX_REPLICAS}"));
    }
    let schema = collection.schema.unwrap_or_default();
    check_schema(&schema, &mut fault);
    check_embedders(&schema, embedders, &mut fault);
    faults.into_result()?;
    Ok(Collection {
        name: collection.name,
        uid: String::new(),
        schema: Some(with_defaults(schema)),
        shard_count,
        replica_count,
        create_time: None,
        num_docs: 0,
        num_deleted: 0,
        num_segments: 0,
        size_bytes: 0,
    })
}

/// Checks the name of an alias, which is of the form of a collection's.
///
/// # Errors
/// SCHEMA_INVALID.
pub fn check_alias(name: &str) -> Result<(), ApiError> {
    if is_name(name) {
        return Ok(());
    }
    Err(ApiError::field(ErrorKind::SchemaInvalid, "name", format!("{name:?} is not of the form [a-z0-9_-]{{1,64}}")))
}

fn check_schema(schema: &Schema, fault: &mut impl FnMut(String, String)) {
    if schema.vectors.len() > MAX_VECTOR_FIELDS {
        fault(
            "collection.schema.vectors".into(),
            format!("{} vector fields are too many; at most {MAX_VECTOR_FIELDS}", schema.vectors.len()),
        );
    }
    if schema.texts.len() > MAX_TEXT_FIELDS {
        fault(
            "collection.schema.texts".into(),
            format!("{} text fields are too many; at most {MAX_TEXT_FIELDS}", schema.texts.len()),
        );
    }
    if KeyCase::try_from(schema.key_case).is_err() {
        fault("collection.schema.key_case".into(), format!("{} is unknown to this release", schema.key_case));
    }
    let mut names = HashSet::new();
    let mut check_name = |path: String, name: &str, fault: &mut dyn FnMut(String, String)| {
        if !is_name(name) {
            fault(format!("{path}.name"), format!("{name:?} is not of the form [a-z0-9_-]{{1,64}}"));
        } else if !names.insert(name.to_owned()) {
            fault(format!("{path}.name"), format!("{name:?} is the name of another field"));
        }
    };
    for (index, field) in schema.vectors.iter().enumerate() {
        let path = format!("collection.schema.vectors[{index}]");
        check_name(path.clone(), &field.name, fault);
        check_vector_field(&path, field, fault);
    }
    for (index, field) in schema.texts.iter().enumerate() {
        let path = format!("collection.schema.texts[{index}]");
        check_name(path.clone(), &field.name, fault);
        check_text_field(&path, field, fault);
    }
    check_attributes(schema, fault);
}

fn check_attributes(schema: &Schema, fault: &mut impl FnMut(String, String)) {
    if schema.attributes.len() > MAX_ATTRIBUTES {
        fault(
            "collection.schema.attributes".into(),
            format!("{} attributes are too many; at most {MAX_ATTRIBUTES}", schema.attributes.len()),
        );
    }
    let mut names = HashSet::new();
    for (index, attribute) in schema.attributes.iter().enumerate() {
        let (path, name) = (format!("collection.schema.attributes[{index}]"), attribute.name.as_str());
        if !is_name(name) {
            fault(format!("{path}.name"), format!("{name:?} is not of the form [a-z0-9_-]{{1,64}}"));
        } else if !names.insert(name) {
            fault(format!("{path}.name"), format!("{name:?} is the name of another attribute"));
        } else if schema.vectors.iter().any(|field| field.name == name) {
            fault(format!("{path}.name"), format!("{name:?} is the name of a vector field"));
        }
        let is_text = schema.texts.iter().any(|field| field.name == name);
        match AttributeType::try_from(attribute.r#type) {
            Err(_) => fault(format!("{path}.type"), format!("{} is unknown to this release", attribute.r#type)),
            Ok(AttributeType::Unspecified) => fault(format!("{path}.type"), "an attribute needs a type".into()),
            Ok(AttributeType::String) => {}
            Ok(_) if is_text => {
                fault(format!("{path}.type"), format!("{name:?} is a text field too, and so holds strings"));
            }
            Ok(_) => {}
        }
    }
}

fn check_vector_field(path: &str, field: &VectorField, fault: &mut impl FnMut(String, String)) {
    if !(1..=MAX_DIMENSIONS).contains(&field.dimensions) {
        fault(format!("{path}.dimensions"), format!("{} is not from 1 to {MAX_DIMENSIONS}", field.dimensions));
    }
    if Metric::try_from(field.metric).is_err() {
        fault(format!("{path}.metric"), format!("{} is unknown to this release", field.metric));
    }
    if ElementType::try_from(field.element_type).is_err() {
        fault(format!("{path}.element_type"), format!("{} is unknown to this release", field.element_type));
    }
    if field.metric() == Metric::Hamming && field.element_type() != ElementType::Bit {
        let words = "the Hamming distance compares bits: it needs ELEMENT_TYPE_BIT".to_owned();
        fault(format!("{path}.metric"), words);
    }
    let hnsw = field.hnsw.unwrap_or_default();
    let bounds = [
        ("connectivity", hnsw.connectivity, 4, 128),
        ("expansion_add", hnsw.expansion_add, 16, 4096),
        ("expansion_search", hnsw.expansion_search, 16, 4096),
    ];
    for (name, value, least, most) in bounds {
        if value != 0 && !(least..=most).contains(&value) {
            fault(format!("{path}.hnsw.{name}"), format!("{value} is not from {least} to {most}"));
        }
    }
}

fn check_embedders(schema: &Schema, embedders: &Embedders, fault: &mut impl FnMut(String, String)) {
    for (index, field) in schema.vectors.iter().enumerate() {
        let path = format!("collection.schema.vectors[{index}]");
        check_embed_fields(&path, field, schema, fault);
        if field.embedder.is_empty() {
            continue;
        }
        match embedders.find(&field.embedder) {
            None => {
                let known: Vec<_> = embedders.iter().map(|model| model.name.as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                fault(
                    format!("{path}.embedder"),
                    format!("there is no embedder {:?}; there are {known}", field.embedder),
                );
            }
            Some(model) if model.dimensions() != field.dimensions as usize => {
                let words = format!("the embedder {:?} has {} dimensions", field.embedder, model.dimensions());
                fault(format!("{path}.dimensions"), words);
            }
            Some(_) => {}
        }
    }
}

fn check_embed_fields(path: &str, field: &VectorField, schema: &Schema, fault: &mut impl FnMut(String, String)) {
    if field.embedder.is_empty() && !field.embed_fields.is_empty() {
        fault(format!("{path}.embed_fields"), "there is no embedder to make vectors of them".into());
    }
    if field.embed_fields.len() > MAX_TEXT_FIELDS {
        let words = format!("{} fields are too many; at most {MAX_TEXT_FIELDS}", field.embed_fields.len());
        return fault(format!("{path}.embed_fields"), words);
    }
    let mut seen = HashSet::new();
    for (index, name) in field.embed_fields.iter().enumerate() {
        if !schema.texts.iter().any(|text| text.name == *name) {
            fault(format!("{path}.embed_fields[{index}]"), format!("the schema has no text field {name:?}"));
        } else if !seen.insert(name) {
            fault(format!("{path}.embed_fields[{index}]"), format!("{name:?} is there twice"));
        }
    }
}

fn check_text_field(path: &str, field: &TextField, fault: &mut impl FnMut(String, String)) {
    if !analyzers::is_known(&field.analyzer) {
        let known = analyzers::NAMES.join(", ");
        fault(format!("{path}.analyzer"), format!("there is no analyzer {:?}; there are {known}", field.analyzer));
    }
    if !field.boost.is_finite() || field.boost < 0.0 || field.boost > 1000.0 {
        fault(format!("{path}.boost"), format!("{} is not above 0 and at most 1000", field.boost));
    }
}

fn with_defaults(mut schema: Schema) -> Schema {
    if schema.key_case() == KeyCase::Unspecified {
        schema.set_key_case(KeyCase::CaseInsensitive);
    }
    for field in &mut schema.vectors {
        if field.metric() == Metric::Unspecified {
            let of_bits = field.element_type() == ElementType::Bit;
            field.set_metric(if of_bits { Metric::Hamming } else { Metric::Cosine });
        }
        if field.element_type() == ElementType::Unspecified {
            field.set_element_type(ElementType::Bfloat16);
        }
        let hnsw = field.hnsw.get_or_insert_default();
        let defaults =
            [(&mut hnsw.connectivity, 16), (&mut hnsw.expansion_add, 128), (&mut hnsw.expansion_search, 384)];
        for (value, default) in defaults {
            if *value == 0 {
                *value = default;
            }
        }
    }
    for field in &mut schema.texts {
        if field.analyzer.is_empty() {
            field.analyzer = "standard".into();
        }
        if field.boost == 0.0 {
            field.boost = 1.0;
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use antiphon_proto::v1::AttributeField;

    fn attribute(name: &str, of: AttributeType) -> AttributeField {
        AttributeField { name: name.into(), r#type: of.into() }
    }

    fn vector(name: &str, dimensions: u32) -> VectorField {
        VectorField { name: name.into(), dimensions, ..VectorField::default() }
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let schema = Schema {
            vectors: vec![vector("v", 0), vector("v", 65_537), VectorField { metric: 99, ..vector("w", 2) }],
            texts: vec![TextField { name: "Ü".into(), analyzer: "klingon".into(), boost: f32::NAN }],
            attributes: vec![
                attribute("v", AttributeType::String),
                attribute("a", AttributeType::Integer),
                attribute("a", AttributeType::Integer),
                attribute("b", AttributeType::Unspecified),
                AttributeField { name: "c".into(), r#type: 99 },
            ],
            key_case: 7,
        };
        let collection =
            Collection { name: "Bad Name".into(), shard_count: 257, schema: Some(schema), ..Collection::default() };
        let error = check_collection(collection, &Embedders::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaInvalid);
        assert_eq!(error.violations().len(), 14, "{:#?}", error.violations());
    }

    #[test]
    fn defaults_are_filled_in() {
        let schema = Schema {
            vectors: vec![vector("v", 2)],
            texts: vec![TextField { name: "t".into(), ..TextField::default() }],
            ..Schema::default()
        };
        let collection = Collection { name: "c".into(), schema: Some(schema), ..Collection::default() };
        let checked = check_collection(collection, &Embedders::default()).unwrap();
        let schema = checked.schema.unwrap();
        assert_eq!((checked.shard_count, checked.replica_count), (1, 1));
        assert_eq!(schema.vectors[0].hnsw.unwrap().expansion_search, 384);
        assert_eq!((schema.texts[0].analyzer.as_str(), schema.texts[0].boost), ("standard", 1.0));
    }

    #[test]
    fn bits_are_compared_by_hamming_distance_and_nothing_else_is() {
        let check = |metric: Metric, element: ElementType| {
            let field = VectorField { metric: metric.into(), element_type: element.into(), ..vector("v", 2) };
            let schema = Schema { vectors: vec![field], ..Schema::default() };
            let collection = Collection { name: "c".into(), schema: Some(schema), ..Collection::default() };
            let checked = check_collection(collection, &Embedders::default());
            checked
                .map(|checked| checked.schema.unwrap().vectors[0].metric())
                .map_err(|error| error.violations().to_vec())
        };
        assert_eq!(check(Metric::Unspecified, ElementType::Bit).unwrap(), Metric::Hamming);
        assert_eq!(check(Metric::Hamming, ElementType::Bit).unwrap(), Metric::Hamming);
        assert_eq!(check(Metric::Cosine, ElementType::Bit).unwrap(), Metric::Cosine);
        assert_eq!(check(Metric::Unspecified, ElementType::Int8).unwrap(), Metric::Cosine);
        for element in [ElementType::Unspecified, ElementType::Int8, ElementType::Float32] {
            let violations = check(Metric::Hamming, element).unwrap_err();
            assert_eq!((violations.len(), violations[0].field.as_str()), (1, "collection.schema.vectors[0].metric"));
        }
    }

    #[test]
    fn an_embedder_must_be_there_and_its_texts_too() {
        let field = |embedder: &str, fields: &[&str]| VectorField {
            embedder: embedder.into(),
            embed_fields: fields.iter().map(|name| (*name).to_owned()).collect(),
            ..vector("v", 2)
        };
        let violations = |field: VectorField| -> Vec<String> {
            let texts = vec![TextField { name: "t".into(), ..TextField::default() }];
            let schema = Schema { vectors: vec![field], texts, ..Schema::default() };
            let collection = Collection { name: "c".into(), schema: Some(schema), ..Collection::default() };
            let outcome = check_collection(collection, &Embedders::default());
            outcome
                .map_or_else(|error| error.violations().iter().map(|found| found.field.clone()).collect(), |_| vec![])
        };
        let path = "collection.schema.vectors[0]";
        assert_eq!(violations(field("", &[])), [""; 0]);
        assert_eq!(violations(field("m", &["t"])), [format!("{path}.embedder")]);
        assert_eq!(violations(field("", &["t"])), [format!("{path}.embed_fields")]);
        let wrong = violations(field("m", &["t", "u", "t"]));
        assert_eq!(
            wrong,
            [format!("{path}.embed_fields[1]"), format!("{path}.embed_fields[2]"), format!("{path}.embedder")]
        );
    }
}
