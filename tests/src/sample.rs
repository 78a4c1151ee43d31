//! Short ways to write documents, schemas and requests.

use antiphon_proto::v1::*;
use antiphon_proto::vector;

pub fn text(text: &str) -> Value {
    Value { kind: Some(value::Kind::String(text.into())) }
}

/// A document with the vector `v` and the text `t`; empty ones are left out.
pub fn document(key: &str, values: &[f32], words: &str) -> Document {
    let mut document = Document { key: key.into(), ..Document::default() };
    if !values.is_empty() {
        document.vectors.insert("v".into(), vector::to_proto(values));
    }
    if !words.is_empty() {
        document.fields.insert("t".into(), text(words));
    }
    document
}

/// A schema with the vector field `v` and the text field `t`. Graphs hold bits for the metric that is theirs.
pub fn schema(dimensions: u32, metric: Metric) -> Schema {
    let element = if metric == Metric::Hamming { ElementType::Bit } else { ElementType::Unspecified };
    let vector = VectorField { name: "v".into(), dimensions, ..VectorField::default() };
    Schema {
        vectors: vec![VectorField { metric: metric.into(), element_type: element.into(), ..vector }],
        texts: vec![TextField { name: "t".into(), analyzer: "standard".into(), boost: 1.0 }],
        ..Schema::default()
    }
}

pub fn collection(name: &str, shard_count: u32, schema: Schema) -> Collection {
    Collection { name: name.into(), shard_count, schema: Some(schema), ..Collection::default() }
}

pub fn options(collection: &str, page: u32, page_size: u32) -> SearchOptions {
    SearchOptions { collection: collection.into(), page, page_size, ..SearchOptions::default() }
}

pub fn vector_search(values: &[f32], options: SearchOptions) -> SearchVectorRequest {
    SearchVectorRequest {
        vector: Some(vector::to_proto(values)),
        options: Some(options),
        ..SearchVectorRequest::default()
    }
}

pub fn keyword_search(words: &str, options: SearchOptions) -> SearchKeywordRequest {
    SearchKeywordRequest { text: words.into(), options: Some(options), ..SearchKeywordRequest::default() }
}

pub fn hybrid_search(values: &[f32], words: &str, options: SearchOptions) -> SearchHybridRequest {
    SearchHybridRequest {
        vector: Some(vector::to_proto(values)),
        text: words.into(),
        options: Some(options),
        ..SearchHybridRequest::default()
    }
}

pub fn text_search(words: &str, options: SearchOptions) -> SearchTextRequest {
    SearchTextRequest { text: words.into(), options: Some(options), ..SearchTextRequest::default() }
}

pub fn hybrid_text_search(words: &str, options: SearchOptions) -> SearchHybridTextRequest {
    SearchHybridTextRequest { text: words.into(), options: Some(options), ..SearchHybridTextRequest::default() }
}

/// The keys of an answer, in order.
pub fn keys(response: &SearchResponse) -> Vec<&str> {
    response.matches.iter().map(|found| found.key.as_str()).collect()
}

/// An answer without what differs from call to call.
pub fn comparable(mut response: SearchResponse) -> SearchResponse {
    response.snapshot.clear();
    response
}
