//! A query text's vector, made once for a search.

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::SearchOptions;
use antiphon_proto::vector;

use super::Service;
use crate::coordinator::within;
use crate::embed::{EmbedError, Purpose};
use crate::search::{ListQuery, QueryPath, RequestBuilder};
use crate::validate::vector_field;

/// The vector of a query text, and whose it is.
pub(super) struct Embedded {
    embedder: String,
    vector: Vec<f32>,
}

impl Service {
    /// Embeds a query text by the embedder of the vector field. Options that can't be are refused before.
    ///
    /// # Errors
    /// QUERY_EMPTY for a text that is blank or in which the model knows nothing; FIELD_TYPE for a field without an embedder;
    /// EMBEDDER_UNAVAILABLE, OVERLOADED, DEADLINE; those of the options and of the field.
    pub(super) async fn embed_query(
        &self,
        text: &str,
        field_name: &str,
        options: &SearchOptions,
        deadline: Deadline,
    ) -> Result<Embedded, ApiError> {
        let work = async {
            let collection = self.0.collections.find(&options.collection).await?;
            RequestBuilder::new(&self.0.config.law, collection.clone(), options)?;
            let (_, field) = vector_field("", field_name, &collection.schema)?;
            if field.embedder.is_empty() {
                let words = format!("the vector field {:?} has no embedder: search it by a vector", field.name);
                return Err(ApiError::field(ErrorKind::FieldType, "vector_field", words));
            }
            if text.trim().is_empty() {
                return Err(ApiError::field(ErrorKind::QueryEmpty, "text", "there is nothing to embed"));
            }
            let failed = |error: EmbedError| error.to_api(&field.embedder);
            let model = self.0.config.embedders.get(&field.embedder).map_err(failed)?;
            let vector = model.embed(&[text], Purpose::Query, deadline).await.map_err(failed)?.pop().flatten();
            let vector = vector.ok_or_else(|| {
                let words = format!("the embedder {:?} knows nothing in it", field.embedder);
                ApiError::field(ErrorKind::QueryEmpty, "text", words)
            })?;
            vector::validate(&vector, field.dimensions as usize, field.metric())
                .map_err(|fault| failed(EmbedError::Answer(fault.to_string())))?;
            Ok(Embedded { embedder: field.embedder.clone(), vector })
        };
        within(deadline, work).await
    }
}

impl Embedded {
    /// The list of the vector channel.
    ///
    /// # Errors
    /// Those of the vector field; SHARD_UNAVAILABLE where the collection was replaced meanwhile by one with another embedder.
    pub(super) fn list(&self, builder: &RequestBuilder<'_>, field_name: &str) -> Result<ListQuery, ApiError> {
        let (_, field) = vector_field("", field_name, builder.schema())?;
        if field.embedder != self.embedder {
            let words = "the collection was replaced while the text was embedded";
            return Err(ApiError::new(ErrorKind::ShardUnavailable, words));
        }
        builder.vector_list(&QueryPath::single(), Some(&vector::to_proto(&self.vector)), field_name)
    }
}
