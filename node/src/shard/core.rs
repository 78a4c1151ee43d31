//! The state of a shard, and the transitions that every writer and background job goes through, one at a time.
//!
//! INV-8: views are published in order of their `seq`; what was acknowledged is in the published view.
//! INV-9: a manifest is made from the published view under the mutation lock, so its tombstones are those of every
//! operation up to its `tombstone_seq`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Instant;

use antiphon_proto::store::{LogEntry, Manifest, SegmentEntry};
use antiphon_store::{
    Commit, FENCE_AFTER, Log, LogCursor, LogPoll, ManifestVersion, Manifests, SegmentId, Seq, ShardId,
};
use arc_swap::ArcSwap;
use tokio::sync::{Mutex, Notify};

use super::garbage::Garbage;
use super::manifest_entry::encode_tombstones;
use super::recover::Landed;
use super::segment_files::SegmentFiles;
use crate::cluster::Outbox;
use crate::config::NodeConfig;
use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::view::{Applied, OpGroup, SegmentView, View, ViewTable, apply, fold, install};

/// Entries applied together while catching up.
const ENTRIES_AT_ONCE: usize = 256;

/// A shard's state.
pub(super) struct Core {
    pub(super) id: ShardId,
    pub(super) schema: Arc<ShardSchema>,
    pub(super) config: Arc<NodeConfig>,
    pub(super) threads: usize,
    pub(super) files: SegmentFiles,
    pub(super) log: Log,
    pub(super) manifests: Manifests,
    pub(super) view: ArcSwap<View>,
    pub(super) views: ViewTable,
    pub(super) stop: Arc<AtomicBool>,
    /// Whether this node seals, merges and collects garbage.
    pub(super) is_owner: AtomicBool,
    /// Whether other nodes tell of their writes, so that the store need not be asked as often.
    pub(super) is_told: AtomicBool,
    /// Where this node's writes are told.
    pub(super) outbox: Outbox,
    /// The highest manifest that others told of.
    pub(super) heard_manifest: AtomicU64,
    /// One view at a time is made anew.
    pub(super) rebuilding: Mutex<()>,
    /// Set when data of a newer schema was met.
    pub(super) is_stale: AtomicBool,
    /// Told when `stop` is set.
    pub(super) stopped: Notify,
    pub(super) mutation: Mutex<Mutation>,
    /// When the shard last knew that it was at the log's end by the store's own word.
    pub(super) fresh_since: StdMutex<Instant>,
}

/// What only the holder of the mutation lock touches.
pub(super) struct Mutation {
    pub(super) cursor: LogCursor,
    /// Manifest entries of the sealed segments, without tombstones.
    pub(super) entries: HashMap<SegmentId, SegmentEntry>,
    /// Live segments, from the oldest on, that a sealing reads: they are not folded.
    pub(super) frozen: usize,
    /// When the oldest unsealed write came.
    pub(super) unsealed_since: Option<Instant>,
    pub(super) last_write: Instant,
    pub(super) garbage: Garbage,
}

/// What became of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Committed {
    /// It is in force and installed.
    Yes,
    /// Another writer was first; the shard was loaded anew.
    No,
}

impl Core {
    /// The published view.
    pub(super) fn current(&self) -> Arc<View> {
        self.view.load_full()
    }

    pub(super) fn publish(&self, mutation: &mut Mutation, view: View) {
        if view.num_unsealed() == 0 {
            mutation.unsealed_since = None;
        } else if mutation.unsealed_since.is_none() {
            mutation.unsealed_since = Some(Instant::now());
        }
        self.view.store(Arc::new(view));
    }

    /// Applies groups to the published view, folds, and publishes. Returns each group's number of deleted keys.
    pub(super) async fn apply(&self, mutation: &mut Mutation, groups: Vec<OpGroup>) -> Result<Vec<u64>, NodeError> {
        let began = Instant::now();
        let (view, schema, threads, frozen) = (self.current(), Arc::clone(&self.schema), self.threads, mutation.frozen);
        let work = tokio::task::spawn_blocking(move || {
            let Applied { view, num_deleted } = apply(&view, &schema, groups, threads)?;
            Ok::<_, NodeError>((fold(view, &schema, frozen, threads)?, num_deleted))
        });
        let (view, num_deleted) = work.await.map_err(|error| NodeError::Internal(error.to_string()))??;
        self.publish(mutation, view);
        metrics::histogram!("antiphon_apply_seconds").record(began.elapsed());
        Ok(num_deleted)
    }

    /// Applies every entry of the log that others appended. Loads the shard anew where the log was sealed past it.
    pub(super) async fn catch_up(&self, mutation: &mut Mutation) -> Result<(), NodeError> {
        self.align(mutation).await?;
        loop {
            match mutation.cursor.poll(ENTRIES_AT_ONCE).await? {
                LogPoll::Entries(entries) if entries.is_empty() => return Ok(()),
                LogPoll::Entries(entries) => {
                    let groups =
                        entries.into_iter().map(|(seq, entry)| self.group_of(seq, entry)).collect::<Result<_, _>>()?;
                    self.apply(mutation, groups).await?;
                }
                LogPoll::Behind => self.reload(mutation).await?,
            }
        }
    }

