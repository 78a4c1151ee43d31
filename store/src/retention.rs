//! How long a covered log entry stays, so that nobody writes or reads past its end in ignorance.
//!
//! The rule, and what breaks without it: a log entry may be deleted only [`LOG_GRACE`] after a manifest that covers it was
//! committed. Who knew at some moment that no manifest covered position n may therefore take it for granted for
//! [`FENCE_AFTER`] that position n was not collected; later it must look at the newest manifest ([`crate::LogCursor`] does).
//! If entries were deleted sooner, a writer that was stopped in between could create one at a collected name, and an
//! acknowledged write would be in nobody's view.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::ids::Seq;

/// How long a log entry outlives the commit of the manifest that covers it.
pub const LOG_GRACE: Duration = Duration::from_secs(600);

/// How long one may rely on a position not being covered. Far below [`LOG_GRACE`], for clocks differ in rate.
pub const FENCE_AFTER: Duration = Duration::from_secs(60);

/// Commits remembered; of more, later ones stand for earlier ones, which only delays deletion.
const MAX_REMEMBERED: usize = 1024;

/// Tells the deleter of one shard's log how far it may go. Pure: time is passed in. A deleter that starts anew waits the
/// whole grace again, so no clock but its own is trusted.
#[derive(Debug, Default)]
pub struct LogRetention {
    /// When it was seen that a manifest covers up to here: both grow.
    seen: VecDeque<(Instant, Seq)>,
}

impl LogRetention {
    /// Nothing seen.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a manifest in the store covers the log through `covered` at `now`.
    pub fn observe(&mut self, covered: Seq, now: Instant) {
        let full = self.seen.len() >= MAX_REMEMBERED;
        match self.seen.back_mut() {
            Some((_, last)) if covered <= *last => {}
            Some(last) if full => *last = (now, covered),
            _ => self.seen.push_back((now, covered)),
        }
    }

    /// Through which position the log may be deleted at `now`; nothing if there is nothing new.
    pub fn due(&mut self, now: Instant) -> Option<Seq> {
        let mut due = None;
        while let Some((seen, covered)) = self.seen.front()
            && now.saturating_duration_since(*seen) >= LOG_GRACE
        {
            due = Some(*covered);
            self.seen.pop_front();
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_for_the_grace_time() {
        let start = Instant::now();
        let minute = Duration::from_secs(60);
        let mut retention = LogRetention::new();
        retention.observe(Seq(5), start);
        retention.observe(Seq(5), start + minute);
        retention.observe(Seq(9), start + 2 * minute);
        retention.observe(Seq(3), start + 3 * minute);
        assert_eq!(retention.due(start + LOG_GRACE - minute), None);
        assert_eq!(retention.due(start + LOG_GRACE), Some(Seq(5)));
        assert_eq!(retention.due(start + LOG_GRACE), None);
        assert_eq!(retention.due(start + 2 * LOG_GRACE), Some(Seq(9)));
        assert_eq!(retention.due(start + 3 * LOG_GRACE), None);
    }

    #[test]
    fn many_commits_only_delay() {
        let start = Instant::now();
        let mut retention = LogRetention::new();
        for n in 1..=5000 {
            retention.observe(Seq(n), start + Duration::from_millis(n));
        }
        assert!(retention.seen.len() <= MAX_REMEMBERED);
        assert_eq!(retention.due(start + 2 * LOG_GRACE), Some(Seq(5000)));
    }

    #[test]
    fn the_fence_is_well_within_the_grace() {
        assert!(FENCE_AFTER * 5 <= LOG_GRACE);
    }
}
