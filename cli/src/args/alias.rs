//! Flags of `antiphon alias`.

use clap::{Args, Subcommand};

use super::ConnectionArgs;

/// `antiphon alias`.
#[derive(Debug, Args)]
pub(crate) struct AliasArgs {
    #[command(subcommand)]
    pub(crate) command: AliasCommand,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// What to do with aliases.
#[derive(Debug, Subcommand)]
pub(crate) enum AliasCommand {
    /// Make a name mean a collection, at one moment, whatever it meant before.
    Set {
        /// The alias: small letters, digits, - and _.
        alias: String,
        /// The collection.
        collection: String,
    },
    /// Take an alias away; its collection stays.
    Delete {
        /// The alias.
        alias: String,
    },
    /// List all aliases, or those of one collection.
    List {
        /// The collection.
        #[arg(long, short, value_name = "NAME")]
        collection: Option<String>,
    },
}
