//! Settings of the server roles: what can be set, what it means, and its default.
//!
//! A plain tree that the roles read. Each key takes its value from the first of: flag, environment, file, default; see
//! `layers`. A loaded tree has been checked as a whole (`check`), and store and cache_dir are filled in.
//!
//! Not for client commands, whose flags are few (`args`).

/// A key of a table, and the lines that explain it.
pub(crate) type Key = (&'static str, &'static [&'static str]);

/// Declares a table of settings: a struct with serde, the defaults, and the texts for `--print-config`.
macro_rules! table {
    ($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr,)+ }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name { $($(#[doc = $doc])+ pub(crate) $key: $type,)+ }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $name {
            /// What the table is about.
            pub(crate) const ABOUT: &'static [&'static str] = &[$($about,)+];
            /// Its keys, in the order declared.
            pub(crate) const KEYS: &'static [Key] = &[$((stringify!($key), &[$($doc,)+]),)+];
        }
    };
}

mod check;
mod embedder;
mod layers;
mod print;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub(crate) use embedder::Embedder;
pub(crate) use layers::load;
pub(crate) use print::print;

/// What a process runs as. Some settings are needed by some roles only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Coordinator and node in one process.
    Serve,
    /// Holds shards.
    Node,
    /// Takes the public API.
    Coordinator,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditLog {
    /// None.
    Nothing,
    /// Of collections and aliases.
    Collections,
    /// Those, and of documents.
    Documents,
}

table! {
    /// Settings of an Antiphon server. Each can also be given as the environment variable named beside it.
    Settings {
        /// Where the role keeps its files. Relative to the working directory.
        data: PathBuf = PathBuf::from("antiphon-data"),
        /// The object store that holds all data, as a URL: file:///srv/antiphon, s3://bucket/prefix. Left out, `serve` uses
        /// the folder `data`; the other roles must be told.
        store: String = String::new(),
        /// Where a node keeps its copies of what is in the store. Can be deleted while the node is down. Nodes that are given
        /// the same take a folder each in it. Left out: the folder `cache` in `data`.
        cache_dir: PathBuf = PathBuf::new(),
        /// Address and port to listen on; port 0 means any that is free.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 7700)),
        /// The name of this server, unique in its cluster.
        id: String = "local".to_owned(),
        /// Nodes that a coordinator asks, as host:port or as URLs. The other roles don't need it.
        nodes: Vec<String> = Vec::new(),
        /// How the process finds the others of its cluster. Without gossip_listen it takes no part in one: a coordinator then
        /// asks the nodes that it was told of.
        cluster: ClusterSettings = ClusterSettings::default(),
        /// Encrypted connections. Files are read again when they change.
        tls: Tls = Tls::default(),
        /// Who may call the public API.
        access: Access = Access::default(),
        /// Bounds of requests and of the work they cause.
        limits: Limits = Limits::default(),
        /// When rows leave memory for a segment.
        sealing: Sealing = Sealing::default(),
        /// When segments are merged.
        merging: Merging = Merging::default(),
        /// States of the data kept for snapshots.
        views: Views = Views::default(),
        /// The node's disk.
        cache: Cache = Cache::default(),
        /// The shards' log of writes.
        log: Log = Log::default(),
        /// What the process tells of itself as numbers.
        metrics: Metrics = Metrics::default(),
        /// Spans of calls and of work in the background, sent to a collector by OTLP over gRPC.
        traces: TraceSettings = TraceSettings::default(),
        /// What the process reports on stderr.
        logging: Logging = Logging::default(),
        /// What makes vectors of texts, each a table under its name.
        embedders: BTreeMap<String, Embedder> = BTreeMap::new(),
    }
}

table! {
    /// How the process finds the others of its cluster. Without gossip_listen it takes no part in one: a coordinator then
    /// asks the nodes that it was told of.
    ClusterSettings {
        /// The cluster's name; members of another are not heard.
        name: String = "antiphon".to_owned(),
        /// Address and port (UDP) on which members tell of each other; empty: the process takes no part in a cluster.
        gossip_listen: String = String::new(),
        /// Where others reach that, as address:port; left out: gossip_listen itself, or where that is 0.0.0.0, the address
        /// of this host towards the first seed.
        gossip_advertise: String = String::new(),
        /// URL at which others call this process; left out: http:// (with tls.cert_file https://) and listen, with the
        /// host of gossip_advertise where listen is 0.0.0.0.
        advertise: String = String::new(),
        /// Members to begin with, as host:port of their gossip_listen. A DNS name may stand for many and is asked anew each
        /// minute.
        seeds: Vec<String> = Vec::new(),
        /// File with a secret of at least 16 bytes that all members share; who does not know it is not heard and may not call
        /// nodes. Left out: whoever reaches the ports may.
        secret_file: PathBuf = PathBuf::new(),
        /// What fails together, such as a data centre: copies of a shard are spread over zones.
        zone: String = String::new(),
        /// How often a member gossips, in milliseconds, 20 to 10,000. One that was not heard of for some ten times that is
        /// taken for lost.
        gossip_interval_ms: u64 = 150,
        /// How long a node that is told to stop waits for others to take its shards, in seconds, 0 to 3,600.
        drain_s: u64 = 20,
    }
}

table! {
    /// Encrypted connections. Files are read again when they change.
    Tls {
        /// PEM file with the server's certificate and those that lead to its authority; calls to other members show it too.
        /// Empty: the server speaks without TLS.
        cert_file: PathBuf = PathBuf::new(),
        /// PEM file with the private key of it.
        key_file: PathBuf = PathBuf::new(),
        /// PEM file with authorities: every caller must show a certificate of one of them (mutual TLS), health checks too.
        /// Empty: callers show none.
        client_ca_file: PathBuf = PathBuf::new(),
        /// PEM file with the authorities of the other members' certificates. Empty: those of the system.
        ca_file: PathBuf = PathBuf::new(),
        /// A name that the other members' certificates bear. Empty: the host of the address at which each is called.
        server_name: String = String::new(),
    }
}

table! {
    /// Who may call the public API.
    Access {
        /// TOML file of tokens, read again when it changes; `antiphon token` makes them. Empty: whoever reaches the server
        /// may do everything.
        tokens_file: PathBuf = PathBuf::new(),
        /// Whether the server tells what services it has (gRPC reflection). With tokens it tells those who have one.
        reflection: bool = true,
    }
}

table! {
    /// Bounds of requests and of the work they cause.
    Limits {
        /// W of the page law: pages of size k exist up to max(1, (W - 1) / k). 1 to 10,000.
        max_result_window: u32 = 100,
        /// Most matches on a page. 1 to 10,000.
        max_page_size: u32 = 1000,
        /// Most bytes of a request. 65,536 to 1,073,741,824.
        max_message_bytes: u64 = 16 << 20,
        /// Most bytes of an answer to a search or a get; clients often take no more than 4 MiB. 65,536 to 1,073,741,824.
        max_response_bytes: u64 = 4 << 20,
        /// Threads that search; 0 means as many as there are cores. At most 1,024.
        search_threads: u32 = 0,
        /// Searches that a coordinator runs at once; others wait for their turn, by callers in turn, and are refused as
        /// OVERLOADED if it does not come soon. 0 means 16 a core for `serve`, 256 a core for a coordinator. At most 1,000,000.
        max_concurrent_searches: u32 = 0,
        /// Searches that wait, at a coordinator for their turn, at a node for a thread; more are refused as OVERLOADED. 1 to
        /// 1,000,000.
        search_queue: u32 = 1024,
        /// Bytes of memory of a node for the rows that filters found, kept for the next search with the same filter; 0 keeps
        /// none. At most 17,179,869,184.
        filter_cache_bytes: u64 = 32 << 20,
        /// How long a call may take whose caller sets no deadline, in milliseconds; also the most a caller can ask for.
        /// 1 to 3,600,000.
        default_timeout_ms: u64 = 30_000,
        /// How long a connection is used, in seconds, before its client is asked to make another, so that clients spread over
        /// servers that were added; 0: for as long as the client likes. At most 86,400.
        max_connection_age_s: u64 = 0,
        /// Rows of a shard that may wait to be sealed; writes beyond are refused as OVERLOADED. At least sealing.seal_rows.
        max_unsealed_rows: u64 = 131_072,
        /// The same in bytes. At least sealing.seal_bytes.
        max_unsealed_bytes: u64 = 256 << 20,
    }
}

table! {
    /// When rows leave memory for a segment: whichever comes first.
    Sealing {
        /// Rows of a shard, 1 to 10,000,000.
        seal_rows: u64 = 32_768,
        /// Bytes of those rows, 65,536 to 17,179,869,184.
        seal_bytes: u64 = 64 << 20,
        /// Age of the oldest of them, in seconds, 1 to 86,400.
        seal_age_s: u64 = 30,
    }
}

table! {
    /// When segments are merged.
    Merging {
        /// Segments of about the same size that are merged into one, 2 to 64.
        segments_per_tier: u32 = 8,
        /// Rows beyond which a segment is not merged with others, 1,000 to 100,000,000.
        max_segment_rows: u64 = 4_000_000,
        /// Share of deleted rows at which a segment is rebuilt, above 0 and at most 1.
        max_deleted_share: f64 = 0.25,
    }
}

table! {
    /// States of the data kept so that a snapshot token of an earlier answer can be searched again.
    Views {
        /// How long after its last use, in seconds, 1 to 86,400.
        retention_s: u64 = 60,
        /// How many; the oldest goes first. 1 to 1,000,000.
        max_views: u64 = 1024,
    }
}

table! {
    /// The node's disk: copies of segments, which the next start finds again, and segments that are being built. What no
    /// search needs and was used longest ago goes first.
    Cache {
        /// Most bytes of them; a shard that does not fit is refused as DISK_FULL, and what is served goes on. 0 means four
        /// fifths of what is free, or taken by copies already, when the node starts. A store in a local folder needs no
        /// copies, only room for builds.
        max_bytes: u64 = 0,
        /// Requests at once that bring segments from the store, each of at most 8 MiB. 1 to 1,024.
        downloads: u32 = 8,
    }
}

table! {
    /// The shards' log of writes.
    Log {
        /// Bytes of concurrent writes that are joined into one entry. 1,024 to max_message_bytes.
        group_bytes: u64 = 8 << 20,
        /// How long a write waits for others to join it, in milliseconds; 0 joins only what waits anyway. At most 10,000.
        linger_ms: u64 = 0,
    }
}

table! {
    /// What the process tells of itself as numbers, at the path /metrics as Prometheus reads it.
    Metrics {
        /// Address and port (HTTP) of it; empty: nothing is recorded. Whoever reaches it may read names of collections.
        listen: String = String::new(),
    }
}

table! {
    /// Spans of calls and of work in the background, sent to a collector by OTLP over gRPC.
    TraceSettings {
        /// URL of the collector, as http://127.0.0.1:4317; empty: nothing is traced. Without TLS: have a collector near by.
        endpoint: String = String::new(),
        /// Share of the calls that are traced whose callers did not say (traceparent), 0 to 1.
        sample_share: f64 = 0.01,
    }
}

table! {
    /// What the process reports on stderr.
    Logging {
        /// error, warn, info, debug, trace, or directives such as "info,antiphon_node=debug".
        filter: String = "info".to_owned(),
        /// text or json.
        format: LogFormat = LogFormat::Text,
        /// A coordinator logs each search that takes so many milliseconds or more, with what its phases took; 0: none.
        slow_search_ms: u64 = 1_000,
        /// What is logged of who changed what, with the target antiphon::audit: nothing; changes of collections and aliases;
        /// documents: those and each call that writes or deletes documents.
        audit: AuditLog = AuditLog::Collections,
    }
}

/// The tables within the tree: name, what they are about, keys.
pub(crate) const TABLES: &[(&str, &[&str], &[Key])] = &[
    ("cluster", ClusterSettings::ABOUT, ClusterSettings::KEYS),
    ("tls", Tls::ABOUT, Tls::KEYS),
    ("access", Access::ABOUT, Access::KEYS),
    ("limits", Limits::ABOUT, Limits::KEYS),
    ("sealing", Sealing::ABOUT, Sealing::KEYS),
    ("merging", Merging::ABOUT, Merging::KEYS),
    ("views", Views::ABOUT, Views::KEYS),
    ("cache", Cache::ABOUT, Cache::KEYS),
    ("log", Log::ABOUT, Log::KEYS),
    ("metrics", Metrics::ABOUT, Metrics::KEYS),
    ("traces", TraceSettings::ABOUT, TraceSettings::KEYS),
    ("logging", Logging::ABOUT, Logging::KEYS),
];

/// The table whose keys are names that a user chooses, each of them a table with the keys of [`Embedder`].
const NAMED_TABLES: &str = "embedders";

/// Whether a key of the tree is a table.
fn is_table(key: &str) -> bool {
    key == NAMED_TABLES || TABLES.iter().any(|(name, _, _)| *name == key)
}

/// The dotted paths of all keys but those of the tables that users name.
fn paths() -> impl Iterator<Item = String> {
    let top = Settings::KEYS.iter().filter(|(key, _)| !is_table(key)).map(|(key, _)| (*key).to_owned());
    top.chain(TABLES.iter().flat_map(|(table, _, keys)| keys.iter().map(move |(key, _)| format!("{table}.{key}"))))
}

/// The environment variable of a key.
fn variable(path: &str) -> String {
    format!("ANTIPHON_{}", path.replace(['.', '-'], "_").to_uppercase())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn every_key_is_declared_once_and_serialized() {
        let all: Vec<String> = paths().collect();
        let variables: std::collections::BTreeSet<String> = all.iter().map(|path| variable(path)).collect();
        assert_eq!(variables.len(), all.len());
        let tree = toml::Table::try_from(Settings::default()).unwrap();
        for path in all {
            let found = match path.split_once('.') {
                Some((table, key)) => tree[table].get(key).is_some(),
                None => tree.contains_key(&path),
            };
            assert!(found, "{path}");
        }
        let tables: Vec<&str> =
            tree.iter().filter(|(_, value)| value.is_table()).map(|(key, _)| key.as_str()).collect();
        assert_eq!(tables.len(), TABLES.len() + 1);
    }
}
