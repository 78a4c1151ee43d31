//! How a node answered lately: whether to ask it, and how long to wait for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Answers remembered.
const WINDOW: usize = 64;
/// Failures in a row after which a node is passed over.
const MAX_FAILURES: u32 = 3;
/// How long it is passed over at first; twice as long each further time.
const PASS_OVER: Duration = Duration::from_millis(250);
/// And at most.
const PASS_OVER_AT_MOST: Duration = Duration::from_secs(4);
/// Shortest and longest time after which another node is asked too.
const HEDGE_AFTER: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// The same while too few answers are known.
const HEDGE_AT_FIRST: Duration = Duration::from_millis(200);

/// How one node answers.
#[derive(Debug)]
pub(super) struct Health {
    calls: AtomicU64,
    lately: Mutex<Lately>,
}

#[derive(Debug)]
struct Lately {
    /// Seconds that answers took, the last ones, in a ring.
    took: Vec<f32>,
    next: usize,
    failures: u32,
    passed_over_until: Option<Instant>,
    pass_over: Duration,
}

/// A call under way; counts until dropped.
pub(super) struct Call<'h>(&'h Health);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Health {
    /// Nothing known.
    pub(super) fn new() -> Self {
        let lately = Lately {
            took: Vec::with_capacity(WINDOW),
            next: 0,
            failures: 0,
            passed_over_until: None,
            pass_over: PASS_OVER,
        };
        Self { calls: AtomicU64::new(0), lately: Mutex::new(lately) }
    }

    /// Counts a call.
    pub(super) fn begin(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Call(self)
    }

    /// Calls under way.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Notes an answer.
    pub(super) fn answered(&self, took: Duration) {
        let mut lately = self.lock();
        lately.failures = 0;
        lately.passed_over_until = None;
        lately.pass_over = PASS_OVER;
        let (next, took) = (lately.next, took.as_secs_f32());
        match lately.took.get_mut(next) {
            Some(slot) => *slot = took,
            None => lately.took.push(took),
        }
        lately.next = (next + 1) % WINDOW;
    }

    /// Notes that the node could not be reached, or did not answer while another did.
    pub(super) fn failed(&self, now: Instant) {
        let mut lately = self.lock();
        lately.failures += 1;
        if lately.failures >= MAX_FAILURES {
            lately.passed_over_until = Some(now + lately.pass_over);
            lately.pass_over = (lately.pass_over * 2).min(PASS_OVER_AT_MOST);
        }
    }

    /// Whether the node is passed over where another can be asked. Once its time is over it is tried again.
    pub(super) fn is_passed_over(&self, now: Instant) -> bool {
        self.lock().passed_over_until.is_some_and(|until| now < until)
    }

    /// After how long another node is asked too: the 95th percentile of the last answers.
    pub(super) fn hedge_after(&self) -> Duration {
        let mut took = self.lock().took.clone();
        if took.len() < WINDOW / 4 {
            return HEDGE_AT_FIRST;
        }
        took.sort_unstable_by(f32::total_cmp);
        let percentile = took.get(took.len() * 95 / 100).copied().unwrap_or_default();
        Duration::from_secs_f32(percentile).clamp(HEDGE_AFTER.0, HEDGE_AFTER.1)
    }

    fn lock(&self) -> MutexGuard<'_, Lately> {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many reads may be sent twice: one in ten.
#[derive(Debug)]
pub(super) struct HedgeBudget(AtomicU64);

impl HedgeBudget {
    const COST: u64 = 10;
    const MOST: u64 = 1000;

    /// A few to begin with.
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(Self::MOST))
    }

    /// A read begins.
    pub(super) fn earn(&self) {
        // Saturates; that two race for the last is no harm.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| Some((held + 1).min(Self::MOST)));
    }

    /// Whether one may be sent twice.
    pub(super) fn spend(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| held.checked_sub(Self::COST)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_fails_again_and_again_is_passed_over_for_longer_each_time() {
        let (health, start) = (Health::new(), Instant::now());
        health.failed(start);
        health.failed(start);
        assert!(!health.is_passed_over(start));
        health.failed(start);
        assert!(health.is_passed_over(start) && !health.is_passed_over(start + PASS_OVER));
        health.failed(start + PASS_OVER);
        assert!(health.is_passed_over(start + PASS_OVER * 2));
        assert!(!health.is_passed_over(start + PASS_OVER * 3));
        health.answered(Duration::from_millis(1));
        assert!(!health.is_passed_over(start));
    }

    #[test]
    fn another_is_asked_after_the_95th_percentile() {
        let health = Health::new();
        assert_eq!(health.hedge_after(), HEDGE_AT_FIRST);
        (0..WINDOW as u64).for_each(|n| health.answered(Duration::from_millis(100 + n)));
        let after = health.hedge_after().as_secs_f64();
        assert!((0.155..0.165).contains(&after), "{after}");
        (0..WINDOW).for_each(|_| health.answered(Duration::from_micros(5)));
        assert_eq!(health.hedge_after(), HEDGE_AFTER.0);
    }

    #[test]
    fn one_read_in_ten_may_be_sent_twice() {
        let budget = HedgeBudget::new();
        while budget.spend() {}
        let hedged = (0..1000).filter(|_| {
            budget.earn();
            budget.spend()
        });
        assert!((95..=105).contains(&hedged.count()));
    }
}
