//! Embedders for tests: the made models of `coordinator/tests/models`, and servers with documents that they know.

use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_coordinator::embed::{EmbedderConfig, EmbedderSource, Embedders, LocalConfig, OpenAiConfig, Purpose};
use antiphon_proto::deadline::Deadline;
use antiphon_proto::v1::*;

use crate::local::{Local, LocalBuilder};
use crate::sample;

/// Dimensions of the made models.
pub const DIMENSIONS: u32 = 8;

/// Key, title and body of documents whose words the made models know.
pub const DOCUMENTS: [(&str, &str, &str); 5] = [
    ("wheel", "bicycle", "the wheel of a bike"),
    ("loaf", "bread", "how to bake a loaf"),
    ("pane", "window", "putty and glass"),
    ("tyre", "puncture", "a flat tyre"),
    ("mixed", "", "bread and glass"),
];

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

/// Both made models: `made` and `pieces`.
pub async fn embedders() -> Embedders {
    start([("made", local("model2vec")), ("pieces", local("wordllama"))]).await
}

/// The vector field `v` by `made`, of the texts `title` and `body`.
pub fn schema_with(embed_fields: &[&str]) -> Schema {
    let text = |name: &str| TextField { name: name.into(), ..TextField::default() };
    let vectors = vec![VectorField {
        name: "v".into(),
        dimensions: DIMENSIONS,
        embedder: "made".into(),
        embed_fields: embed_fields.iter().map(|name| (*name).to_owned()).collect(),
        ..VectorField::default()
    }];
    Schema { vectors, texts: vec![text("title"), text("body")], ..Schema::default() }
}

/// A document with a title and a body; empty ones are left out.
pub fn document_of(key: &str, title: &str, body: &str) -> Document {
    let fields = [("title", title), ("body", body)].into_iter().filter(|(_, words)| !words.is_empty());
    let fields = fields.map(|(name, words)| (name.to_owned(), sample::text(words))).collect();
    Document { key: key.into(), fields, ..Document::default() }
}

/// A server without collections.
pub async fn server(embedders: &Embedders) -> Local {
    LocalBuilder::new().coordinator_config(|config| config.embedders = embedders.clone()).start().await
}

/// A server with two shards that hold [`DOCUMENTS`].
pub async fn filled(embedders: &Embedders) -> Local {
    let local = server(embedders).await;
    local.client.create(sample::collection("c", 2, schema_with(&[]))).await.unwrap();
    let documents = DOCUMENTS.iter().map(|(key, title, body)| document_of(key, title, body)).collect();
    local.client.upsert("c", documents).await.unwrap();
    local
}

/// What a model makes of a query text.
pub async fn vector_of(embedders: &Embedders, name: &str, text: &str) -> Vec<f32> {
    let deadline = Deadline::after(Duration::from_secs(10));
    let vectors = embedders.find(name).unwrap().embed(&[text], Purpose::Query, deadline).await.unwrap();
    vectors.into_iter().next().unwrap().unwrap()
}
