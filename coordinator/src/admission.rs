//! Which searches run, which wait for their turn, and which are refused.
//!
//! So many run at once. Of those that wait, callers take turns, so that one that asks too much delays itself. While the queue
//! empties now and then, each caller's oldest goes first. Once it has not been empty for a while, more comes than can be done:
//! then each caller's newest goes first, for it is still of use, and those that wait for longer than a search usually takes are
//! refused at once instead of late. Source: adaptive LIFO and controlled delay, in Ben Maurer, "Fail at Scale", ACM Queue 13(8),
//! 2015; the times there are 5 ms for a delay and 100 ms for a burst, here at least those.
//!
//! Not here: the queue before a node's threads (node's `search/pool.rs`), which bounds the work of all coordinators.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use tokio::sync::oneshot;

/// The least that a search may wait when too many come.
const LEAST_DELAY: Duration = Duration::from_millis(5);
/// The least that it may wait otherwise; and how long somebody waits all the time until too many come.
const LEAST_BURST: Duration = Duration::from_millis(100);
/// Of how many searches the usual time is an average, roughly.
const AVERAGED: f64 = 64.0;

/// Lets searches in.
#[derive(Clone)]
pub(crate) struct Admission(Arc<Shared>);

struct Shared {
    max_running: usize,
    max_waiting: usize,
    state: Mutex<State>,
}

struct State {
    running: usize,
    /// Who waits, by caller, the oldest first. No queue is empty.
    waiting: HashMap<String, VecDeque<Waiter>>,
    /// Whose turn it is: each caller that waits, once.
    turns: VecDeque<String>,
    num_waiting: usize,
    last_number: u64,
    /// When nobody waited last.
    last_empty: Instant,
    /// How long a search takes, in seconds.
    usual_s: f64,
}

struct Waiter {
    number: u64,
    wake: oneshot::Sender<Result<Admitted, ApiError>>,
}

/// A search that runs, until this is dropped.
pub(crate) struct Admitted {
    /// None: handed on.
    shared: Option<Arc<Shared>>,
    began: Instant,
}

/// A search that waits; leaves the queue when it is dropped.
struct Waiting<'a> {
    shared: &'a Shared,
    caller: &'a str,
    number: u64,
}

impl Admission {
    /// So many run at once and so many wait; at least one of each.
    pub(crate) fn new(max_running: usize, max_waiting: usize) -> Self {
        let state = State {
            running: 0,
            waiting: HashMap::new(),
            turns: VecDeque::new(),
            num_waiting: 0,
            last_number: 0,
            last_empty: Instant::now(),
            usual_s: 0.0,
        };
        let shared =
            Shared { max_running: max_running.max(1), max_waiting: max_waiting.max(1), state: Mutex::new(state) };
        Self(Arc::new(shared))
    }

    /// Waits for a caller's turn.
    ///
    /// # Errors
    /// OVERLOADED and when to retry; DEADLINE.
    pub(crate) async fn enter(&self, caller: &str, deadline: Deadline) -> Result<Admitted, ApiError> {
        let (waiting, turn, patience) = {
            let mut state = self.0.lock();
            if state.running < self.0.max_running {
                state.running += 1;
                return Ok(Admitted::of(Arc::clone(&self.0)));
            }
            let patience = state.patience();
            let (wake, turn) = oneshot::channel();
            let number = state.push(caller, wake);
            let shed = (state.num_waiting > self.0.max_waiting).then(|| state.shed()).flatten();
            drop(state);
            if let Some(shed) = shed {
                // One that went needs no answer.
                let _ = shed.wake.send(Err(self.overloaded("too many searches wait")));
            }
            (Waiting { shared: &self.0, caller, number }, turn, patience)
        };
        let began = Instant::now();
        let outcome = tokio::time::timeout(patience.min(deadline.left()), turn).await;
        drop(waiting);
        metrics::histogram!("antiphon_search_turn_seconds").record(began.elapsed());
        match outcome {
            Ok(Ok(outcome)) => outcome,
            // Nobody lets go of a waiter without a word.
            Ok(Err(_)) => Err(ApiError::new(ErrorKind::Internal, "a search lost its turn")),
            Err(_) if deadline.is_over() => {
                Err(ApiError::new(ErrorKind::Deadline, "the deadline passed before the search's turn came"))
            }
            Err(_) => Err(self.overloaded("the search's turn did not come in time")),
        }
    }

