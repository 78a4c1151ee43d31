//! What a node can be told.

use std::path::PathBuf;
use std::time::Duration;

pub use crate::cache::CacheConfig;

/// Settings of a node; [`NodeConfig::default`] gives those of a release.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The node's name, in answers and logs.
    pub id: String,
    /// Where segments are built and, unless the store is a local directory, kept, also for the next start; a temporary
    /// directory when absent. Several nodes may be given the same: each takes a folder of its own in it.
    pub cache_dir: Option<PathBuf>,
    /// How much of it may be used, and how it is filled.
    pub cache: CacheConfig,
    /// Searches at once, and threads they run on; at least 1.
    pub search_threads: usize,
    /// Searches that wait for a thread; one more is OVERLOADED.
    pub search_queue: usize,
    /// Bytes of memory for the rows that filters found, kept for the next search with the same filter; 0 keeps none.
    pub filter_cache_bytes: usize,
    /// Longest a call may take where its caller set no deadline.
    pub default_timeout: Duration,
    /// Rows and deletions of a shard that are not sealed yet; a write beyond is OVERLOADED.
    pub max_unsealed_rows: u64,
    /// Bytes of them in memory; a write beyond is OVERLOADED.
    pub max_unsealed_bytes: u64,
    /// Writes of a shard that wait to be appended; one more is OVERLOADED.
    pub write_queue: usize,
    /// Bytes of them; a write beyond is OVERLOADED.
    pub write_queue_bytes: u64,
    /// Bytes of writes that one log object takes.
    pub group_bytes: usize,
    /// Longest that the first write of a group waits for others. Writes that arrive while an append is under way join the
    /// next group in any case.
    pub linger: Duration,
    /// When live rows become a segment.
    pub sealing: SealingConfig,
    /// When segments become one.
    pub merging: MergingConfig,
    /// How long a view is kept after an answer named it.
    pub view_retention: Duration,
    /// Views kept for each shard.
    pub max_views: usize,
    /// How long log entries, manifests and segments that nothing needs any more are kept.
    pub gc_grace: Duration,
    /// How long segments that no manifest ever named are kept: longer than any build takes.
    pub orphan_grace: Duration,
    /// How often a shard looks for writes of other nodes.
    pub poll_interval: Duration,
    /// A field with fewer vectors in a segment gets no graph: comparing all is as fast.
    pub graph_min_rows: u32,
}

/// When live rows become a segment.
#[derive(Debug, Clone)]
pub struct SealingConfig {
    /// So many rows and deletions.
    pub rows: u64,
    /// So many bytes in memory.
    pub bytes: u64,
    /// The oldest is so old.
    pub age: Duration,
}

/// When segments become one.
#[derive(Debug, Clone)]
pub struct MergingConfig {
    /// Rows of a merged segment at most.
    pub max_rows: u64,
    /// Segments of one size that are merged together.
    pub fan_in: usize,
    /// Share of dead rows beyond which a segment is rewritten, 0 to 1.
    pub dead_share: f64,
    /// Without writes for so long, a shard merges more eagerly.
    pub idle: Duration,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            id: "node".into(),
            cache_dir: None,
            cache: CacheConfig::default(),
            search_threads: std::thread::available_parallelism().map_or(1, usize::from),
            search_queue: 1024,
            filter_cache_bytes: 32 << 20,
            default_timeout: Duration::from_secs(30),
            max_unsealed_rows: 131_072,
            max_unsealed_bytes: 512 << 20,
            write_queue: 1024,
            write_queue_bytes: 128 << 20,
            group_bytes: 8 << 20,
            linger: Duration::ZERO,
            sealing: SealingConfig { rows: 32_768, bytes: 128 << 20, age: Duration::from_secs(30) },
            merging: MergingConfig { max_rows: 4_000_000, fan_in: 4, dead_share: 0.25, idle: Duration::from_secs(5) },
            view_retention: Duration::from_secs(60),
            max_views: 1024,
            gc_grace: Duration::from_secs(600),
            orphan_grace: Duration::from_secs(3600),
            poll_interval: Duration::from_millis(500),
            graph_min_rows: 2048,
        }
    }
}
