//! The pool that search work runs on: as many threads as the graphs have reserved, and a bounded queue before them.
//!
//! The threads take jobs from the queue themselves. Where a task that waits for its turn hands its job to the runtime,
//! a core idles between two jobs for longer than a short job takes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use tokio::sync::oneshot;

use super::Stop;
use crate::error::NodeError;

type Job = Box<dyn FnOnce() + Send>;

/// Bounds the search work of a node. Its threads end when it is dropped and the queue is empty.
#[derive(Debug)]
pub struct SearchPool {
    queue: Sender<Job>,
    threads: usize,
}

impl SearchPool {
    /// A pool of `threads` jobs at once and `max_waiting` in the queue; at least one of each.
    ///
    /// # Errors
    /// Where a thread cannot be started.
    pub fn start(threads: usize, max_waiting: usize) -> std::io::Result<Self> {
        let threads = threads.clamp(1, 1024);
        let (queue, jobs) = bounded::<Job>(max_waiting.max(1));
        for number in 0..threads {
            let jobs: Receiver<Job> = jobs.clone();
            let run = move || jobs.iter().for_each(|job| job());
            std::thread::Builder::new().name(format!("search-{number}")).spawn(run)?;
        }
        Ok(Self { queue, threads })
    }

    /// Jobs at once.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs a job on one of the threads, when it is its turn.
    ///
    /// # Errors
    /// [`NodeError::Overloaded`] where the queue is full, [`NodeError::Deadline`] where the deadline passes first,
    /// [`NodeError::Internal`] where the job panics, and the job's own.
    pub async fn run<T: Send + 'static>(
        &self,
        stop: Stop,
        job: impl FnOnce(&Stop) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        let left = stop.deadline().left();
        let (answer, answered) = oneshot::channel();
        let work = move || {
            // A job whose caller went, or whose turn comes too late, costs nothing.
            let run = || if stop.is_set() { Err(stop.error()) } else { job(&stop) };
            let panicked = |_| Err(NodeError::Internal("a search job panicked".into()));
            // Where nobody waits any more there is nobody to tell.
            let _ = answer.send(catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(panicked));
        };
        match self.queue.try_send(Box::new(work)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return Err(NodeError::Overloaded {
                    what: format!("{} searches are waiting already", self.queue.len()),
                    retry_after: Duration::from_millis(100),
                });
            }
            Err(TrySendError::Disconnected(_)) => return Err(NodeError::ShuttingDown),
        }
        match tokio::time::timeout(left, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(NodeError::ShuttingDown),
            Err(_) => Err(NodeError::Deadline { what: "the search was done" }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use antiphon_proto::deadline::Deadline;

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_late_turn_is_a_deadline() {
        let pool = Arc::new(SearchPool::start(1, 1).unwrap());
        let (begun, has_begun) = sync_channel::<()>(1);
        let (release, wait) = sync_channel::<()>(1);
        let (long, _guard) = Stop::new(Deadline::after(Duration::from_secs(60)));
        let hold = move |_: &Stop| {
            begun.send(()).map_err(|_| NodeError::Cancelled)?;
            wait.recv().map_err(|_| NodeError::Cancelled)
        };
        let busy = tokio::spawn({
            let (pool, long) = (Arc::clone(&pool), long.clone());
            async move { pool.run(long, hold).await }
        });
        tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();
        let (short, _guard) = Stop::new(Deadline::after(Duration::from_millis(20)));
        let late = pool.run(short.clone(), |_| Ok(()));
        let refused = async {
            while pool.queue.is_empty() {
                tokio::task::yield_now().await;
            }
            pool.run(short.clone(), |_| Ok(())).await
        };
        let (late, refused) = tokio::join!(late, refused);
        assert!(matches!(late, Err(NodeError::Deadline { .. })), "{late:?}");
        assert!(matches!(refused, Err(NodeError::Overloaded { .. })), "{refused:?}");
        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
        while !pool.queue.is_empty() {
            tokio::task::yield_now().await;
        }
        pool.run(long, |_| Ok(())).await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_thread_goes_on() {
        let pool = SearchPool::start(1, 1).unwrap();
        let (stop, _guard) = Stop::new(Deadline::after(Duration::from_secs(60)));
        let panicked = pool.run(stop.clone(), |_| -> Result<(), NodeError> { panic!("as planned") }).await;
        assert!(matches!(panicked, Err(NodeError::Internal(_))), "{panicked:?}");
        assert_eq!(pool.run(stop, |_| Ok(7)).await.unwrap(), 7);
    }
}
