//! Flags of `antiphon delete`, `count` and `export`.

use antiphon_proto::v1;

use super::ConnectionArgs;
use crate::filter::parse_filter;

/// `antiphon delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// Keys of documents.
    #[arg(required_unless_present = "filter", conflicts_with = "filter", value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// The collection.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) collection: String,
    /// Instead of keys: every document that meets this condition, as in `search`.
    #[arg(long, value_name = "JSON", value_parser = parse_filter)]
    pub(crate) filter: Option<v1::Filter>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// `antiphon count`.
#[derive(Debug, clap::Args)]
pub(crate) struct CountArgs {
    /// The collection.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) collection: String,
    /// Only documents that meet this condition, as in `search`.
    #[arg(long, value_name = "JSON", value_parser = parse_filter)]
    pub(crate) filter: Option<v1::Filter>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// `antiphon export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The collection.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) collection: String,
    /// Only documents that meet this condition, as in `search`.
    #[arg(long, value_name = "JSON", value_parser = parse_filter)]
    pub(crate) filter: Option<v1::Filter>,
    /// Return vectors too, so that the output can be imported again.
    #[arg(long)]
    pub(crate) vectors: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}
