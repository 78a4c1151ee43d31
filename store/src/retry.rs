//! The bound of every wait on the store: one answer by [`within`], a call with its retries by `retrying!`.

use std::future::Future;
use std::time::{Duration, Instant};

use crate::error::StoreError;

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Waits for `future` at most `limit`.
pub(crate) async fn within<T>(limit: Duration, path: &str, future: impl Future<Output = T>) -> Result<T, StoreError> {
    tokio::time::timeout(limit, future).await.map_err(|_| StoreError::timed_out(path, limit))
}

/// Pauses between tries, growing and random, until a deadline.
#[derive(Debug)]
pub(crate) struct Retry {
    deadline: Instant,
    pause: Duration,
}

impl Retry {
    /// No try begins later than `patience` from now.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { deadline: Instant::now() + patience, pause: FIRST_PAUSE }
    }

    /// Pauses; false if there is no time left for another try.
    pub(crate) async fn again(&mut self) -> bool {
        let pause = self.pause.mul_f64(rand::random_range(0.5..1.5));
        if Instant::now() + pause >= self.deadline {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }

    /// What to do after a try: `Some` is the outcome to return; `None`, after a pause, means to try again.
    pub(crate) async fn settle<T>(&mut self, outcome: Result<T, StoreError>) -> Option<Result<T, StoreError>> {
        match outcome {
            Err(error) if error.is_retryable() => {
                if !self.again().await {
                    return Some(Err(error));
                }
                tracing::debug!(%error, "trying again");
                None
            }
            done => Some(done),
        }
    }
}

/// Awaits `$attempt`, an expression that makes a future, until it succeeds, fails for good, or `$patience` is over.
/// (A function that takes an async closure would make futures that can't be sent between threads.)
macro_rules! retrying {
    ($patience:expr, $attempt:expr) => {{
        let mut retry = $crate::retry::Retry::new($patience);
        loop {
            let outcome = $attempt.await;
            if let Some(done) = retry.settle(outcome).await {
                break done;
            }
        }
    }};
}
pub(crate) use retrying;
