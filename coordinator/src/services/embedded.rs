//! The vectors of a search's query texts, made once: all texts of one embedder in one call.

use std::collections::BTreeMap;

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::{Schema, SearchOptions, VectorField};
use antiphon_proto::vector;
use antiphon_telemetry::phase;
use futures::future::try_join_all;
use tracing::Instrument as _;

use super::Service;
use crate::coordinator::within;
use crate::embed::{EmbedError, Model, Purpose};
use crate::search::{ListQuery, QueryPath, RequestBuilder};
use crate::validate::vector_field;

/// A text to embed: one of the queries of a request.
#[derive(Clone, Copy)]
pub(super) struct QueryText<'r> {
    /// Which query, and where it stands.
    pub(super) at: &'r QueryPath,
    pub(super) text: &'r str,
    /// The vector field that it names, if it does.
    pub(super) vector_field: &'r str,
}

/// The vector of a query text, and whose it is.
pub(super) struct Embedded<'r> {
    of: QueryText<'r>,
    embedder: String,
    vector: Vec<f32>,
}

/// The texts of one embedder, each with its place among all.
struct Batch<'r> {
    model: &'r Model,
    texts: Vec<(usize, &'r str)>,
}

impl Service {
    /// Embeds query texts by the embedders of their vector fields, in their order. What can't be searched for is refused
    /// before anything is embedded.
    ///
    /// # Errors
    /// QUERY_EMPTY for a text that is blank or in which the model knows nothing; FIELD_TYPE for a field without an embedder;
    /// EMBEDDER_UNAVAILABLE, OVERLOADED, DEADLINE; those of the options and of the fields.
    pub(super) async fn embed_queries<'r>(
        &self,
        texts: &[QueryText<'r>],
        options: &SearchOptions,
        deadline: Deadline,
    ) -> Result<Vec<Embedded<'r>>, ApiError> {
        let work = async {
            let collection = self.0.collections.find(&options.collection).await?;
            RequestBuilder::new(&self.0.config.law, collection.clone(), options)?;
            let fields: Vec<&VectorField> =
                texts.iter().map(|text| text.field(&collection.schema)).collect::<Result<_, _>>()?;
            let mut batches: BTreeMap<&str, Batch<'_>> = BTreeMap::new();
            for (index, (text, field)) in texts.iter().zip(&fields).enumerate() {
                let model = self.0.config.embedders.get(&field.embedder);
                let model = model.map_err(|error| error.to_api(&field.embedder))?;
                let batch = batches.entry(&field.embedder).or_insert(Batch { model, texts: Vec::new() });
                batch.texts.push((index, text.text));
            }
            let calls = batches.into_values().map(|batch| batch.embed(deadline));
            let mut vectors: BTreeMap<usize, Vec<f32>> = try_join_all(calls).await?.into_iter().flatten().collect();
            let embedded = texts.iter().zip(fields).enumerate();
            embedded.map(|(index, (text, field))| text.embedded(field, vectors.remove(&index))).collect()
        };
        within(deadline, work.instrument(phase!("embed", texts = texts.len()))).await
    }
}

impl Batch<'_> {
    /// The vectors of the texts in which the model knows something, by the texts' places.
    async fn embed(self, deadline: Deadline) -> Result<Vec<(usize, Vec<f32>)>, ApiError> {
        let (places, words): (Vec<usize>, Vec<&str>) = self.texts.into_iter().unzip();
        let vectors = self.model.embed(&words, Purpose::Query, deadline).await;
        let vectors = vectors.map_err(|error| error.to_api(&self.model.name))?;
        Ok(places.into_iter().zip(vectors).filter_map(|(place, vector)| Some((place, vector?))).collect())
    }
}

impl<'r> QueryText<'r> {
    /// Its vector field, if the text can be embedded for it.
    ///
    /// # Errors
    /// Those of the vector field; FIELD_TYPE for one without an embedder; QUERY_EMPTY for a blank text.
    fn field<'s>(&self, schema: &'s Schema) -> Result<&'s VectorField, ApiError> {
        let (_, field) = vector_field(&self.at.path, self.vector_field, schema)?;
        if field.embedder.is_empty() {
            let words = format!("the vector field {:?} has no embedder: search it by a vector", field.name);
            return Err(ApiError::field(ErrorKind::FieldType, self.at.field("vector_field"), words));
        }
        if self.text.trim().is_empty() {
            return Err(ApiError::field(ErrorKind::QueryEmpty, self.at.field("text"), "there is nothing to embed"));
        }
        Ok(field)
    }

    /// Itself with what the embedder of its field made of it.
    ///
    /// # Errors
    /// QUERY_EMPTY without a vector; EMBEDDER_UNAVAILABLE for one that the field does not take.
    fn embedded(self, field: &VectorField, vector: Option<Vec<f32>>) -> Result<Embedded<'r>, ApiError> {
        let vector = vector.ok_or_else(|| {
            let words = format!("the embedder {:?} knows nothing in it", field.embedder);
            ApiError::field(ErrorKind::QueryEmpty, self.at.field("text"), words)
        })?;
        vector::validate(&vector, field.dimensions as usize, field.metric())
            .map_err(|fault| EmbedError::Answer(fault.to_string()).to_api(&field.embedder))?;
        Ok(Embedded { of: self, embedder: field.embedder.clone(), vector })
    }
}

impl Embedded<'_> {
    /// The list of the vector channel.
    ///
    /// # Errors
    /// Those of the vector field; SHARD_UNAVAILABLE where the collection was replaced meanwhile by one with another embedder.
    pub(super) fn list(&self, builder: &RequestBuilder<'_>) -> Result<ListQuery, ApiError> {
        let QueryText { at, vector_field: name, .. } = self.of;
        let (_, field) = vector_field(&at.path, name, builder.schema())?;
        if field.embedder != self.embedder {
            let words = "the collection was replaced while the text was embedded";
            return Err(ApiError::new(ErrorKind::ShardUnavailable, words));
        }
        builder.vector_list(at, Some(&vector::to_proto(&self.vector)), name)
    }
}
