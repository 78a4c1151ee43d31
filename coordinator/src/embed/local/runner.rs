//! Runs a model of this process on its pool.

use std::sync::Arc;

use antiphon_proto::deadline::Deadline;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::pool::Pool;
use crate::embed::config::LocalConfig;
use crate::embed::{EmbedError, Embedder, Purpose, StartError};

/// Texts of one job: enough that handing it over costs little, few enough that a query behind it does not wait long.
const TEXTS_A_JOB: usize = 16;

/// A model that embeds one text at a time, so that a text's vector does not depend on what else was asked for with it.
pub(in crate::embed) trait TextModel: Send + Sync + 'static {
    /// Components of every vector.
    fn dimensions(&self) -> usize;

    /// A text's vector; none where the model knows nothing in it.
    ///
    /// # Errors
    /// Words that say why not.
    fn vector_of(&self, text: &str) -> Result<Option<Vec<f32>>, String>;
}

/// A model with its threads.
pub(in crate::embed) struct Local<M> {
    model: Arc<M>,
    pool: Pool,
    threads: usize,
}

impl<M: TextModel> Local<M> {
    /// Loads a model and starts its threads.
    ///
    /// # Errors
    /// Those of loading; [`StartError::Resources`].
    pub(in crate::embed) async fn start(
        name: &str,
        config: &LocalConfig,
        load: impl FnOnce(&LocalConfig) -> Result<M, StartError> + Send + 'static,
    ) -> Result<Self, StartError> {
        let owned = config.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&owned)).await;
        let model = loaded.map_err(|error| StartError::Resources { what: "the model", source: error.into() })??;
        let pool = Pool::new(name, config.threads, config.queue)
            .map_err(|error| StartError::Resources { what: "a thread", source: error.into() })?;
        Ok(Self { model: Arc::new(model), pool, threads: config.threads.max(1) })
    }

    async fn job(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
        deadline: Deadline,
    ) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let model = Arc::clone(&self.model);
        let work = move |goes_on: &dyn Fn() -> bool| {
            let embed = |text: &String| match goes_on() {
                true => model.vector_of(text).map_err(EmbedError::Unavailable),
                false => Err(EmbedError::Deadline),
            };
            texts.iter().map(embed).collect()
        };
        self.pool.run(purpose, deadline, work).await?
    }
}

#[tonic::async_trait]
impl<M: TextModel> Embedder for Local<M> {
    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }

    async fn embed(
        &self,
        mut texts: Vec<String>,
        purpose: Purpose,
        deadline: Deadline,
    ) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let mut jobs = Vec::with_capacity(texts.len().div_ceil(TEXTS_A_JOB));
        while texts.len() > TEXTS_A_JOB {
            let rest = texts.split_off(TEXTS_A_JOB);
            jobs.push(self.job(std::mem::replace(&mut texts, rest), purpose, deadline));
        }
        if jobs.is_empty() {
            return self.job(texts, purpose, deadline).await;
        }
        jobs.push(self.job(texts, purpose, deadline));
        let parts: Vec<_> = stream::iter(jobs).buffered(self.threads).try_collect().await?;
        Ok(parts.into_iter().flatten().collect())
    }
}