    fn overloaded(&self, words: &str) -> ApiError {
        metrics::counter!("antiphon_searches_shed_total").increment(1);
        let words = format!("{words}: {} run already", self.0.max_running);
        let retry_after = self.0.lock().burst();
        ApiError::new(ErrorKind::Overloaded, words).with_retry_after(retry_after)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How long is not too long to wait: about as long as a search takes.
    fn delay(&self) -> Duration {
        LEAST_DELAY.max(Duration::from_secs_f64(self.usual_s))
    }

    /// How long may be waited for a burst to pass.
    fn burst(&self) -> Duration {
        LEAST_BURST.max(self.delay() * 2)
    }

    /// Whether somebody has waited all the time for long.
    fn is_overloaded(&self) -> bool {
        self.num_waiting > 0 && self.last_empty.elapsed() > self.burst()
    }

    fn patience(&self) -> Duration {
        if self.is_overloaded() { self.delay() } else { self.burst() }
    }

    fn push(&mut self, caller: &str, wake: oneshot::Sender<Result<Admitted, ApiError>>) -> u64 {
        if self.num_waiting == 0 {
            self.last_empty = Instant::now();
        }
        self.last_number += 1;
        let waiter = Waiter { number: self.last_number, wake };
        match self.waiting.get_mut(caller) {
            Some(queue) => queue.push_back(waiter),
            None => {
                self.turns.push_back(caller.to_owned());
                self.waiting.insert(caller.to_owned(), VecDeque::from([waiter]));
            }
        }
        self.num_waiting += 1;
        self.last_number
    }

    /// Whose turn it is; none where nobody waits.
    fn next(&mut self) -> Option<Waiter> {
        let is_overloaded = self.is_overloaded();
        let caller = self.turns.pop_front()?;
        let waiter = self.take(&caller, |queue| if is_overloaded { queue.pop_back() } else { queue.pop_front() });
        if self.waiting.contains_key(&caller) {
            self.turns.push_back(caller);
        }
        waiter
    }

    /// The oldest of the caller that has most waiting; of several, of the one whose oldest is older.
    fn shed(&mut self) -> Option<Waiter> {
        let rank = |queue: &VecDeque<Waiter>| (queue.len(), Reverse(queue.front().map(|oldest| oldest.number)));
        let (caller, _) = self.waiting.iter().max_by_key(|(_, queue)| rank(queue))?;
        let caller = caller.clone();
        let shed = self.take(&caller, VecDeque::pop_front);
        self.forget_turn(&caller);
        shed
    }

    fn remove(&mut self, caller: &str, number: u64) {
        self.take(caller, |queue| {
            let place = queue.iter().position(|waiter| waiter.number == number)?;
            queue.remove(place)
        });
        self.forget_turn(caller);
    }

    fn take(&mut self, caller: &str, take: impl FnOnce(&mut VecDeque<Waiter>) -> Option<Waiter>) -> Option<Waiter> {
        let queue = self.waiting.get_mut(caller)?;
        let taken = take(queue)?;
        if queue.is_empty() {
            self.waiting.remove(caller);
        }
        self.num_waiting -= 1;
        if self.num_waiting == 0 {
            self.last_empty = Instant::now();
        }
        Some(taken)
    }

    /// Who waits no more has no turn.
    fn forget_turn(&mut self, caller: &str) {
        if !self.waiting.contains_key(caller) {
            self.turns.retain(|other| other != caller);
        }
    }
}

impl Admitted {
    fn of(shared: Arc<Shared>) -> Self {
        Self { shared: Some(shared), began: Instant::now() }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        let took = self.began.elapsed().as_secs_f64();
        let mut is_noted = false;
        loop {
            let next = {
                let mut state = shared.lock();
                if !std::mem::replace(&mut is_noted, true) {
                    state.usual_s += (took - state.usual_s) / AVERAGED;
                }
                let next = state.next();
                if next.is_none() {
                    state.running -= 1;
                }
                next
            };
            let Some(waiter) = next else { return };
            match waiter.wake.send(Ok(Self::of(Arc::clone(&shared)))) {
                Ok(()) | Err(Err(_)) => return,
                // It went meanwhile: the next one's turn, and this one is not to come here again.
                Err(Ok(mut unused)) => drop(unused.shared.take()),
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.lock().remove(self.caller, self.number);
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
