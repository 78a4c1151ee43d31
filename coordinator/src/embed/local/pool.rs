//! The threads that a model in this process runs on: a fixed number, before them two bounded queues. Queries go first, so
//! that an import does not keep searches waiting.
//!
//! Not the pool of searches, which is the node's.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use antiphon_proto::deadline::Deadline;
use tokio::sync::oneshot;

use crate::embed::{EmbedError, Purpose};

type Job = Box<dyn FnOnce() + Send>;

/// Threads with their queues. Dropped, they end after the work they have begun.
pub(super) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    queues: Mutex<Queues>,
    wake: Condvar,
    max_waiting: usize,
}

#[derive(Default)]
struct Queues {
    queries: VecDeque<Job>,
    documents: VecDeque<Job>,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        // Nothing panics while it holds the lock.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// So many threads, and as many jobs waiting in each queue.
    ///
    /// # Errors
    /// Where a thread could not be started.
    pub(super) fn new(name: &str, threads: usize, max_waiting: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { queues: Mutex::default(), wake: Condvar::new(), max_waiting });
        let pool = Self { shared };
        for _ in 0..threads.clamp(1, 256) {
            let shared = Arc::clone(&pool.shared);
            std::thread::Builder::new().name(format!("embed-{name}")).spawn(move || work(&shared))?;
        }
        Ok(pool)
    }

    /// Runs a job when it is its turn. Where nobody waits for it any more it is not begun; once begun it can ask its
    /// argument whether to go on.
    ///
    /// # Errors
    /// [`EmbedError::Overloaded`] where the queue is full, [`EmbedError::Deadline`] where it was not done in time, and
    /// [`EmbedError::Unavailable`] where the job panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        purpose: Purpose,
        deadline: Deadline,
        job: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, EmbedError> {
        let (sender, receiver) = oneshot::channel();
        let work: Job = Box::new(move || {
            if sender.is_closed() {
                return;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| job(&|| !sender.is_closed())));
            // Whoever left does not need it.
            let _ = sender.send(outcome.map_err(|_| EmbedError::Unavailable("the model failed".into())));
        });
        self.submit(purpose, work)?;
        match tokio::time::timeout(deadline.left(), receiver).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(EmbedError::Unavailable("the server is stopping".into())),
            Err(_) => Err(EmbedError::Deadline),
        }
    }

    fn submit(&self, purpose: Purpose, job: Job) -> Result<(), EmbedError> {
        let mut queues = self.shared.lock();
        let queue = match purpose {
            Purpose::Query => &mut queues.queries,
            Purpose::Document => &mut queues.documents,
        };
        if queue.len() >= self.shared.max_waiting {
            return Err(EmbedError::Overloaded(format!("{} texts are waiting already", queue.len())));
        }
        queue.push_back(job);
        drop(queues);
        self.shared.wake.notify_one();
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        queues.is_closed = true;
        queues.queries.clear();
        queues.documents.clear();
        drop(queues);
        self.shared.wake.notify_all();
    }
}

fn work(shared: &Shared) {
    loop {
        let mut queues = shared.lock();
        let job = loop {
            if queues.is_closed {
                return;
            }
            if let Some(job) = queues.queries.pop_front() {
                break job;
            }
            if let Some(job) = queues.documents.pop_front() {
                break job;
            }
            queues = shared.wake.wait(queues).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queues);
        job();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use super::*;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[tokio::test]
    async fn queries_go_first_and_a_full_queue_refuses() {
        let pool = Arc::new(Pool::new("test", 1, 2).unwrap());
        let (release, wait) = sync_channel::<()>(1);
        let (began, begun) = sync_channel::<()>(1);
        let order = Arc::new(Mutex::new(Vec::new()));
        let busy = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move {
                pool.run(Purpose::Document, soon(), move |_| {
                    began.send(()).unwrap();
                    wait.recv().unwrap();
                })
                .await
            }
        });
        tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
        let job = |purpose, name: &'static str| {
            let (pool, order) = (Arc::clone(&pool), Arc::clone(&order));
            async move { pool.run(purpose, soon(), move |_| order.lock().unwrap().push(name)).await }
        };
        let all = async {
            tokio::join!(
                job(Purpose::Document, "document 1"),
                job(Purpose::Document, "document 2"),
                job(Purpose::Document, "document 3"),
                job(Purpose::Query, "query"),
                async { release.send(()).unwrap() },
            )
        };
        let (first, second, refused, query, ()) = all.await;
        assert!(first.is_ok() && second.is_ok() && query.is_ok());
        assert!(matches!(refused, Err(EmbedError::Overloaded(_))), "{refused:?}");
        assert_eq!(*order.lock().unwrap(), ["query", "document 1", "document 2"]);
        busy.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_panic_costs_one_call_and_no_thread() {
        let pool = Pool::new("test", 1, 2).unwrap();
        let outcome = pool.run(Purpose::Query, soon(), |_| panic!("as planned")).await;
        let outcome: Result<(), EmbedError> = outcome;
        assert!(matches!(outcome, Err(EmbedError::Unavailable(_))), "{outcome:?}");
        assert_eq!(pool.run(Purpose::Query, soon(), |_| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_late_job_is_a_deadline_and_learns_of_it() {
        let pool = Pool::new("test", 1, 2).unwrap();
        let (told, tells) = sync_channel::<()>(1);
        let outcome = pool
            .run(Purpose::Query, Deadline::after(Duration::from_millis(20)), move |goes_on| {
                while goes_on() {
                    std::thread::yield_now();
                }
                told.send(()).unwrap();
            })
            .await;
        assert_eq!(outcome, Err(EmbedError::Deadline));
        tokio::task::spawn_blocking(move || tells.recv().unwrap()).await.unwrap();
    }
}
