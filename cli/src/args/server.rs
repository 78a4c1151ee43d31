//! Flags of the server roles. Each is one layer of the settings; see `settings`.

use std::path::PathBuf;

/// Flags of `serve`, `node` and `coordinator`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ServerArgs {
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE", env = "ANTIPHON_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Print the settings in effect as TOML, each explained, and exit.
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Where the role keeps its files [default: ./antiphon-data].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// The object store that holds all data, as a URL: file:///srv/antiphon, s3://bucket/prefix [default for serve: the
    /// folder of --data].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Where a node keeps its copies of what is in the store [default: cache in the folder of --data].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Address and port to listen on; port 0 means any that is free [default: 127.0.0.1:7700].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The name of this server, unique in its cluster [default: local].
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<String>,
    /// A node that a coordinator asks, as host:port or a URL. May be given several times, or several separated by commas.
    #[arg(long = "node", alias = "nodes", value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) nodes: Option<Vec<String>>,
    /// Take part in a cluster: address and port (UDP) on which its members tell of each other.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) gossip_listen: Option<String>,
    /// A member of the cluster to begin with, as host:port of its --gossip-listen. May be given several times, or several
    /// separated by commas.
    #[arg(long = "seed", alias = "seeds", value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) seeds: Option<Vec<String>>,
    /// Any other setting, as limits.max_page_size=500. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}
