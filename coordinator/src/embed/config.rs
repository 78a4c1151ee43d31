//! What an embedder can be told. The command line's settings say what each means to a user; docs/embedders.md too.

use std::path::PathBuf;
use std::time::Duration;

/// An embedder: a model, and how texts are put to it.
#[derive(Debug, Clone)]
pub struct EmbedderConfig {
    /// Where its vectors come from.
    pub source: EmbedderSource,
    /// Put before every query.
    pub query_prefix: String,
    /// Put before every document's text.
    pub document_prefix: String,
    /// A text is read up to so many characters.
    pub max_text_chars: usize,
}

/// Where vectors come from.
#[derive(Debug, Clone)]
pub enum EmbedderSource {
    /// An HTTP endpoint of OpenAI's form.
    OpenAi(OpenAiConfig),
    /// Static embeddings in a local folder.
    Static(LocalConfig),
    /// A sentence encoder of BERT's type in a local folder. Needs the feature `bert`.
    Bert(LocalConfig),
}

/// A model in a local folder, run in this process.
#[derive(Debug, Clone)]
pub struct LocalConfig {
    /// The folder.
    pub folder: PathBuf,
    /// Dimensions to keep of the model's, for those trained so; none keeps all.
    pub dimensions: Option<usize>,
    /// Threads that embed.
    pub threads: usize,
    /// Pieces of work that wait for a thread; more are refused as OVERLOADED.
    pub queue: usize,
}

/// An HTTP endpoint of OpenAI's form.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// What `/embeddings` is added to.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The dimensions of its vectors; none asks the endpoint at start.
    pub dimensions: Option<usize>,
    /// The file that holds the key.
    pub api_key_file: Option<PathBuf>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// Most texts of one request.
    pub max_batch_texts: usize,
    /// Most characters of one request, but for a single longer text.
    pub max_batch_chars: usize,
    /// Requests at once.
    pub concurrency: usize,
    /// Calls that wait for one of these; more are refused as OVERLOADED.
    pub queue: usize,
    /// How often a request is tried again.
    pub retries: u32,
    /// How long one try may take.
    pub timeout: Duration,
}