    /// Whether an absent entry at the next position still means that the log ends here: positions are collected long after
    /// they were covered, and it was not covered when last looked at.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh_since.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < FENCE_AFTER / 2
    }

    /// Notes that the log was read to its end after this moment.
    pub(super) fn note_fresh(&self, moment: Instant) {
        *self.fresh_since.lock().unwrap_or_else(PoisonError::into_inner) = moment;
    }

    /// Loads the shard anew where the cursor is not right behind the published view: something was read and not applied.
    pub(super) async fn align(&self, mutation: &mut Mutation) -> Result<(), NodeError> {
        if self.current().seq + 1 == mutation.cursor.next().0 { Ok(()) } else { self.reload(mutation).await }
    }

    /// Loads the newest manifest and the log beyond it. Opened segments are kept where it names them, and so are views that
    /// answers named: searches under way and snapshots go on in them.
    pub(super) async fn reload(&self, mutation: &mut Mutation) -> Result<(), NodeError> {
        self.reload_with(mutation, &Self::nothing_landed()).await
    }

    /// [`Core::reload`] with segments that were opened beforehand.
    pub(super) async fn reload_with(&self, mutation: &mut Mutation, landed: &Landed) -> Result<(), NodeError> {
        let held = self.current();
        let recovered = super::recover::recover(self, &held, landed).await?;
        mutation.cursor = recovered.cursor;
        mutation.entries = recovered.entries;
        mutation.frozen = 0;
        mutation.garbage.saw_manifest(recovered.view.manifest_version, recovered.view.covered_seq);
        if held.name() != recovered.view.name() {
            self.publish(mutation, recovered.view);
        } else if held.quarantined != recovered.view.quarantined {
            // Of the same name and other rows: what was kept under the name must not be mistaken for it.
            self.views.forget(&held.name());
            self.publish(mutation, recovered.view);
        }
        // Else it shows what the published one shows, with rows at other addresses.
        Ok(())
    }

    /// Commits a manifest of these sealed segments, made from the published view, and installs it.
    ///
    /// # Errors
    /// The store's. The manifest may then be in force all the same; the next commit finds out.
    pub(super) async fn commit(
        &self,
        mutation: &mut Mutation,
        covered_seq: u64,
        sealed: Vec<Arc<SegmentView>>,
        added: Option<SegmentEntry>,
    ) -> Result<Committed, NodeError> {
        let view = self.current();
        let mut entries = mutation.entries.clone();
        if let Some(entry) = added {
            let id = entry.id.parse().map_err(|error| NodeError::Internal(format!("{error}")))?;
            entries.insert(id, entry);
        }
        let mut segments = Vec::with_capacity(sealed.len());
        for segment in &sealed {
            let entry = segment.id().and_then(|id| entries.get(id));
            let mut entry = entry.cloned().ok_or_else(|| NodeError::Internal("a segment without an entry".into()))?;
            entry.tombstones = encode_tombstones(segment.dead())?;
            segments.push(entry);
        }
        let schema_version = self.schema.version;
        let manifest = Manifest { covered_seq, tombstone_seq: view.seq, segments, schema_version };
        let version = ManifestVersion(view.manifest_version).next();
        match self.manifests.commit(version, &manifest).await? {
            Commit::Committed => {}
            Commit::Lost => {
                self.reload(mutation).await?;
                return Ok(Committed::No);
            }
        }
        let next = install(&view, version.0, covered_seq, sealed, view.quarantined.clone());
        let kept: Vec<_> = next.sealed.iter().filter_map(|segment| segment.id().cloned()).collect();
        for id in entries.keys().filter(|id| !kept.contains(id)) {
            mutation.garbage.dropped(id.clone());
        }
        entries.retain(|id, _| kept.contains(id));
        mutation.entries = entries;
        mutation.garbage.saw_manifest(version.0, covered_seq);
        self.publish(mutation, next);
        self.outbox.manifest(version.0);
        Ok(Committed::Yes)
    }
}

impl Core {
    /// One log entry as a group of operations.
    ///
    /// # Errors
    /// [`NodeError::SchemaStale`] (INV-18).
    pub(super) fn group_of(&self, seq: Seq, entry: LogEntry) -> Result<OpGroup, NodeError> {
        self.check_schema(entry.schema_version)?;
        Ok(OpGroup { seq: seq.0, ops: entry.ops })
    }

    /// Refuses data of a newer schema than the shard's, which would lose its new fields here (INV-18).
    ///
    /// # Errors
    /// [`NodeError::SchemaStale`].
    pub(super) fn check_schema(&self, found: u32) -> Result<(), NodeError> {
        let known = self.schema.version;
        if found <= known {
            return Ok(());
        }
        self.is_stale.store(true, std::sync::atomic::Ordering::Relaxed);
        Err(NodeError::SchemaStale { found, known })
    }
}
