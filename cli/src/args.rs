//! The command line: what can be asked of the binary, and its help.
//!
//! Only parsing; what a command does is in `commands`, `import`, `demo` and `roles`.

mod alias;
mod backup;
mod collection;
mod connection;
mod documents;
mod import;
mod search;
mod server;
mod token;

use clap::{Parser, Subcommand};

pub(crate) use alias::{AliasArgs, AliasCommand};
pub(crate) use backup::{BackupArgs, BackupCommand, RestoreArgs};
pub(crate) use collection::{CollectionArgs, CollectionCommand, CreateArgs, EmbedderSpec, UpdateArgs};
pub(crate) use connection::ConnectionArgs;
pub(crate) use documents::{CountArgs, DeleteArgs, ExportArgs};
pub(crate) use import::ImportArgs;
pub(crate) use search::SearchArgs;
pub(crate) use server::ServerArgs;
pub(crate) use token::{AddTokenArgs, TokenArgs, TokenCommand};

use crate::settings::LogFormat;
use crate::version::LONG;

const EXAMPLES: &str = "\
EXAMPLES
  See it work, in one process, with data that comes with it:
      antiphon demo

  Run a server over a folder, coordinator and node in one process:
      antiphon serve --data ./antiphon-data

  Create a collection, fill it, search it:
      antiphon collection create articles --vector meaning:384:cosine --text title:en:2 --text body:en
      antiphon import articles.jsonl.gz --collection articles --rejects rejects.jsonl
      antiphon search --collection articles 'broken window' --vector query.json

  Show the settings that a server would run with:
      antiphon serve --config antiphon.toml --print-config

FILES AND ENVIRONMENT
  A server takes each setting from its flag, else from the environment (limits.max_page_size is
  ANTIPHON_LIMITS_MAX_PAGE_SIZE), else from the TOML file named by --config or ANTIPHON_CONFIG, else the default.
  Other commands find the server by --address, else ANTIPHON_ADDRESS, else at http://127.0.0.1:7700.

EXIT CODES
  0  done
  1  failed; the reason is on stderr
  2  the command line makes no sense
  3  import: done, but some documents were rejected";

/// Sharded hybrid search over gRPC: vectors and keywords, by turns.
///
/// One binary: the server roles, and the commands that speak to a server.
#[derive(Debug, Parser)]
#[command(name = "antiphon", version, long_version = LONG.as_str(), after_long_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) logging: LoggingArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags about the log, which goes to stderr.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LoggingArgs {
    /// What to log: error, warn, info, debug, trace, or directives such as `info,antiphon_node=debug`. Servers log
    /// `info` unless told otherwise, other commands `warn`.
    // Ids are one for the whole command line: a search's `filter` is another.
    #[arg(
        id = "log_filter",
        long = "log",
        global = true,
        value_name = "FILTER",
        env = "ANTIPHON_LOGGING_FILTER",
        help_heading = "Log"
    )]
    pub(crate) filter: Option<String>,
    /// How to write the log: for people, or one JSON object a line.
    #[arg(
        long = "log-format",
        global = true,
        value_name = "FORMAT",
        env = "ANTIPHON_LOGGING_FORMAT",
        help_heading = "Log"
    )]
    pub(crate) format: Option<LogFormat>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run coordinator and node in one process over one store.
    Serve(ServerArgs),
    /// Run a node: holds shards and answers coordinators.
    Node(ServerArgs),
    /// Run a coordinator: takes the public API and asks nodes.
    Coordinator(ServerArgs),
    /// Create, list, show, update and delete collections.
    Collection(CollectionArgs),
    /// Give collections further names, which can be moved at one moment.
    Alias(AliasArgs),
    /// Import documents from JSON Lines.
    ///
    /// A document is a line: {"key": "a-1", "vectors": {"meaning": [0.1, 0.2]}, "fields": {"title": "On doors", "year":
    /// 1998}}. Whole numbers stay whole, others become doubles; lists and objects nest at most 32 deep. Values of a timestamp
    /// attribute are written like "2024-05-01T12:00:00Z", and those of a double attribute may be whole. A document without a
    /// key is given one before it is sent, so that sending it again after a broken connection does not store it twice;
    /// importing the same file again does.
    ///
    /// What the server acknowledged stays, whatever happens later. Documents that can't be read, or that the server
    /// refuses, are named with file, line and reason, and the others go on; the exit code is then 3.
    Import(ImportArgs),
    /// Search by keywords, by a vector, by both, or by several queries at once.
    ///
    /// A text alone is matched by keywords, a vector alone by nearness, both together by turns or as --fusion says. Several
    /// queries, each by a text, a vector or both, are given as JSON with --query or --queries.
    ///
    /// Quotes make no phrase: words are found wherever they stand. docs/guide.md shows every search.
    Search(Box<SearchArgs>),
    /// Get documents by key, as JSON Lines.
    ///
    /// Keys that name no document are listed on stderr; the exit code is then 1.
    Get(GetArgs),
    /// Delete documents by key, or all that meet a filter.
    Delete(DeleteArgs),
    /// Count documents: all, or those that meet a filter.
    Count(CountArgs),
    /// Write documents, all or those that meet a filter, as JSON Lines that an import reads.
    ///
    /// They are of one state of each shard, that of the beginning, in order of their keys within a shard.
    Export(ExportArgs),
    /// Copy a collection into a store of backups; list, verify and delete backups.
    ///
    /// Reads the store itself; no server is needed, and one that runs is not disturbed. Every write acknowledged before the
    /// command began is in the backup; of those during it each may be. Segment files that an earlier backup of the
    /// collection brought are not copied again.
    Backup(BackupArgs),
    /// Make a collection of a backup.
    ///
    /// No server is needed; one that runs over the store serves the collection within some seconds.
    Restore(RestoreArgs),
    /// Show nodes, shards and collections, and what is wrong with them.
    Status(StatusArgs),
    /// Start a server with data that comes with it and show what a search gives.
    ///
    /// The data are paragraphs and questions of XQuAD (Artetxe, Ruder and Yogatama 2020, CC BY-SA 4.0) in English, Russian
    /// and Chinese, with vectors. The server is a process of its own over an empty folder; it is stopped at the end.
    Demo(DemoArgs),
    /// Make tokens, by which callers of a server are told from each other.
    Token(TokenArgs),
    /// Write what a shell needs to complete commands and flags.
    ///
    /// bash: antiphon completions bash >/etc/bash_completion.d/antiphon; zsh: a file _antiphon in a folder of $fpath; fish:
    /// ~/.config/fish/completions/antiphon.fish.
    Completions(CompletionsArgs),
    /// Write man pages: that of antiphon itself, or with --dir one for each command.
    Man(ManArgs),
}

/// `antiphon get`.
#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// Keys of documents.
    #[arg(required = true, value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// The collection.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) collection: String,
    /// Fields to return, separated by commas; all if left out.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Return vectors too, so that the output can be imported again.
    #[arg(long)]
    pub(crate) vectors: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// `antiphon status`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// `antiphon completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `antiphon man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// A folder for the pages of all commands, antiphon.1, antiphon-serve.1 and so on; it is made if it is not there.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<std::path::PathBuf>,
}

/// `antiphon demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Leave the server running until Ctrl-C.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where the server listens; port 0 means any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Where the server keeps its data: a folder that is empty or not there yet. A new one among the temporary files if
    /// left out. It is not deleted.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<std::path::PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
