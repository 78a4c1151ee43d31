//! A collection's schema, resolved once: what each index needs to know of its field.

use std::collections::BTreeMap;

use antiphon_proto::key::KeyRule;
use antiphon_proto::v1::{self, value::Kind};

use crate::graph::{ElementType, GraphParams};
use crate::text::{Analyzer, TextFieldSpec};
use crate::vectors::Metric;

/// Edges of a graph node unless the schema says otherwise.
pub const DEFAULT_CONNECTIVITY: u32 = 16;
/// Candidates kept while building unless the schema says otherwise.
pub const DEFAULT_EXPANSION_ADD: u32 = 128;

/// Why a schema cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum SchemaFault {
    /// An analyzer that this release does not have.
    #[error("text field {field:?} has the unknown analyzer {analyzer:?}")]
    UnknownAnalyzer {
        /// The field.
        field: String,
        /// The analyzer's name.
        analyzer: String,
    },
    /// A type of attributes that this release does not have.
    #[error("attribute {field:?} has an unknown type")]
    UnknownAttributeType {
        /// The attribute.
        field: String,
    },
    /// A metric or element type that this release does not have, or two that do not go together.
    #[error("vector field {field:?} has a metric or element type that is unknown, or two that do not go together")]
    UnknownVectorType {
        /// The field.
        field: String,
    },
}

/// One vector field.
#[derive(Debug, Clone)]
pub struct VectorFieldSpec {
    /// Its name.
    pub name: String,
    /// What its graphs are built with.
    pub graph: GraphParams,
}

/// One text field.
#[derive(Clone)]
pub struct TextField {
    /// What its index is built with.
    pub spec: TextFieldSpec,
    /// Turns text into terms.
    pub analyzer: Analyzer,
    /// Multiplies its scores.
    pub boost: f32,
}

/// A schema as a shard uses it. Fields are named by their index.
#[derive(Clone)]
pub struct ShardSchema {
    /// How often fields were added; those stand behind the ones that were there.
    pub version: u32,
    /// What one key is.
    pub key_rule: KeyRule,
    /// Vector fields in the schema's order.
    pub vectors: Vec<VectorFieldSpec>,
    /// Text fields in the schema's order.
    pub texts: Vec<TextField>,
    /// The text fields' specs alone.
    pub text_specs: Vec<TextFieldSpec>,
    /// Attributes in the schema's order.
    pub attributes: Vec<v1::AttributeField>,
}

impl ShardSchema {
    /// Resolves a schema to which nothing was added.
    ///
    /// # Errors
    /// [`SchemaFault`] where it names what this release does not have.
    pub fn resolve(schema: &v1::Schema) -> Result<Self, SchemaFault> {
        Self::resolve_version(schema, 0)
    }

    /// Resolves a version of a schema.
    ///
    /// # Errors
    /// [`SchemaFault`] where it names what this release does not have.
    pub fn resolve_version(schema: &v1::Schema, version: u32) -> Result<Self, SchemaFault> {
        let vectors = schema.vectors.iter().map(resolve_vector).collect::<Result<_, _>>()?;
        let texts: Vec<TextField> = schema.texts.iter().map(resolve_text).collect::<Result<_, _>>()?;
        let text_specs = texts.iter().map(|field| field.spec.clone()).collect();
        for attribute in &schema.attributes {
            if attribute.r#type() == v1::AttributeType::Unspecified {
                return Err(SchemaFault::UnknownAttributeType { field: attribute.name.clone() });
            }
        }
        let (key_rule, attributes) = (KeyRule::of(schema.key_case()), schema.attributes.clone());
        Ok(Self { version, key_rule, vectors, texts, text_specs, attributes })
    }
}

fn resolve_vector(field: &v1::VectorField) -> Result<VectorFieldSpec, SchemaFault> {
    let unknown = || SchemaFault::UnknownVectorType { field: field.name.clone() };
    let element = match v1::ElementType::try_from(field.element_type).map_err(|_| unknown())? {
        v1::ElementType::Unspecified | v1::ElementType::Bfloat16 => ElementType::BFloat16,
        v1::ElementType::Float16 => ElementType::Float16,
        v1::ElementType::Float32 => ElementType::Float32,
        v1::ElementType::Int8 => ElementType::Int8,
        v1::ElementType::Bit => ElementType::Bit,
    };
    let metric = match v1::Metric::try_from(field.metric).map_err(|_| unknown())? {
        v1::Metric::Unspecified if element == ElementType::Bit => Metric::Hamming,
        v1::Metric::Unspecified | v1::Metric::Cosine => Metric::Cosine,
        v1::Metric::Dot => Metric::Dot,
        v1::Metric::Euclidean => Metric::Euclidean,
        v1::Metric::Hamming if element == ElementType::Bit => Metric::Hamming,
        v1::Metric::Hamming => return Err(unknown()),
    };
    let hnsw = field.hnsw.unwrap_or_default();
    let or_default = |value: u32, default: u32| (if value == 0 { default } else { value }) as usize;
    Ok(VectorFieldSpec {
        name: field.name.clone(),
        graph: GraphParams {
            dims: field.dimensions as usize,
            metric,
            element,
            connectivity: or_default(hnsw.connectivity, DEFAULT_CONNECTIVITY),
            expansion_add: or_default(hnsw.expansion_add, DEFAULT_EXPANSION_ADD),
        },
    })
}

fn resolve_text(field: &v1::TextField) -> Result<TextField, SchemaFault> {
    let analyzer = Analyzer::by_name(&field.analyzer)
        .ok_or_else(|| SchemaFault::UnknownAnalyzer { field: field.name.clone(), analyzer: field.analyzer.clone() })?;
    let boost = if field.boost == 0.0 { 1.0 } else { field.boost };
    Ok(TextField {
        spec: TextFieldSpec { name: field.name.clone(), analyzer: field.analyzer.clone() },
        analyzer,
        boost,
    })
}

/// The texts of one document for each text field: a string, or the strings of a list. Other values hold no text.
pub fn texts_of<'a>(fields: &'a BTreeMap<String, v1::Value>, specs: &[TextFieldSpec]) -> Vec<Vec<&'a str>> {
    specs.iter().map(|spec| fields.get(&spec.name).map(strings_of).unwrap_or_default()).collect()
}

fn strings_of(value: &v1::Value) -> Vec<&str> {
    match &value.kind {
        Some(Kind::String(text)) => vec![text],
        Some(Kind::List(list)) => list
            .values
            .iter()
            .filter_map(|value| match &value.kind {
                Some(Kind::String(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
