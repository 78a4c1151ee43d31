//! What a shard no longer needs, and when it may go: log entries, manifests and segments are kept for a grace time, so that
//! replicas, older views and slow writers never miss them.
//!
//! INV-17: of the covered log entries that are due, the last stays. It is the witness that the log went that far: without it
//! a store that lost its newest manifest would show the state of the one before, and nothing would tell.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use antiphon_store::{LogRetention, ManifestVersion, SegmentId, Seq, StoreError};

use super::core::Core;

/// Manifests kept however old they are.
const KEEP_MANIFESTS: u64 = 4;

/// The queue of a shard's garbage.
pub(super) struct Garbage {
    log: LogRetention,
    manifests: VecDeque<(Instant, u64)>,
    segments: VecDeque<(Instant, SegmentId)>,
    grace: Duration,
}

/// What may go now.
#[derive(Debug, Default)]
pub(super) struct Due {
    log_through: Option<Seq>,
    manifests_before: Option<ManifestVersion>,
    segments: Vec<SegmentId>,
}

impl Garbage {
    pub(super) fn new(grace: Duration) -> Self {
        Self { log: LogRetention::new(), manifests: VecDeque::new(), segments: VecDeque::new(), grace }
    }

    /// A manifest is in force that covers the log up to a position.
    pub(super) fn saw_manifest(&mut self, version: u64, covered_seq: u64) {
        self.log.observe(Seq(covered_seq), Instant::now());
        self.manifests.push_back((Instant::now(), version));
    }

    /// No manifest in force names a segment any more.
    pub(super) fn dropped(&mut self, segment: SegmentId) {
        self.segments.push_back((Instant::now() + self.grace, segment));
    }

    /// A segment that no manifest in force names, perhaps of a build under way elsewhere.
    pub(super) fn orphan(&mut self, segment: SegmentId, grace: Duration) {
        self.segments.push_back((Instant::now() + grace, segment));
    }

    /// Keeps segments that could not be deleted, to be tried again.
    pub(super) fn put_back(&mut self, due: Due) {
        due.segments.into_iter().for_each(|segment| self.dropped(segment));
    }

    /// What may go now.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        let mut due = Due { log_through: self.log.due(now), ..Due::default() };
        while let Some((seen, version)) = self.manifests.front()
            && now.saturating_duration_since(*seen) >= self.grace
        {
            due.manifests_before = version.checked_sub(KEEP_MANIFESTS).map(ManifestVersion);
            self.manifests.pop_front();
        }
        let segments = std::mem::take(&mut self.segments);
        let (gone, kept): (VecDeque<_>, _) = segments.into_iter().partition(|(at, _)| *at <= now);
        self.segments = kept;
        due.segments = gone.into_iter().map(|(_, segment)| segment).collect();
        due
    }
}

impl Due {
    /// Deletes it from the store.
    ///
    /// # Errors
    /// The store's. Segments that are left then are for [`Garbage::put_back`]; log entries and manifests go with later ones.
    pub(super) async fn delete(&mut self, core: &Core) -> Result<(), StoreError> {
        if let Some(witness) = self.log_through {
            core.log.delete_through(Seq(witness.0.saturating_sub(1))).await?;
        }
        if let Some(version) = self.manifests_before {
            core.manifests.delete_before(version).await?;
        }
        if self.segments.is_empty() {
            return Ok(());
        }
        // A segment that was orphaned here may have been committed elsewhere since.
        let newest = core.manifests.newest().await?;
        let named: Vec<String> = newest
            .map(|(_, manifest)| manifest.segments.into_iter().map(|entry| entry.id).collect())
            .unwrap_or_default();
        while let Some(segment) = self.segments.last() {
            if !named.iter().any(|id| id == segment.as_str()) {
                core.files.store.delete_prefix(&segment.path(&core.id)).await?;
                core.files.forget(segment);
            }
            self.segments.pop();
        }
        Ok(())
    }
}
