//! A point in time from which it can be told how much time has *at least* to be assumed to have passed.
//!
//! The monotonic clock stands still while a virtual machine is suspended, the wall clock may be set back: the longer of
//! both counts.

use std::time::{Duration, Instant, SystemTime};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    monotonic: Instant,
    wall: SystemTime,
}

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "one of the two clocks that a moment compares")]
    pub(crate) fn now() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now() }
    }

    /// Time since then, by whichever clock says more.
    pub(crate) fn elapsed(&self) -> Duration {
        self.monotonic.elapsed().max(self.wall.elapsed().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_clock_counts() {
        let hour = Duration::from_secs(3600);
        let mut moment = Moment::now();
        assert!(moment.elapsed() < hour);
        moment.wall -= hour;
        assert!(moment.elapsed() >= hour);
        moment.wall += 2 * hour;
        assert!(moment.elapsed() < hour);
    }
}
