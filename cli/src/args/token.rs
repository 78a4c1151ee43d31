//! `antiphon token`.

use std::num::NonZeroU32;
use std::path::PathBuf;

/// Make tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, add it to a file of tokens as its hash, and print it, this once.
    Add(AddTokenArgs),
    /// Read a token from standard input and print the hash that a file of tokens has of it.
    Hash,
}

/// `antiphon token add`.
#[derive(Debug, clap::Args)]
pub(crate) struct AddTokenArgs {
    /// The file of tokens, as a server's setting access.tokens_file names it. It is made if it is not there.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Who bears the token; messages and the log name it so.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// What it allows: read, write or admin, and a collection or alias, or * after what such names begin with, as
    /// read:docs, write:logs-*, admin:*. May be given several times; none holds another.
    #[arg(long = "scope", required = true, value_name = "RIGHT:COLLECTION")]
    pub(crate) scopes: Vec<String>,
    /// When it is no longer taken, as 2027-01-31T00:00:00Z [default: never].
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,
    /// Most calls that begin in a second [default: any number].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_calls_per_s: Option<NonZeroU32>,
    /// Most calls at a time [default: any number].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_concurrent_calls: Option<NonZeroU32>,
    /// Most bytes of a request, or of one batch of an import [default: the server's limits.max_message_bytes].
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_message_bytes: Option<u64>,
}
