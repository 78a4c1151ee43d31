//! What of a stored document is returned: the fields asked for, strings cut to so many characters.

use antiphon_proto::internal::Projection;
use antiphon_proto::v1::{Document, Value, value::Kind};

/// Lists and maps deeper than this are not cut further; writers refuse them anyway.
const MAX_DEPTH: usize = 64;

/// The projection of a document's fields.
pub(crate) fn project(mut document: Document, projection: &Projection) -> Document {
    if !projection.fields.is_empty() {
        document.fields.retain(|name, _| projection.fields.iter().any(|field| field == name));
    }
    if projection.text_limit > 0 {
        let limit = projection.text_limit as usize;
        document.fields.values_mut().for_each(|value| cut(value, limit, MAX_DEPTH));
    }
    document
}

fn cut(value: &mut Value, limit: usize, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match &mut value.kind {
        Some(Kind::String(text)) => {
            if let Some((end, _)) = text.char_indices().nth(limit) {
                text.truncate(end);
            }
        }
        Some(Kind::List(list)) => list.values.iter_mut().for_each(|value| cut(value, limit, depth)),
        Some(Kind::Map(map)) => map.fields.values_mut().for_each(|value| cut(value, limit, depth)),
        Some(Kind::Null(_) | Kind::Bool(_) | Kind::Int64(_) | Kind::Double(_) | Kind::Timestamp(_)) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value { kind: Some(Kind::String(text.into())) }
    }

    #[test]
    fn strings_are_cut_by_code_points_and_other_fields_left_out() {
        let fields = [("a", text("北京大学")), ("b", text("ab")), ("c", text("x"))];
        let document =
            Document { fields: fields.map(|(name, value)| (name.into(), value)).into(), ..Document::default() };
        let projection = Projection { fields: vec!["a".into(), "b".into()], text_limit: 2, include_vectors: false };
        let projected = project(document, &projection);
        assert_eq!(projected.fields, [("a", text("北京")), ("b", text("ab"))].map(|(n, v)| (n.into(), v)).into());
    }
}
