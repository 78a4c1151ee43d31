//! Flags of `antiphon import`.

use std::path::PathBuf;

use super::ConnectionArgs;

/// `antiphon import`.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Files of JSON Lines, plain, .gz or .zst; - means standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The collection.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) collection: String,
    /// Most documents to send in one message.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) batch: u32,
    /// Bytes of documents beyond which a message is sent though it holds fewer.
    #[arg(long, value_name = "N", default_value_t = 4 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub(crate) batch_bytes: u32,
    /// How often to try again in a row without the server acknowledging anything.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) retries: u32,
    /// Write rejected documents to this file, as lines of {"file", "line", "reason", "document"}.
    #[arg(long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,
    /// Show no progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}
