//! What a collection becomes when it is updated: a pure function of what it is and what is wanted.
//!
//! Added fields stand behind those that were there, whatever the order in the request: nodes name fields by their place.

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::{Collection, KeyCase, Schema, TextField, VectorField};

use super::check_collection;
use crate::embed::Embedders;

/// A collection after an update.
#[derive(Debug, Clone, PartialEq)]
pub struct Updated {
    /// As it is then.
    pub collection: Collection,
    /// Whether its schema has more fields than before.
    pub adds_fields: bool,
}

/// What `current` becomes when `wanted` is asked for. What `wanted` leaves out stays as it is.
///
/// # Errors
/// SCHEMA_CONFLICT with a reason for each field that would have to change and cannot; SCHEMA_INVALID where the result
/// would not be well formed.
pub fn updated(current: &Collection, wanted: &Collection, embedders: &Embedders) -> Result<Updated, ApiError> {
    let mut conflicts = Conflicts::default();
    conflicts.check("collection.uid", &current.uid, &wanted.uid);
    conflicts.check("collection.shard_count", &current.shard_count, &wanted.shard_count);
    let old = current.schema.clone().unwrap_or_default();
    let mut schema = wanted.schema.clone().unwrap_or_else(|| old.clone());
    if schema.key_case() == KeyCase::Unspecified {
        schema.key_case = old.key_case;
    }
    conflicts.check("collection.schema.key_case", &old.key_case, &schema.key_case);
    for field in &old.vectors {
        let path = format!("collection.schema.vectors[{:?}]", field.name);
        match schema.vectors.iter_mut().find(|wanted| wanted.name == field.name) {
            Some(wanted) => conflicts.keep_vector(&path, field, wanted),
            None => conflicts.add(path, "a field cannot be removed"),
        }
    }
    for field in &old.texts {
        let path = format!("collection.schema.texts[{:?}]", field.name);
        match schema.texts.iter_mut().find(|wanted| wanted.name == field.name) {
            Some(wanted) => conflicts.keep_text(&path, field, wanted),
            None => conflicts.add(path, "a field cannot be removed"),
        }
    }
    for field in &old.attributes {
        let path = format!("collection.schema.attributes[{:?}]", field.name);
        match schema.attributes.iter_mut().find(|wanted| wanted.name == field.name) {
            Some(wanted) => {
                conflicts.check(&format!("{path}.type"), &field.r#type, &wanted.r#type);
                wanted.r#type = field.r#type;
            }
            None => conflicts.add(path, "a field cannot be removed"),
        }
    }
    conflicts.into_result()?;
    let adds_fields = schema.vectors.len() > old.vectors.len()
        || schema.texts.len() > old.texts.len()
        || schema.attributes.len() > old.attributes.len();
    let replica_count = if wanted.replica_count == 0 { current.replica_count } else { wanted.replica_count };
    let whole = Collection { name: current.name.clone(), schema: Some(schema), replica_count, ..current.clone() };
    let checked = check_collection(whole, embedders)?;
    let schema = checked.schema.map(|schema| Schema {
        vectors: in_order(schema.vectors, |field| old.vectors.iter().position(|before| before.name == field.name)),
        texts: in_order(schema.texts, |field| old.texts.iter().position(|before| before.name == field.name)),
        attributes: in_order(schema.attributes, |field| {
            old.attributes.iter().position(|before| before.name == field.name)
        }),
        ..schema
    });
    Ok(Updated { collection: Collection { schema, replica_count, ..current.clone() }, adds_fields })
}

/// Fields that were there in their old order, new ones behind them as they were sent.
fn in_order<F>(mut fields: Vec<F>, place: impl Fn(&F) -> Option<usize>) -> Vec<F> {
    fields.sort_by_key(|field| place(field).unwrap_or(usize::MAX));
    fields
}

#[derive(Default)]
struct Conflicts(Vec<(String, String)>);

impl Conflicts {
    fn add(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.0.push((path.into(), reason.into()));
    }

    /// A value that cannot change: left out, or the same.
    fn check<V: PartialEq + Default + std::fmt::Debug>(&mut self, path: &str, current: &V, wanted: &V) {
        if *wanted != V::default() && wanted != current {
            self.add(path, format!("is {current:?} and cannot become {wanted:?}"));
        }
    }

    fn keep_vector(&mut self, path: &str, current: &VectorField, wanted: &mut VectorField) {
        self.check(&format!("{path}.dimensions"), &current.dimensions, &wanted.dimensions);
        self.check(&format!("{path}.metric"), &current.metric, &wanted.metric);
        self.check(&format!("{path}.element_type"), &current.element_type, &wanted.element_type);
        let (before, asked) = (current.hnsw.unwrap_or_default(), wanted.hnsw.unwrap_or_default());
        self.check(&format!("{path}.hnsw.connectivity"), &before.connectivity, &asked.connectivity);
        self.check(&format!("{path}.hnsw.expansion_add"), &before.expansion_add, &asked.expansion_add);
        let mut hnsw = before;
        if asked.expansion_search != 0 {
            hnsw.expansion_search = asked.expansion_search;
        }
        // A field that had no embedder may get one: it makes vectors from then on.
        let (mut embedder, mut embed_fields) = (current.embedder.clone(), current.embed_fields.clone());
        if embedder.is_empty() && !wanted.embedder.is_empty() {
            (embedder, embed_fields) = (wanted.embedder.clone(), wanted.embed_fields.clone());
        } else {
            self.check(&format!("{path}.embedder"), &current.embedder, &wanted.embedder);
            self.check(&format!("{path}.embed_fields"), &current.embed_fields, &wanted.embed_fields);
        }
        *wanted = VectorField { hnsw: Some(hnsw), embedder, embed_fields, ..current.clone() };
    }

    fn keep_text(&mut self, path: &str, current: &TextField, wanted: &mut TextField) {
        self.check(&format!("{path}.analyzer"), &current.analyzer, &wanted.analyzer);
        let boost = if wanted.boost == 0.0 { current.boost } else { wanted.boost };
        *wanted = TextField { boost, ..current.clone() };
    }

    fn into_result(self) -> Result<(), ApiError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let words: Vec<String> = self.0.iter().map(|(path, reason)| format!("{path}: {reason}")).collect();
        let error = ApiError::new(ErrorKind::SchemaConflict, words.join("; "));
        Err(self.0.into_iter().take(20).fold(error, |error, (path, reason)| error.with_metadata(path, reason)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use antiphon_proto::v1::{AttributeField, AttributeType, ElementType, Hnsw, Metric};

    use super::*;

    fn vector(name: &str) -> VectorField {
        VectorField { name: name.into(), dimensions: 4, ..VectorField::default() }
    }

    fn text(name: &str) -> TextField {
        TextField { name: name.into(), ..TextField::default() }
    }

    fn attribute(name: &str, of: AttributeType) -> AttributeField {
        AttributeField { name: name.into(), r#type: of.into() }
    }

    fn current() -> Collection {
        let schema = Schema {
            vectors: vec![vector("v")],
            texts: vec![text("a"), text("b")],
            attributes: vec![attribute("n", AttributeType::Integer)],
            ..Schema::default()
        };
        let made = Collection { name: "c".into(), schema: Some(schema), shard_count: 2, ..Collection::default() };
        Collection { uid: "uid".into(), ..check_collection(made, &Embedders::default()).unwrap() }
    }

    fn with(change: impl FnOnce(&mut Collection, &mut Schema)) -> Result<Updated, ApiError> {
        let mut wanted = current();
        let mut schema = wanted.schema.take().unwrap();
        change(&mut wanted, &mut schema);
        wanted.schema = Some(schema);
        updated(&current(), &wanted, &Embedders::default())
    }

    #[test]
    fn what_is_left_out_stays() {
        let same = Updated { collection: current(), adds_fields: false };
        assert_eq!(updated(&current(), &current(), &Embedders::default()).unwrap(), same);
        assert_eq!(
            updated(&current(), &Collection { name: "c".into(), ..Collection::default() }, &Embedders::default())
                .unwrap(),
            same
        );
        let names = Schema {
            vectors: vec![VectorField { dimensions: 0, ..vector("v") }],
            texts: vec![text("b"), text("a")],
            attributes: vec![attribute("n", AttributeType::Unspecified)],
            ..Schema::default()
        };
        let wanted = Collection { name: "c".into(), schema: Some(names), ..Collection::default() };
        assert_eq!(updated(&current(), &wanted, &Embedders::default()).unwrap(), same);
    }

    #[test]
    fn new_fields_stand_behind_the_old_ones_with_their_defaults() {
        let done = with(|_, schema| {
            schema.texts.insert(0, TextField { name: "z".into(), ..TextField::default() });
            schema.vectors.insert(0, vector("new"));
            schema.attributes.insert(0, attribute("m", AttributeType::Boolean));
        });
        let Updated { collection, adds_fields } = done.unwrap();
        let schema = collection.schema.unwrap();
        assert!(adds_fields);
        assert_eq!(schema.texts.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["a", "b", "z"]);
        assert_eq!(schema.vectors[1].name, "new");
        assert_eq!(schema.attributes[1].name, "m");
        assert_eq!((schema.vectors[1].metric(), schema.texts[2].boost), (Metric::Cosine, 1.0));
        assert_eq!((collection.uid.as_str(), collection.shard_count), ("uid", 2));
    }

    #[test]
    fn settings_change_in_place() {
        let done = with(|_, schema| {
            schema.texts[0].boost = 2.5;
            schema.vectors[0].hnsw = Some(Hnsw { expansion_search: 512, ..Hnsw::default() });
        });
        let Updated { collection, adds_fields } = done.unwrap();
        let schema = collection.schema.unwrap();
        assert!(!adds_fields);
        let hnsw = schema.vectors[0].hnsw.unwrap();
        assert_eq!((schema.texts[0].boost, hnsw.expansion_search, hnsw.connectivity), (2.5, 512, 16));
        assert!(
            with(|_, schema| schema.texts[0].boost = -1.0).is_err_and(|error| error.kind() == ErrorKind::SchemaInvalid)
        );
    }

    #[test]
    fn each_conflict_is_named_with_its_reason() {
        let error = with(|wanted, schema| {
            wanted.uid = "other".into();
            wanted.shard_count = 3;
            schema.key_case = KeyCase::CaseSensitive as i32;
            schema.vectors[0].dimensions = 5;
            schema.vectors[0].metric = Metric::Dot as i32;
            schema.vectors[0].element_type = ElementType::Float32 as i32;
            schema.vectors[0].hnsw = Some(Hnsw { connectivity: 8, expansion_add: 64, expansion_search: 0 });
            schema.texts.remove(1);
            schema.texts[0].analyzer = "en".into();
            schema.attributes[0].r#type = AttributeType::Double.into();
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaConflict);
        assert_eq!(error.metadata().len(), 11, "{:?}", error.metadata());
        assert!(error.metadata()["collection.schema.texts[\"b\"]"].contains("removed"));
        let renamed = with(|_, schema| schema.vectors[0].name = "w".into()).unwrap_err();
        assert_eq!(renamed.kind(), ErrorKind::SchemaConflict);
    }

    #[test]
    fn an_embedder_stays_what_it_is() {
        let given =
            |field: &VectorField| VectorField { embedder: "m".into(), embed_fields: vec!["a".into()], ..field.clone() };
        let mut before = current();
        let schema = before.schema.as_mut().unwrap();
        schema.vectors[0] = given(&schema.vectors[0]);
        let ask = |change: &dyn Fn(&mut VectorField)| {
            let mut wanted = before.clone();
            change(&mut wanted.schema.as_mut().unwrap().vectors[0]);
            updated(&before, &wanted, &Embedders::default()).unwrap_err().kind()
        };
        assert_eq!(ask(&|field| field.embedder = "n".into()), ErrorKind::SchemaConflict);
        assert_eq!(ask(&|field| field.embed_fields = vec!["b".into()]), ErrorKind::SchemaConflict);
        // One given to a field without is checked as at creation: this server has none.
        let outcome = with(|_, schema| schema.vectors[0] = given(&schema.vectors[0]));
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::SchemaInvalid);
    }
}
