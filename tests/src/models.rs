//! Embedders for tests: the made models of `coordinator/tests/models`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_coordinator::embed::{EmbedderConfig, EmbedderSource, Embedders, LocalConfig, OpenAiConfig};

/// Dimensions of the made models.
pub const DIMENSIONS: u32 = 8;

/// The folder of a made model.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../coordinator/tests/models").join(name)
}

/// A made model.
pub fn local(name: &str) -> EmbedderConfig {
    with_source(EmbedderSource::Static(LocalConfig { folder: folder(name), dimensions: None, threads: 2, queue: 64 }))
}

/// An endpoint, with pauses and bounds for tests.
pub fn endpoint(url: &str, change: impl FnOnce(&mut OpenAiConfig)) -> EmbedderConfig {
    let mut config = OpenAiConfig {
        base_url: url.to_owned(),
        model: "made".into(),
        dimensions: None,
        api_key_file: None,
        api_key_env: None,
        max_batch_texts: 4,
        max_batch_chars: 1_000,
        concurrency: 2,
        queue: 64,
        retries: 2,
        timeout: Duration::from_millis(1_000),
    };
    change(&mut config);
    with_source(EmbedderSource::OpenAi(config))
}

fn with_source(source: EmbedderSource) -> EmbedderConfig {
    EmbedderConfig { source, query_prefix: String::new(), document_prefix: String::new(), max_text_chars: 8_000 }
}

/// Starts embedders.
pub async fn start(configs: impl IntoIterator<Item = (&'static str, EmbedderConfig)>) -> Embedders {
    let configs = configs.into_iter().map(|(name, config)| (name.to_owned(), config)).collect();
    Embedders::start(configs).await.unwrap()
}
