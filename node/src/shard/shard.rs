//! The handle of a shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use antiphon_proto::deadline::Deadline;
use antiphon_proto::internal::{Freshness, ViewChoice, ViewName, view_choice::Choice};
use antiphon_proto::store::{LogEntry, LogOp};
use antiphon_store::{Log, LogCursor, Manifests, ShardId, Store};
use arc_swap::ArcSwap;
use prost::Message;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::Span;

use super::core::{Core, Mutation};
use super::garbage::Garbage;
use super::segment_files::SegmentFiles;
use super::writer::{PendingWrite, WriteDone, write_groups};
use super::{maintain, rebuild, recover};
use crate::cache::SegmentCache;
use crate::cluster::Outbox;
use crate::config::NodeConfig;
use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::view::{View, ViewTable};

/// What shards of one node share.
#[derive(Clone)]
pub struct ShardContext {
    /// The store.
    pub store: Store,
    /// Settings.
    pub config: Arc<NodeConfig>,
    /// Room for segment files.
    pub cache: Arc<SegmentCache>,
    /// Searches at once.
    pub threads: usize,
}

/// How long background work may take to end before it is broken off.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// How long writes that wait may take before a shard that gives way to another is stopped all the same.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);

struct Tasks {
    writer: JoinHandle<()>,
    maintenance: JoinHandle<()>,
}

/// An open shard. Cheap to share; stops with [`Shard::stop`].
pub struct Shard {
    pub(super) core: Arc<Core>,
    writes: mpsc::Sender<PendingWrite>,
    tasks: Mutex<Option<Tasks>>,
    stopping: AtomicBool,
    queued_bytes: AtomicU64,
}

/// Counts a write's bytes while it waits.
struct Queued<'s> {
    total: &'s AtomicU64,
    bytes: u64,
}

impl<'s> Queued<'s> {
    /// Counts `bytes`; none where that would pass `most`. A single write always fits into an empty queue.
    fn admit(total: &'s AtomicU64, bytes: u64, most: u64) -> Option<Self> {
        let before = total.fetch_add(bytes, Ordering::SeqCst);
        let queued = Self { total, bytes };
        (before == 0 || before.saturating_add(bytes) <= most).then_some(queued)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

impl Shard {
    /// Opens a shard: its segments are mapped, its log is applied. Starts the background work.
    ///
    /// # Errors
    /// [`NodeError::Corruption`] where the manifest or the log is damaged; the store's.
    pub async fn open(id: ShardId, schema: Arc<ShardSchema>, context: ShardContext) -> Result<Self, NodeError> {
        let ShardContext { store, config, cache, threads } = context;
        let log = Log::new(store.clone(), id.clone());
        let manifests = Manifests::new(store.clone(), id.clone());
        let (_, cursor) = LogCursor::open(log.clone(), manifests.clone()).await?;
        let mutation = Mutation {
            cursor,
            entries: Default::default(),
            frozen: 0,
            unsealed_since: None,
            last_write: Instant::now(),
            garbage: Garbage::new(config.gc_grace),
        };
        let core = Arc::new(Core {
            files: SegmentFiles { store, shard: id.clone(), cache },
            views: ViewTable::new(config.view_retention, config.max_views),
            schema,
            threads,
            log,
            manifests,
            view: ArcSwap::from_pointee(View::empty()),
            stop: Arc::new(AtomicBool::new(false)),
            is_owner: AtomicBool::new(true),
            is_told: AtomicBool::new(false),
            outbox: Outbox::new(id.uid().as_str(), id.shard()),
            heard_manifest: AtomicU64::new(0),
            rebuilding: Mutex::default(),
            is_stale: AtomicBool::new(false),
            stopped: Notify::new(),
            mutation: Mutex::new(mutation),
            fresh_since: std::sync::Mutex::new(Instant::now()),
            id,
            config,
        });
        core.start().await?;
        let (writes, pending) = mpsc::channel(core.config.write_queue.max(1));
        let tasks = Tasks {
            writer: tokio::spawn(write_groups(Arc::clone(&core), pending)),
            maintenance: tokio::spawn(maintain::maintain(Arc::clone(&core))),
        };
        Ok(Self {
            core,
            writes,
            tasks: Mutex::new(Some(tasks)),
            stopping: AtomicBool::new(false),
            queued_bytes: AtomicU64::new(0),
        })
    }

    /// Whether a newer schema is needed: a caller goes by it, or data of it was met.
    pub fn is_behind(&self, schema_version: u32) -> bool {
        schema_version > self.core.schema.version || self.core.is_stale.load(Ordering::Relaxed)
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<ShardSchema> {
        &self.core.schema
    }

    /// Writes operations as one: all or nothing. Returns once they are durable and visible. They are taken when they queue:
    /// where they are left, nothing was written.
    ///
    /// # Errors
    /// [`NodeError::Overloaded`] where too much is unsealed or waiting and [`NodeError::ShuttingDown`] where the shard is
    /// closed; nothing was written. [`NodeError::Deadline`] and [`NodeError::StoreUnavailable`]: the write may or may not have
    /// happened.
    pub async fn write(&self, ops: &mut Vec<LogOp>, deadline: Deadline) -> Result<WriteDone, NodeError> {
        let config = &self.core.config;
        let view = self.core.current();
        let overloaded = |what: String, retry_ms: u64| {
            Err(NodeError::Overloaded { what, retry_after: Duration::from_millis(retry_ms) })
        };
        if view.num_unsealed() >= config.max_unsealed_rows || view.live_bytes() >= config.max_unsealed_bytes {
            return overloaded(format!("{} rows wait to be sealed", view.num_unsealed()), 1000);
        }
        let bytes = ops.iter().map(Message::encoded_len).sum::<usize>() as u64;
        let Some(_queued) = Queued::admit(&self.queued_bytes, bytes, config.write_queue_bytes) else {
            return overloaded(format!("{} bytes of writes wait already", config.write_queue_bytes), 200);
        };
        // Looked at behind the count: whoever closes the shard either sees this write in it or is seen here.
        if self.stopping.load(Ordering::SeqCst) {
            return Err(NodeError::ShuttingDown);
        }
        let place = match self.writes.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Full(())) => {
                return overloaded(format!("{} writes wait already", config.write_queue), 200);
            }
            Err(mpsc::error::TrySendError::Closed(())) if self.stopping.load(Ordering::SeqCst) => {
                return Err(NodeError::ShuttingDown);
            }
            Err(mpsc::error::TrySendError::Closed(())) => {
                return Err(NodeError::Internal("what writes the shard's log has ended".into()));
            }
        };
        let (reply, done) = oneshot::channel();
        place.send(PendingWrite { ops: std::mem::take(ops), reply, span: Span::current() });
        match tokio::time::timeout(deadline.left(), done).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(NodeError::StoreUnavailable(
                "the node stopped before the write was acknowledged; it may or may not have happened".into(),
            )),
            Err(_) => Err(NodeError::Deadline { what: "the write was acknowledged; it may or may not have happened" }),
        }
    }

