//! All embedders of a server, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::config::{EmbedderConfig, EmbedderSource};
use super::local::{Local, StaticModel};
use super::openai::OpenAi;
use super::{EmbedError, Embedder, Model, StartError};

/// Models by name. Cheap to clone; none by default.
#[derive(Clone, Default)]
pub struct Embedders(Arc<BTreeMap<String, Model>>);

impl Embedders {
    /// Starts every embedder: models are loaded, endpoints asked for their dimensions.
    ///
    /// # Errors
    /// The first that does not start, with its name.
    pub async fn start(configs: BTreeMap<String, EmbedderConfig>) -> Result<Self, (String, StartError)> {
        let mut models = BTreeMap::new();
        for (name, config) in configs {
            let model = start(&name, config).await.map_err(|error| (name.clone(), error))?;
            tracing::info!(embedder = name, kind = model.kind, model = model.model, dimensions = model.dimensions());
            models.insert(name, model);
        }
        Ok(Self(Arc::new(models)))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One by name.
    pub fn find(&self, name: &str) -> Option<&Model> {
        self.0.get(name)
    }

    /// One that a schema names.
    ///
    /// # Errors
    /// [`EmbedError::Missing`].
    pub fn get(&self, name: &str) -> Result<&Model, EmbedError> {
        self.find(name).ok_or(EmbedError::Missing)
    }

    /// All, in order of name.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.0.values()
    }
}

impl fmt::Debug for Embedders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

async fn start(name: &str, config: EmbedderConfig) -> Result<Model, StartError> {
    let (kind, model, embedder): (_, _, Arc<dyn Embedder>) = match config.source {
        EmbedderSource::OpenAi(endpoint) => {
            ("openai", endpoint.model.clone(), Arc::new(OpenAi::start(name, endpoint).await?))
        }
        EmbedderSource::Static(local) => {
            let model = folder_name(&local.folder);
            let embedder = Local::start(name, &local, StaticModel::load).await?;
            ("static", model, Arc::new(embedder))
        }
        #[cfg(feature = "bert")]
        EmbedderSource::Bert(local) => {
            let model = folder_name(&local.folder);
            ("bert", model, Arc::new(Local::start(name, &local, super::local::Bert::load).await?))
        }
        #[cfg(not(feature = "bert"))]
        EmbedderSource::Bert(_) => {
            return Err(StartError::Settings("kind: this program was built without the feature bert".into()));
        }
    };
    Ok(Model {
        name: name.to_owned(),
        kind,
        model,
        query_prefix: config.query_prefix,
        document_prefix: config.document_prefix,
        max_text_chars: config.max_text_chars,
        embedder,
    })
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
