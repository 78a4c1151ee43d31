//! How long a search and its phases take: for the metrics, and for the log where it was slow.
//!
//! Invariant: a search that took too long is told once, also where it failed, or was given up at its
//! deadline or with its caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_proto::error::ApiError;

use super::request::{ListKind, SearchRequest};
use crate::collections::Resolved;

/// What follows a search as it runs. Dropped with a search that is given up.
pub(super) struct SearchClock {
    /// From here on a search is slow.
    slow: Option<Duration>,
    collection: Arc<Resolved>,
    num_vector_lists: usize,
    num_keyword_lists: usize,
    is_filtered: bool,
    began: Instant,
    /// When the phase under way began.
    phase: Option<(Phase, Instant)>,
    /// What each phase took, in milliseconds.
    took: [Option<f64>; 3],
    outcome: &'static str,
}

/// A part of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Windows of all shards.
    Gather,
    /// Lists to a page.
    Merge,
    /// Documents of the page.
    Fetch,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Merge => "merge",
            Self::Fetch => "fetch",
        }
    }
}

impl SearchClock {
    pub(super) fn start(request: &SearchRequest, slow: Option<Duration>) -> Self {
        let num_vector_lists = request.lists.iter().filter(|list| matches!(list.kind, ListKind::Vector(_))).count();
        let num_lists = (num_vector_lists, request.lists.len() - num_vector_lists);
        Self::of(Arc::clone(&request.collection), num_lists, request.filter.is_some(), slow)
    }

    /// `num_lists` are those of vectors and those of keywords.
    fn of(collection: Arc<Resolved>, num_lists: (usize, usize), is_filtered: bool, slow: Option<Duration>) -> Self {
        Self {
            slow,
            collection,
            num_vector_lists: num_lists.0,
            num_keyword_lists: num_lists.1,
            is_filtered,
            began: Instant::now(),
            phase: None,
            took: [None; 3],
            outcome: "given up",
        }
    }

    /// Ends the phase under way and begins another.
    pub(super) fn begin(&mut self, phase: Phase) {
        self.end_phase();
        self.phase = Some((phase, Instant::now()));
    }

    /// The search has an answer or an error.
    pub(super) fn end<T>(&mut self, result: &Result<T, ApiError>) {
        match result {
            Ok(_) => {
                self.end_phase();
                self.outcome = "answered";
            }
            Err(error) => self.outcome = error.kind().reason(),
        }
    }

    fn end_phase(&mut self) {
        if let Some((phase, began)) = self.phase.take() {
            let took = began.elapsed();
            metrics::histogram!("antiphon_search_phase_seconds", "phase" => phase.name()).record(took);
            self.took[phase as usize] = Some(milliseconds(took));
        }
    }
}

impl Drop for SearchClock {
    fn drop(&mut self) {
        let total = self.began.elapsed();
        if self.slow.is_none_or(|slow| total < slow) {
            return;
        }
        // One that did not end takes the blame.
        if let Some((phase, began)) = self.phase {
            self.took[phase as usize] = Some(milliseconds(began.elapsed()));
        }
        let [gather_ms, merge_ms, fetch_ms] = self.took;
        // Not the words that were asked: they are the users'.
        tracing::warn!(
            collection = %self.collection.collection.name,
            total_ms = milliseconds(total),
            gather_ms,
            merge_ms,
            fetch_ms,
            vector_lists = self.num_vector_lists,
            keyword_lists = self.num_keyword_lists,
            filter = self.is_filtered,
            outcome = self.outcome,
            "slow search"
        );
    }
}

/// With a microsecond as the last digit.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{self, Write};
    use std::sync::Mutex;

    use antiphon_proto::error::ErrorKind;
    use antiphon_proto::key::KeyRule;
    use antiphon_proto::v1::{Collection, KeyCase, Schema};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged of a search that takes some time.
    fn logged(slow: Option<Duration>, run: impl FnOnce(&mut SearchClock)) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let collection = Resolved {
                asked: "alias".into(),
                collection: Collection { name: "books".into(), ..Collection::default() },
                schema: Schema::default(),
                schema_version: 0,
                key_rule: KeyRule::of(KeyCase::CaseSensitive),
            };
            let mut clock = SearchClock::of(Arc::new(collection), (1, 2), true, slow);
            run(&mut clock);
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_slow_search_is_told_with_its_phases() {
        let line = logged(Some(Duration::ZERO), |clock| {
            clock.begin(Phase::Gather);
            std::thread::sleep(Duration::from_millis(2));
            clock.begin(Phase::Merge);
            clock.begin(Phase::Fetch);
            clock.end(&Ok(()));
        });
        assert_eq!(line.lines().count(), 1, "{line}");
        for words in [
            "WARN",
            "slow search",
            "collection=books",
            "total_ms=",
            "gather_ms=",
            "merge_ms=",
            "fetch_ms=",
            "vector_lists=1",
            "keyword_lists=2",
            "filter=true",
            "outcome=\"answered\"",
        ] {
            assert!(line.contains(words), "{words} in {line}");
        }
        let gather: f64 = line.split("gather_ms=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(gather >= 2.0, "{line}");
    }

    #[test]
    fn one_that_failed_or_was_given_up_is_told_with_the_phase_it_was_in() {
        let failed = logged(Some(Duration::ZERO), |clock| {
            clock.begin(Phase::Gather);
            clock.end(&Err::<(), _>(ApiError::new(ErrorKind::ShardUnavailable, "gone")));
        });
        assert!(failed.contains("outcome=\"SHARD_UNAVAILABLE\"") && failed.contains("gather_ms="), "{failed}");
        assert!(!failed.contains("merge_ms"), "{failed}");
        let dropped = logged(Some(Duration::ZERO), |clock| clock.begin(Phase::Fetch));
        assert!(dropped.contains("outcome=\"given up\"") && dropped.contains("fetch_ms="), "{dropped}");
    }

    #[test]
    fn a_quick_search_is_not_told() {
        assert_eq!(logged(Some(Duration::from_secs(3600)), |clock| clock.begin(Phase::Gather)), "");
        assert_eq!(logged(None, |clock| clock.begin(Phase::Gather)), "");
    }
}
