//! Documents that come without a vector get one of their texts, where the field names an embedder.

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::{Document, Schema, VectorField};
use antiphon_proto::vector;
use antiphon_telemetry::phase;
use tracing::Instrument as _;

use super::{EmbedError, Embedders, Purpose};

/// Most bytes of vectors made for one request: what is made must be written in one piece.
const MAX_MADE_BYTES: usize = 64 << 20;

/// Gives documents the vectors that their texts have. Those with a vector keep it; those without texts get none.
///
/// # Errors
/// EMBEDDER_UNAVAILABLE, OVERLOADED, DEADLINE; TOO_LARGE where the vectors would be. Then no document of the request may be
/// written.
pub(crate) async fn embed_documents(
    embedders: &Embedders,
    schema: &Schema,
    documents: &mut [Document],
    deadline: Deadline,
) -> Result<(), ApiError> {
    let mut made_bytes = 0;
    for field in schema.vectors.iter().filter(|field| !field.embedder.is_empty()) {
        let texts: Vec<(usize, String)> = documents
            .iter()
            .enumerate()
            .filter(|(_, document)| !document.vectors.contains_key(&field.name))
            .filter_map(|(index, document)| Some((index, text_of(document, field, schema)?)))
            .collect();
        if texts.is_empty() {
            continue;
        }
        let failed = |error: EmbedError| error.to_api(&field.embedder);
        let model = embedders.get(&field.embedder).map_err(failed)?;
        made_bytes += texts.len() * model.dimensions() * size_of::<f32>();
        if made_bytes > MAX_MADE_BYTES {
            let words = format!(
                "the vectors to be made would have more than {MAX_MADE_BYTES} bytes: send fewer documents in one request"
            );
            return Err(ApiError::new(ErrorKind::TooLarge, words));
        }
        let borrowed: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
        let embedding = model.embed(&borrowed, Purpose::Document, deadline);
        let vectors = embedding.instrument(phase!("embed", texts = borrowed.len())).await.map_err(failed)?;
        for ((index, _), made) in texts.iter().zip(vectors) {
            let Some(made) = made else { continue };
            vector::validate(&made, field.dimensions as usize, field.metric())
                .map_err(|fault| failed(EmbedError::Answer(fault.to_string())))?;
            documents[*index].vectors.insert(field.name.clone(), vector::to_proto(&made));
        }
    }
    Ok(())
}

/// What a document's vector is made from: its texts in the order of the fields, joined by line breaks. None where all are
/// missing or blank.
fn text_of(document: &Document, field: &VectorField, schema: &Schema) -> Option<String> {
    let mut joined = String::new();
    let mut add = |text: &str| {
        if !text.trim().is_empty() {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push_str(text);
        }
    };
    let all = schema.texts.iter().map(|text| &text.name).filter(|_| field.embed_fields.is_empty());
    for name in field.embed_fields.iter().chain(all) {
        match document.fields.get(name).and_then(|value| value.kind.as_ref()) {
            Some(Kind::String(text)) => add(text),
            Some(Kind::List(list)) => list.values.iter().for_each(|value| {
                if let Some(Kind::String(text)) = &value.kind {
                    add(text);
                }
            }),
            // Validated to be neither, or absent.
            _ => {}
        }
    }
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_proto::v1::{TextField, Value, ValueList};

    fn value(kind: Kind) -> Value {
        Value { kind: Some(kind) }
    }

    fn text(text: &str) -> Value {
        value(Kind::String(text.into()))
    }

    #[test]
    fn texts_are_joined_in_the_order_of_the_fields() {
        let of = |name: &str| TextField { name: name.into(), ..TextField::default() };
        let schema = Schema { texts: vec![of("title"), of("body"), of("tags")], ..Schema::default() };
        let list = value(Kind::List(ValueList { values: vec![text("x"), text(" "), text("y")] }));
        let fields = [("body", text("b")), ("tags", list), ("title", text("t")), ("other", text("o"))];
        let document = Document {
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            ..Document::default()
        };
        let field = |names: &[&str]| VectorField {
            embed_fields: names.iter().map(|name| (*name).to_owned()).collect(),
            ..VectorField::default()
        };
        assert_eq!(text_of(&document, &field(&[]), &schema).as_deref(), Some("t\nb\nx\ny"));
        assert_eq!(text_of(&document, &field(&["body", "title"]), &schema).as_deref(), Some("b\nt"));
        assert_eq!(text_of(&Document::default(), &field(&[]), &schema), None);
        let blank = Document { fields: [("title".to_owned(), text(" \n"))].into(), ..Document::default() };
        assert_eq!(text_of(&blank, &field(&[]), &schema), None);
    }
}
