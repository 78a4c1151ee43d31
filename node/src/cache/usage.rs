//! What the cache says of itself, for operators.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A problem that was not met again for so long is over.
const PROBLEM_LASTS: Duration = Duration::from_secs(120);
/// Problems remembered.
const MAX_PROBLEMS: usize = 256;

/// Numbers of a node's cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Bytes of segments that are held, and of builds under way.
    pub bytes: u64,
    /// The most they may be.
    pub limit_bytes: u64,
    /// Files that were found whole, since the start.
    pub hits: u64,
    /// Files that were downloaded.
    pub downloads: u64,
    /// Their bytes.
    pub downloaded_bytes: u64,
    /// Segments that were dropped to make room.
    pub evictions: u64,
    /// Files that were found damaged and fetched again.
    pub damaged: u64,
    /// What lacks room, in words for an operator.
    pub problem: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) hits: AtomicU64,
    pub(super) downloads: AtomicU64,
    pub(super) downloaded_bytes: AtomicU64,
    pub(super) evictions: AtomicU64,
    pub(super) damaged: AtomicU64,
}

impl Counts {
    pub(super) fn add(count: &AtomicU64, more: u64) {
        count.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn usage(&self) -> CacheUsage {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CacheUsage {
            hits: get(&self.hits),
            downloads: get(&self.downloads),
            downloaded_bytes: get(&self.downloaded_bytes),
            evictions: get(&self.evictions),
            damaged: get(&self.damaged),
            ..CacheUsage::default()
        }
    }
}

/// What lacked room lately, by what it is for.
#[derive(Debug, Default)]
pub(super) struct Problems(HashMap<String, (Instant, String)>);

impl Problems {
    pub(super) fn note(&mut self, what: &str, words: &str) {
        if self.0.len() < MAX_PROBLEMS || self.0.contains_key(what) {
            self.0.insert(what.to_owned(), (Instant::now(), words.to_owned()));
        }
    }

    pub(super) fn is_over(&mut self, what: &str) {
        self.0.remove(what);
    }

    /// The one met last.
    pub(super) fn last(&mut self) -> Option<String> {
        self.0.retain(|_, (met, _)| met.elapsed() < PROBLEM_LASTS);
        self.0.values().max_by_key(|(met, _)| *met).map(|(_, words)| words.clone())
    }
}
