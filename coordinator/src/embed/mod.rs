//! Embedders: what makes vectors of texts, each a model with a name.
//!
//! [`Embedders`] are started from settings and checked before anything is served; a vector field names one of them. What a
//! model answers is checked again each time ([`Model::embed`]): a wrong number of vectors, of dimensions, or a number that
//! is not finite is an error of the model's, never a search without it.
//!
//! Not for searching, and not for what a vector must be (INV-2, `antiphon_proto::vector`).

mod config;
mod documents;
mod embedders;
mod error;
mod local;
mod model;
mod openai;

pub use config::{EmbedderConfig, EmbedderSource, LocalConfig, OpenAiConfig};
pub(crate) use documents::embed_documents;
pub use embedders::Embedders;
pub use error::{EmbedError, StartError};
pub use model::Model;

use antiphon_proto::deadline::Deadline;

/// What a text is embedded for. Some models want it said, and what waits for a query is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To search with.
    Query,
    /// To be found.
    Document,
}

/// Makes vectors of texts.
#[tonic::async_trait]
pub trait Embedder: Send + Sync {
    /// Components of every vector.
    fn dimensions(&self) -> usize;

    /// A vector for each text, in order; none for a text in which the model knows nothing.
    ///
    /// # Errors
    /// [`EmbedError`]: then there is no vector at all.
    async fn embed(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
        deadline: Deadline,
    ) -> Result<Vec<Option<Vec<f32>>>, EmbedError>;
}
