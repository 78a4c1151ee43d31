//! The pool that search work runs on: as many threads as the graphs have reserved, and a bounded queue before them.
//!
//! The threads take jobs from the queue themselves. Where a task that waits for its turn hands its job to the runtime,
//! a core idles between two jobs for longer than a short job takes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use tokio::sync::oneshot;

use super::Stop;
use crate::error::NodeError;

type Job = Box<dyn FnOnce() + Send>;

/// Most jobs that may wait, whatever the settings say: the queue is allocated at once.
const MAX_QUEUE: usize = 1 << 20;

/// Bounds the search work of a node. Its threads end when it is dropped and the queue is empty.
#[derive(Debug)]
pub struct SearchPool {
    queue: Sender<Job>,
    threads: usize,
    /// Jobs that were taken in and are not done: those that run, and those that wait.
    taken: Arc<AtomicUsize>,
    max_taken: usize,
}

/// A job's place in the pool, until it is done.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        let place = Self(Arc::clone(taken));
        (taken.fetch_add(1, Ordering::Relaxed) < max).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SearchPool {
    /// A pool of `threads` jobs at once and `max_waiting` in the queue; at least one of each.
    ///
    /// # Errors
    /// Where a thread cannot be started.
    pub fn start(threads: usize, max_waiting: usize) -> std::io::Result<Self> {
        let threads = threads.clamp(1, 1024);
        let max_taken = threads.saturating_add(max_waiting.clamp(1, MAX_QUEUE));
        let (queue, jobs) = bounded::<Job>(max_taken);
        for number in 0..threads {
            let jobs: Receiver<Job> = jobs.clone();
            let run = move || jobs.iter().for_each(|job| job());
            std::thread::Builder::new().name(format!("search-{number}")).spawn(run)?;
        }
        Ok(Self { queue, threads, taken: Arc::default(), max_taken })
    }

    /// Jobs at once.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Jobs that run or wait.
    pub fn jobs(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
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
        let Some(place) = Place::take(&self.taken, self.max_taken) else {
            metrics::counter!("antiphon_search_refused_total").increment(1);
            return Err(NodeError::Overloaded {
                what: format!("{} searches run or wait already", self.max_taken),
                retry_after: Duration::from_millis(100),
            });
        };
        let (answer, answered) = oneshot::channel();
        let came = Instant::now();
        let work = move || {
            metrics::histogram!("antiphon_search_wait_seconds").record(came.elapsed());
            // A job whose caller went, or whose turn comes too late, costs nothing.
            let run = || if stop.is_set() { Err(stop.error()) } else { job(&stop) };
            let panicked = |_| Err(NodeError::Internal("a search job panicked".into()));
            let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(panicked);
            drop(place);
            // Where nobody waits any more there is nobody to tell.
            let _ = answer.send(outcome);
        };
        // There is room for as many as have places.
        if self.queue.try_send(Box::new(work)).is_err() {
            return Err(NodeError::ShuttingDown);
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
        while pool.taken.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
        // One runs and one waits, whether or not the thread has taken the first from the queue yet.
        let (one, two) = tokio::join!(pool.run(long.clone(), |_| Ok(())), pool.run(long, |_| Ok(())));
        assert!(one.is_ok() && two.is_ok(), "{one:?} {two:?}");
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
