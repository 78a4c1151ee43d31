//! Embedders as the settings name them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use antiphon_coordinator::embed::{EmbedderConfig, EmbedderSource, Embedders, LocalConfig, OpenAiConfig};

use crate::failure::Failure;
use crate::settings::{Embedder, Settings};

/// Starts them all.
///
/// # Errors
/// The first that does not start.
pub(super) async fn start_embedders(settings: &Settings) -> Result<Embedders, Failure> {
    let configs: BTreeMap<String, EmbedderConfig> =
        settings.embedders.iter().map(|(name, embedder)| (name.clone(), config(embedder))).collect();
    Embedders::start(configs)
        .await
        .map_err(|(name, error)| Failure::of(format!("the embedder {name} cannot start"), &error))
}

fn config(embedder: &Embedder) -> EmbedderConfig {
    let dimensions = (embedder.dimensions > 0).then_some(embedder.dimensions as usize);
    let path = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
    let source = if embedder.kind == "openai" {
        EmbedderSource::OpenAi(OpenAiConfig {
            base_url: embedder.base_url.clone(),
            model: embedder.model.clone(),
            dimensions,
            api_key_file: path(&embedder.api_key_file),
            api_key_env: (!embedder.api_key_env.is_empty()).then(|| embedder.api_key_env.clone()),
            max_batch_texts: embedder.max_batch_texts as usize,
            max_batch_chars: embedder.max_batch_chars as usize,
            concurrency: embedder.concurrency as usize,
            queue: embedder.queue as usize,
            retries: embedder.retries,
            timeout: Duration::from_millis(embedder.timeout_ms),
        })
    } else {
        let local = LocalConfig {
            folder: embedder.path.clone(),
            dimensions,
            threads: threads(embedder.threads),
            queue: embedder.queue as usize,
        };
        if embedder.kind == "bert" { EmbedderSource::Bert(local) } else { EmbedderSource::Static(local) }
    };
    EmbedderConfig {
        source,
        query_prefix: embedder.query_prefix.clone(),
        document_prefix: embedder.document_prefix.clone(),
        max_text_chars: embedder.max_text_chars as usize,
    }
}

/// Half of the cores, unless said otherwise: the other half searches.
fn threads(set: u32) -> usize {
    match set {
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)),
        threads => threads as usize,
    }
}
