//! Queries: what is searched for, resolved against the schema.

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::{KeywordQuery, VectorQuery};
use antiphon_proto::v1::{Keyword, Operator, Schema, Syntax, Vector, VectorField};
use antiphon_proto::vector;

use super::document::vector_kind;

/// Most terms of a keyword query, and as many unless it says otherwise.
pub const MAX_TERMS: u32 = 64;
/// A query text is read up to so many bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The vector field that a query names, or the only one. `path` is what stands before the names of the query's fields in
/// errors: nothing, or `queries[3].`.
///
/// # Errors
/// FIELD_UNKNOWN; FIELD_AMBIGUOUS where none is named and the schema has none or several.
pub fn vector_field<'a>(path: &str, name: &str, schema: &'a Schema) -> Result<(u32, &'a VectorField), ApiError> {
    let at = || format!("{path}vector_field");
    let found = if name.is_empty() {
        match schema.vectors.as_slice() {
            [only] => Some((0, only)),
            fields => {
                let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
                let words = match names.as_slice() {
                    [] => "the schema has no vector field".to_owned(),
                    _ => format!("the schema has several vector fields: {}; name one", names.join(", ")),
                };
                return Err(ApiError::field(ErrorKind::FieldAmbiguous, at(), words));
            }
        }
    } else {
        schema.vectors.iter().enumerate().find(|(_, field)| field.name == name)
    };
    found.map(|(index, field)| (index as u32, field)).ok_or_else(|| {
        ApiError::field(ErrorKind::FieldUnknown, at(), format!("the schema has no vector field {name:?}"))
    })
}

/// How deep graphs are searched, besides what a field's settings say: the same for every page.
#[derive(Debug, Clone, Copy)]
pub struct Depth {
    /// Candidates of any graph at least.
    pub least: usize,
    /// Shards that the collection's documents are spread over.
    pub num_shards: u32,
}

/// A vector query against its field. `path` as for [`vector_field`].
///
/// # Errors
/// QUERY_EMPTY, DIMENSION_MISMATCH, NOT_FINITE, ZERO_VECTOR, and those of [`vector_field`].
pub fn vector_query(
    path: &str,
    sent: Option<&Vector>,
    field_name: &str,
    exact: bool,
    depth: Depth,
    schema: &Schema,
) -> Result<VectorQuery, ApiError> {
    let (field, spec) = vector_field(path, field_name, schema)?;
    let at = || format!("{path}vector");
    let sent = sent
        .filter(|sent| sent.kind.is_some())
        .ok_or_else(|| ApiError::field(ErrorKind::QueryEmpty, at(), "no vector was sent"))?;
    let values = vector::components(sent)
        .and_then(|values| {
            vector::validate(&values, spec.dimensions as usize, spec.metric())?;
            Ok(values)
        })
        .map_err(|fault| ApiError::field(vector_kind(&fault), at(), fault.to_string()))?;
    let expansion = spec.hnsw.unwrap_or_default().expansion_search;
    let least = depth.least as u32;
    // A shard holds a random share of the documents, so fewer of the nearest. See ADR 8.
    let share = f64::from(expansion) * f64::from(depth.num_shards.max(1)).recip().sqrt();
    let (min_depth, depth) = (least, least.max(share.ceil() as u32));
    Ok(VectorQuery { field, vector: vector::to_le_bytes(&values), exact, depth, min_depth })
}

/// A keyword query against its fields. Any text will do. `path` as for [`vector_field`].
///
/// # Errors
/// FIELD_UNKNOWN; FIELD_AMBIGUOUS where the schema has no text field; ARGUMENT_INVALID for options out of bounds.
pub fn keyword_query(
    path: &str,
    text: &str,
    field_names: &[String],
    options: Option<&Keyword>,
    schema: &Schema,
    warnings: &mut Vec<String>,
) -> Result<KeywordQuery, ApiError> {
    if schema.texts.is_empty() {
        let words = "the schema has no text field";
        return Err(ApiError::field(ErrorKind::FieldAmbiguous, format!("{path}text_fields"), words));
    }
    let mut fields = Vec::new();
    for (index, name) in field_names.iter().enumerate() {
        let found = schema.texts.iter().position(|field| field.name == *name).ok_or_else(|| {
            ApiError::field(
                ErrorKind::FieldUnknown,
                format!("{path}text_fields[{index}]"),
                format!("the schema has no text field {name:?}"),
            )
        })?;
        fields.push(found as u32);
    }
    if fields.is_empty() {
        fields = (0..schema.texts.len() as u32).collect();
    }
    fields.sort_unstable();
    fields.dedup();
    let options = options.copied().unwrap_or_default();
    let operator = Operator::try_from(options.operator).map_err(|_| {
        let words = format!("{} is unknown to this release", options.operator);
        ApiError::field(ErrorKind::ArgumentInvalid, format!("{path}keyword.operator"), words)
    })?;
    if options.max_terms > MAX_TERMS {
        let words = format!("{} is too many; at most {MAX_TERMS}", options.max_terms);
        return Err(ApiError::field(ErrorKind::ArgumentInvalid, format!("{path}keyword.max_terms"), words));
    }
    let syntax = Syntax::try_from(options.syntax).map_err(|_| {
        let words = format!("{} is unknown to this release", options.syntax);
        ApiError::field(ErrorKind::ArgumentInvalid, format!("{path}keyword.syntax"), words)
    })?;
    if syntax == Syntax::Query {
        for (name, value) in [("max_terms", options.max_terms), ("min_term_chars", options.min_term_chars)] {
            if value != 0 {
                let words = "with SYNTAX_QUERY every term counts";
                return Err(ApiError::field(ErrorKind::ArgumentInvalid, format!("{path}keyword.{name}"), words));
            }
        }
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES.min(text.len()));
    if end < text.len() {
        warnings.push(format!("{path}text: only the first {end} bytes of the query text were searched for"));
    }
    let boosts = fields.iter().filter_map(|field| Some(schema.texts.get(*field as usize)?.boost)).collect();
    Ok(KeywordQuery {
        text: text[..end].to_owned(),
        fields,
        operator: operator as i32,
        max_terms: if options.max_terms == 0 { MAX_TERMS } else { options.max_terms },
        min_term_chars: options.min_term_chars.max(1),
        plan: None,
        syntax: syntax as i32,
        path: format!("{path}text"),
        boosts,
    })
}
