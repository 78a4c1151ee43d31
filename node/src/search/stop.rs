//! When search work stops early: the deadline passed or the caller went.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use antiphon_proto::deadline::Deadline;

use crate::error::NodeError;

/// Polled by search work between steps.
#[derive(Debug, Clone)]
pub struct Stop {
    deadline: Deadline,
    abandoned: Arc<AtomicBool>,
}

/// Sets the sign when the call's future is dropped: then the caller went.
#[derive(Debug)]
pub struct AbandonGuard(Arc<AtomicBool>);

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Stop {
    /// A sign for one call, and the guard that the call's future holds.
    pub fn new(deadline: Deadline) -> (Self, AbandonGuard) {
        let abandoned = Arc::new(AtomicBool::new(false));
        (Self { deadline, abandoned: Arc::clone(&abandoned) }, AbandonGuard(abandoned))
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || self.deadline.is_over()
    }

    /// When the work must be done.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The error of work that was stopped.
    pub fn error(&self) -> NodeError {
        if self.deadline.is_over() { NodeError::Deadline { what: "the search was done" } } else { NodeError::Cancelled }
    }
}
