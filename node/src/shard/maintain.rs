//! The background of a shard: follows the log, seals, merges, collects garbage, lets views expire.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::core::Core;
use crate::error::NodeError;

/// How often the background looks whether there is something to do.
const TICK: Duration = Duration::from_millis(100);
/// How long a job that failed waits before it is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// How often segments that were set aside are tried again.
const QUARANTINE_RETRY: Duration = Duration::from_secs(30);
/// How often garbage is looked for, at most; more often where it is kept for less.
const GARBAGE_INTERVAL: Duration = Duration::from_secs(5);
/// How many times rarer the log is looked at where others tell of their writes.
const TOLD_POLLS_EVERY: u32 = 10;

/// A background job, at most one of a kind at a time. Broken off when dropped: what is stopped must not commit any more.
#[derive(Default)]
struct Job {
    task: Option<JoinHandle<Result<(), NodeError>>>,
    not_before: Option<Instant>,
}

impl Job {
    /// Whether another may begin. Takes in the end of the last one.
    async fn is_free(&mut self, core: &Core, what: &str) -> bool {
        if self.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return false;
        }
        if let Some(task) = self.task.take() {
            let outcome = task.await.unwrap_or_else(|error| Err(NodeError::Internal(error.to_string())));
            if let Err(error) = outcome
                && !core.stop.load(Ordering::Relaxed)
            {
                tracing::warn!(shard = %core.id, %error, "{what} failed and will be tried again");
                self.not_before = Some(Instant::now() + RETRY_AFTER);
            }
        }
        self.not_before.is_none_or(|moment| Instant::now() >= moment)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Runs until the shard is stopped, and ends when its jobs have.
pub(super) async fn maintain(core: Arc<Core>) {
    let garbage_interval = GARBAGE_INTERVAL.min(core.config.gc_grace).max(TICK);
    let (mut sealing, mut merging, mut adopting) = (Job::default(), Job::default(), Job::default());
    let mut was_owner = true;
    let (mut last_poll, mut last_garbage, mut last_quarantine) = (Instant::now(), Instant::now(), Instant::now());
    while !core.stop.load(Ordering::Relaxed) {
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = core.stopped.notified() => break,
        }
        core.views.expire();
        let is_owner = core.is_owner.load(Ordering::Relaxed);
        let polls = if core.is_told.load(Ordering::Relaxed) { TOLD_POLLS_EVERY } else { 1 };
        if last_poll.elapsed() >= core.config.poll_interval * polls {
            let followed = match core.follow().await {
                Ok(()) if !is_owner => core.look_for_manifest().await,
                outcome => outcome,
            };
            if let Err(error) = followed {
                tracing::warn!(shard = %core.id, %error, "the log could not be followed");
            }
            last_poll = Instant::now();
        }
        if is_owner && !was_owner {
            core.take_over_garbage().await;
        }
        was_owner = is_owner;
        if core.is_behind_manifest() && adopting.is_free(&core, "taking over a manifest").await {
            let core = Arc::clone(&core);
            adopting.task = Some(tokio::spawn(async move { core.adopt().await }));
        }
        let (unsealed_for, idle) = match core.mutation.try_lock() {
            Ok(mutation) => (
                mutation.unsealed_since.map_or(Duration::ZERO, |since| since.elapsed()),
                mutation.last_write.elapsed() >= core.config.merging.idle,
            ),
            Err(_) => (Duration::ZERO, false),
        };
        let view = core.current();
        if core.wants_sealing(&view, unsealed_for) && sealing.is_free(&core, "sealing").await {
            let core = Arc::clone(&core);
            sealing.task = Some(tokio::spawn(async move { core.seal().await }));
        }
        if is_owner
            && merging.is_free(&core, "merging").await
            && let Some(chosen) = core.wants_merging(&view, idle && view.num_unsealed() == 0)
        {
            let core = Arc::clone(&core);
            merging.task = Some(tokio::spawn(async move { core.merge(chosen).await }));
        }
        if last_garbage.elapsed() >= garbage_interval {
            core.collect_garbage().await;
            last_garbage = Instant::now();
        }
        if !view.quarantined.is_empty() && last_quarantine.elapsed() >= QUARANTINE_RETRY {
            let mut mutation = core.mutation.lock().await;
            if let Err(error) = core.reload(&mut mutation).await {
                tracing::warn!(shard = %core.id, %error, "segments set aside could not be tried again");
            }
            last_quarantine = Instant::now();
        }
    }
    for task in [sealing.task.take(), merging.task.take(), adopting.task.take()].into_iter().flatten() {
        task.abort();
        // It was broken off, or had ended: either is fine.
        let _ = task.await;
    }
}

/// Notes how long a piece of background work took.
pub(super) fn record_task(task: &'static str, began: Instant, is_done: bool) {
    let outcome = if is_done { "done" } else { "failed" };
    metrics::histogram!("antiphon_background_seconds", "task" => task, "outcome" => outcome).record(began.elapsed());
}

impl Core {
    /// Notes what an owner that went may have left.
    async fn take_over_garbage(&self) {
        let mut mutation = self.mutation.lock().await;
        if let Err(error) = self.note_orphans(&mut mutation).await {
            tracing::warn!(shard = %self.id, %error, "segments that nothing names could not be looked for");
        }
    }

    async fn collect_garbage(&self) {
        let mut due = match self.mutation.try_lock() {
            Ok(mut mutation) => mutation.garbage.due(Instant::now()),
            Err(_) => return,
        };
        if !self.is_owner.load(Ordering::Relaxed) {
            // The owner's to delete.
            return;
        }
        if let Err(error) = due.delete(self).await {
            tracing::warn!(shard = %self.id, %error, "garbage could not be deleted and will be tried again");
            self.mutation.lock().await.garbage.put_back(due);
        }
    }
}