    /// The view that a search asked for; kept from now on for the retention time.
    ///
    /// # Errors
    /// [`NodeError::ViewExpired`] where a named one is not held; the store's where it had to look for others' writes.
    pub async fn view(&self, choice: &ViewChoice, deadline: Deadline) -> Result<Arc<View>, NodeError> {
        let view = match &choice.choice {
            Some(Choice::Named(name)) => match self.kept_view(name) {
                Ok(kept) => kept,
                Err(expired) => {
                    let current = self.core.current();
                    if current.name() == *name {
                        current
                    } else {
                        self.view_of_another(name, expired, deadline).await?
                    }
                }
            },
            Some(Choice::Fresh(freshness)) => self.fresh(*freshness, deadline).await?,
            None => self.core.current(),
        };
        Ok(self.core.views.keep(&view))
    }

    /// A view that an answer of another node named, or of this one before it was started anew.
    async fn view_of_another(
        &self,
        name: &ViewName,
        expired: NodeError,
        deadline: Deadline,
    ) -> Result<Arc<View>, NodeError> {
        if self.core.views.has_expired(name) {
            return Err(expired);
        }
        // On its own task: it is of use to the next call though this caller goes.
        let (core, name) = (Arc::clone(&self.core), *name);
        let making = tokio::spawn(async move {
            let _one_at_a_time = core.rebuilding.lock().await;
            if let Some(made) = core.views.find(&name) {
                return Ok(Some(made));
            }
            let made = rebuild::rebuild(&core, &name).await?.map(Arc::new);
            Ok::<_, NodeError>(made.map(|view| core.views.keep(&view)))
        });
        let made = tokio::time::timeout(deadline.left(), making)
            .await
            .map_err(|_| NodeError::Deadline { what: "the view was made anew" })?
            .map_err(|error| NodeError::Internal(error.to_string()))??;
        made.ok_or(expired)
    }

    /// The very view that an earlier answer named: another of its name shows the same documents, and may have their rows at
    /// other addresses.
    ///
    /// # Errors
    /// [`NodeError::ViewExpired`].
    pub fn kept_view(&self, name: &ViewName) -> Result<Arc<View>, NodeError> {
        let expired = NodeError::ViewExpired { seq: name.seq, manifest_version: name.manifest_version };
        self.core.views.find(name).ok_or(expired)
    }

    /// The newest view.
    pub fn current(&self) -> Arc<View> {
        self.core.current()
    }

