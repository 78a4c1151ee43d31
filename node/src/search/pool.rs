//! The pool that search work runs on: as many jobs at once as the graphs have threads reserved, a bounded number waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::Stop;
use crate::error::NodeError;

/// Bounds the search work of a node.
#[derive(Debug)]
pub struct SearchPool {
    permits: Arc<Semaphore>,
    threads: usize,
    waiting: AtomicUsize,
    max_waiting: usize,
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SearchPool {
    /// A pool of `threads` jobs at once and `max_waiting` in the queue.
    pub fn new(threads: usize, max_waiting: usize) -> Self {
        let threads = threads.clamp(1, 1024);
        Self { permits: Arc::new(Semaphore::new(threads)), threads, waiting: AtomicUsize::new(0), max_waiting }
    }

    /// Jobs at once.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs a job on a thread of its own, when it is its turn.
    ///
    /// # Errors
    /// [`NodeError::Overloaded`] where the queue is full, [`NodeError::Deadline`] where the turn came too late, and the
    /// job's own.
    pub async fn run<T: Send + 'static>(
        &self,
        stop: Stop,
        job: impl FnOnce(&Stop) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait_for_turn(&stop).await?,
        };
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            if stop.is_set() { Err(stop.error()) } else { job(&stop) }
        });
        work.await.map_err(|error| NodeError::Internal(format!("a search job failed: {error}")))?
    }

    async fn wait_for_turn(&self, stop: &Stop) -> Result<tokio::sync::OwnedSemaphorePermit, NodeError> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max_waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(NodeError::Overloaded {
                what: format!("{} searches are waiting already", self.max_waiting),
                retry_after: Duration::from_millis(100),
            });
        }
        let _waiting = Waiting(&self.waiting);
        match tokio::time::timeout(stop.deadline().left(), Arc::clone(&self.permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(NodeError::ShuttingDown),
            Err(_) => Err(NodeError::Deadline { what: "the search began" }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use antiphon_proto::deadline::Deadline;

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_late_turn_is_a_deadline() {
        let pool = Arc::new(SearchPool::new(1, 1));
        let (release, wait) = std::sync::mpsc::sync_channel::<()>(1);
        let (long, _guard) = Stop::new(Deadline::after(Duration::from_secs(60)));
        let busy = tokio::spawn({
            let (pool, long) = (Arc::clone(&pool), long.clone());
            async move { pool.run(long, move |_| wait.recv().map_err(|_| NodeError::Cancelled)).await }
        });
        while pool.permits.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let (short, _guard) = Stop::new(Deadline::after(Duration::from_millis(20)));
        let late = pool.run(short.clone(), |_| Ok(()));
        let refused = async {
            while pool.waiting.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            pool.run(short.clone(), |_| Ok(())).await
        };
        let (late, refused) = tokio::join!(late, refused);
        assert!(matches!(late, Err(NodeError::Deadline { .. })), "{late:?}");
        assert!(matches!(refused, Err(NodeError::Overloaded { .. })), "{refused:?}");
        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
        pool.run(long, |_| Ok(())).await.unwrap();
    }
}