    /// The newest view, after a look for writes of others where that is asked for.
    ///
    /// # Errors
    /// The store's; [`NodeError::Invalid`] for a position that was never written.
    pub async fn fresh(&self, freshness: Freshness, deadline: Deadline) -> Result<Arc<View>, NodeError> {
        let behind = self.core.current().seq < freshness.at_least_seq;
        if freshness.refresh || behind {
            // On its own task: what was read of the log must be applied, though the caller goes.
            let core = Arc::clone(&self.core);
            let following = tokio::spawn(async move { core.follow().await });
            tokio::time::timeout(deadline.left(), following)
                .await
                .map_err(|_| NodeError::Deadline { what: "the log was read" })?
                .map_err(|error| NodeError::Internal(error.to_string()))??;
        }
        let view = self.core.current();
        if view.seq < freshness.at_least_seq {
            return Err(NodeError::Invalid(format!("nothing was written at seq {}", freshness.at_least_seq)));
        }
        Ok(view)
    }

    /// Takes over entries that another node appended, and word of a manifest that it committed.
    ///
    /// # Errors
    /// As for reading the log.
    pub async fn take_pushed(
        &self,
        first_seq: u64,
        entries: Vec<LogEntry>,
        manifest_version: u64,
    ) -> Result<u64, NodeError> {
        let core = Arc::clone(&self.core);
        core.hear_of_manifest(manifest_version);
        // On its own task: what the cursor has passed must be applied, though the caller goes.
        let taking = tokio::spawn(async move {
            if !entries.is_empty() {
                core.take_pushed(first_seq, entries).await?;
            }
            Ok(core.current().seq)
        });
        taking.await.map_err(|error| NodeError::Internal(error.to_string()))?
    }

    /// Says whether this node seals, merges and collects the shard's garbage, which is so until said otherwise; from now on
    /// others tell of their writes.
    pub fn set_owner(&self, is_owner: bool) {
        self.core.is_told.store(true, Ordering::Relaxed);
        if self.core.is_owner.swap(is_owner, Ordering::Relaxed) != is_owner {
            tracing::info!(shard = %self.core.id, is_owner, "ownership changed");
        }
    }

    /// Whether this node seals, merges and collects the shard's garbage.
    pub fn is_owner(&self) -> bool {
        self.core.is_owner.load(Ordering::Relaxed)
    }

    /// How many views are kept for snapshots.
    pub fn num_kept_views(&self) -> usize {
        self.core.views.len()
    }

    /// Where this node's writes are told.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.core.outbox
    }

    /// Takes no more writes, and waits until none waits any more, for a while at most.
    pub async fn drain(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        let began = Instant::now();
        while self.queued_bytes.load(Ordering::SeqCst) > 0 && began.elapsed() < DRAIN_PATIENCE {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Stops taking writes, finishes the group under way, and ends the background work: what is returned from writes nothing
    /// to the store any more. Nothing is sealed: the log has it.
    pub async fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.core.stop();
        // Behind the lock no group is half written.
        drop(self.core.mutation.lock().await);
        let Some(Tasks { writer, mut maintenance }) = self.tasks.lock().await.take() else { return };
        writer.abort();
        if tokio::time::timeout(STOP_PATIENCE, &mut maintenance).await.is_err() {
            maintenance.abort();
        }
        // Broken off, as was asked.
        let _ = writer.await;
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.core.stop();
    }
}

impl Core {
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.stopped.notify_one();
    }

    /// Loads the shard and notes what an earlier process may have left in the store.
    async fn start(&self) -> Result<(), NodeError> {
        let mut mutation = self.mutation.lock().await;
        let began = Instant::now();
        let recovered = recover::recover(self, &View::empty(), &Self::nothing_landed()).await?;
        mutation.cursor = recovered.cursor;
        mutation.entries = recovered.entries;
        mutation.garbage.saw_manifest(recovered.view.manifest_version, recovered.view.covered_seq);
        self.note_orphans(&mut mutation).await?;
        let is_whole = recovered.view.quarantined.is_empty();
        let (covered_seq, sealed) = (recovered.view.covered_seq, recovered.view.sealed.clone());
        self.publish(&mut mutation, recovered.view);
        self.note_fresh(began);
        if recovered.schema_version < self.schema.version && is_whole {
            // From now on nobody with an older schema goes on from here (INV-18), and views have names of their own, for
            // the same rows may lie elsewhere than under the older schema. Whoever was first has done the same.
            self.commit(&mut mutation, covered_seq, sealed, None).await?;
        }
        Ok(())
    }

    /// Notes the segments in the store that no manifest in force names, perhaps of a build under way elsewhere.
    pub(super) async fn note_orphans(&self, mutation: &mut Mutation) -> Result<(), NodeError> {
        for name in self.files.store.list_dirs(&format!("{}/segments", self.id.path())).await? {
            if let Ok(id) = name.parse()
                && !mutation.entries.contains_key(&id)
            {
                mutation.garbage.orphan(id, self.config.orphan_grace);
            }
        }
        Ok(())
    }
}
