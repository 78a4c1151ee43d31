//! What clients were promised, and whether a server's state keeps it.
//!
//! Every change of a key has a number of its own, its [`Generation`], by which it is known again in what a server shows.
//! Clients note each request before they send it and what became of it; [`Oracle::check`] then says what is wrong with a
//! state seen while no request is under way:
//! - a key shows its last acknowledged change, or one that may have come after it: a request that failed is *unknown*, not
//!   absent;
//! - of a request that failed, each shard has everything or nothing.
//!
//! A request that failed may still take effect while the process that got it lives, which is a [`Life`]: even after later
//! requests by way of other processes. Once that life is over it cannot. A process that has done all that it was sent before counts as begun anew.
//!
//! Requests on one key must follow one another: each key has one writer.

use std::collections::{BTreeMap, BTreeSet};

/// Names one change of one request, over all requests.
pub type Generation = u64;

/// A change of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Put(Generation),
    Delete,
}

impl Change {
    /// What the key shows then.
    fn value(self) -> Option<Generation> {
        match self {
            Change::Put(generation) => Some(generation),
            Change::Delete => None,
        }
    }
}

/// One process, from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life(usize);

/// A request that was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    UnderWay,
    Acknowledged,
    Unknown,
}

#[derive(Debug)]
struct Request {
    life: Life,
    began: u64,
    finished: u64,
    outcome: Outcome,
    changes: BTreeMap<String, Change>,
}

#[derive(Debug, Default)]
struct History {
    /// What was known for certain before `requests`.
    settled: Option<Generation>,
    /// In the order sent.
    requests: Vec<usize>,
}

/// The memory of all clients together.
#[derive(Debug, Default)]
pub struct Oracle {
    /// Counts events.
    now: u64,
    /// When each life was over.
    over: Vec<Option<u64>>,
    requests: Vec<Request>,
    keys: BTreeMap<String, History>,
    next_generation: Generation,
    num_acknowledged: usize,
    num_unknown: usize,
}

impl Oracle {
    pub fn new() -> Self {
        Self::default()
    }

    /// A process began.
    pub fn life(&mut self) -> Life {
        self.over.push(None);
        Life(self.over.len() - 1)
    }

    /// Nothing that a life was sent can take effect later than now. What it is sent from now on never will.
    pub fn is_over(&mut self, life: Life) {
        self.now += 1;
        self.over[life.0] = Some(self.now);
    }

    /// Nothing that any life was sent can take effect later than now.
    pub fn all_over(&mut self) {
        self.now += 1;
        let now = self.now;
        self.over.iter_mut().filter(|over| over.is_none()).for_each(|over| *over = Some(now));
    }

    /// A number for a change, given once.
    pub fn generation(&mut self) -> Generation {
        self.next_generation += 1;
        self.next_generation
    }

    /// Notes a request that is about to be sent.
    pub fn begin(&mut self, life: Life, changes: BTreeMap<String, Change>) -> RequestId {
        self.now += 1;
        let id = self.requests.len();
        for key in changes.keys() {
            let history = self.keys.entry(key.clone()).or_default();
            if let Some(last) = history.requests.last() {
                assert_ne!(self.requests[*last].outcome, Outcome::UnderWay, "two requests at once on {key}");
            }
            history.requests.push(id);
        }
        let (began, finished) = (self.now, u64::MAX);
        self.requests.push(Request { life, began, finished, outcome: Outcome::UnderWay, changes });
        RequestId(id)
    }

    /// The request was acknowledged.
    pub fn acknowledged(&mut self, id: RequestId) {
        self.num_acknowledged += 1;
        self.finish(id, Outcome::Acknowledged);
    }

    /// The request failed, or was given up: what became of it is unknown.
    pub fn failed(&mut self, id: RequestId) {
        self.num_unknown += 1;
        self.finish(id, Outcome::Unknown);
    }

    fn finish(&mut self, id: RequestId, outcome: Outcome) {
        self.now += 1;
        let request = &mut self.requests[id.0];
        assert_eq!(request.outcome, Outcome::UnderWay);
        (request.finished, request.outcome) = (self.now, outcome);
    }

    /// Requests acknowledged, and requests that failed, since the beginning.
    pub fn counts(&self) -> (usize, usize) {
        (self.num_acknowledged, self.num_unknown)
    }

    /// Keys that were ever named.
    pub fn keys(&self) -> Vec<String> {
        self.keys.keys().cloned().collect()
    }

    /// Whether a key may show a value now; no request on it may be under way.
    pub fn may_show(&self, key: &str, seen: Option<Generation>) -> bool {
        self.possible(key, None).contains(&seen)
    }

    /// What a key may show now; no request on it may be under way.
    pub fn possible_now(&self, key: &str) -> BTreeSet<Option<Generation>> {
        self.possible(key, None).into_iter().collect()
    }

    /// What is wrong with the state `seen`; nothing where every promise was kept. No request may be under way.
    pub fn check(&self, seen: &BTreeMap<String, Generation>, shard_of: impl Fn(&str) -> u32) -> Vec<String> {
        let mut faults = Vec::new();
        for key in seen.keys().filter(|key| !self.keys.contains_key(*key)) {
            faults.push(format!("{key} was never written"));
        }
        for key in self.keys.keys() {
            let (shown, possible) = (seen.get(key).copied(), self.possible(key, None));
            if !possible.contains(&shown) {
                faults.push(format!("{key} shows {shown:?}, where only {possible:?} are possible"));
            }
        }
        for (id, request) in self.requests.iter().enumerate().filter(|(_, r)| r.outcome == Outcome::Unknown) {
            let shards: BTreeSet<u32> = request.changes.keys().map(|key| shard_of(key)).collect();
            for shard in shards {
                let of_shard = || request.changes.iter().filter(|(key, _)| shard_of(key) == shard);
                let done = of_shard().find(|(key, change)| {
                    let shown = seen.get(*key).copied();
                    shown == change.value() && !self.possible(key, Some(id)).contains(&shown)
                });
                let left_out = of_shard().find(|(key, change)| {
                    let shown = seen.get(*key).copied();
                    shown != change.value() && !self.possibly_after(key, id).contains(&shown)
                });
                if let (Some((done, _)), Some((left_out, _))) = (done, left_out) {
                    let all: Vec<_> = of_shard().collect();
                    faults.push(format!("of one request shard {shard} has {done} and not {left_out}: {all:?}"));
                }
            }
        }
        faults
    }

    /// Takes a state that [`Oracle::check`] found right for what is certain from now on. Only once every life that a failed
    /// request was sent to is over.
    pub fn settle(&mut self, seen: &BTreeMap<String, Generation>) {
        for request in self.requests.drain(..) {
            assert_ne!(request.outcome, Outcome::UnderWay);
            let is_certain = request.outcome == Outcome::Acknowledged || self.over[request.life.0].is_some();
            assert!(is_certain, "a failed request may still take effect");
        }
        for (key, history) in &mut self.keys {
            history.requests.clear();
            history.settled = seen.get(key).copied();
        }
    }

    /// Whether everything that `first` did was done before `second` was sent.
    fn is_surely_before(&self, first: &Request, second: &Request) -> bool {
        match first.outcome {
            Outcome::UnderWay => false,
            Outcome::Acknowledged => first.finished < second.began,
            // Also where it was sent to a life that was over already: then it did nothing.
            Outcome::Unknown => self.over[first.life.0].is_some_and(|over| over < second.began),
        }
    }

    /// What a key may show, also if the request `without` was never sent.
    fn possible(&self, key: &str, without: Option<usize>) -> Vec<Option<Generation>> {
        let Some(history) = self.keys.get(key) else { return vec![None] };
        let sent = || history.requests.iter().filter(|id| Some(**id) != without).map(|id| &self.requests[*id]);
        let acknowledged = sent().rfind(|request| request.outcome == Outcome::Acknowledged);
        let mut possible = vec![acknowledged.map_or(history.settled, |request| request.changes[key].value())];
        let unknown = sent().filter(|request| request.outcome != Outcome::Acknowledged);
        let later = unknown.filter(|request| acknowledged.is_none_or(|last| !self.is_surely_before(request, last)));
        possible.extend(later.map(|request| request.changes[key].value()));
        possible
    }

    /// What a key may show if the request `id` was done: what other requests may have made of it afterwards.
    fn possibly_after(&self, key: &str, id: usize) -> Vec<Option<Generation>> {
        let (history, request) = (&self.keys[key], &self.requests[id]);
        let others = history.requests.iter().filter(|other| **other != id).map(|other| &self.requests[*other]);
        others.filter(|other| !self.is_surely_before(other, request)).map(|other| other.changes[key].value()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(keys: &[&str], generation: Generation) -> BTreeMap<String, Change> {
        keys.iter().map(|key| ((*key).to_owned(), Change::Put(generation))).collect()
    }

    fn delete(keys: &[&str]) -> BTreeMap<String, Change> {
        keys.iter().map(|key| ((*key).to_owned(), Change::Delete)).collect()
    }

    fn seen(pairs: &[(&str, Generation)]) -> BTreeMap<String, Generation> {
        pairs.iter().map(|(key, generation)| ((*key).to_owned(), *generation)).collect()
    }

    fn faults(oracle: &Oracle, pairs: &[(&str, Generation)]) -> usize {
        oracle.check(&seen(pairs), |_| 0).len()
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_what_was_deleted_must_not() {
        let mut oracle = Oracle::new();
        let life = oracle.life();
        let first = oracle.begin(life, put(&["a", "b"], 1));
        oracle.acknowledged(first);
        assert_eq!(faults(&oracle, &[("a", 1), ("b", 1)]), 0);
        assert_eq!(faults(&oracle, &[("a", 1)]), 1);
        assert_eq!(faults(&oracle, &[("a", 1), ("b", 2)]), 1);
        assert_eq!(faults(&oracle, &[("a", 1), ("b", 1), ("c", 1)]), 1);
        let second = oracle.begin(life, delete(&["b"]));
        oracle.acknowledged(second);
        assert_eq!(faults(&oracle, &[("a", 1)]), 0);
        assert_eq!(faults(&oracle, &[("a", 1), ("b", 1)]), 1);
    }

    #[test]
    fn a_request_that_failed_is_done_or_not_and_never_half() {
        let mut oracle = Oracle::new();
        let life = oracle.life();
        let first = oracle.begin(life, put(&["a", "b"], 1));
        oracle.acknowledged(first);
        let second = oracle.begin(life, put(&["a", "b", "c"], 2));
        oracle.failed(second);
        assert_eq!(faults(&oracle, &[("a", 1), ("b", 1)]), 0);
        assert_eq!(faults(&oracle, &[("a", 2), ("b", 2), ("c", 2)]), 0);
        assert_eq!(faults(&oracle, &[("a", 2), ("b", 1), ("c", 2)]), 1);
        assert_eq!(faults(&oracle, &[("a", 2), ("b", 2)]), 1);
        // On another shard it may be another way.
        let shards = |key: &str| u32::from(key == "c");
        assert!(oracle.check(&seen(&[("a", 2), ("b", 2)]), shards).is_empty());
        // What came later hides it.
        let third = oracle.begin(life, delete(&["b"]));
        oracle.failed(third);
        assert_eq!(faults(&oracle, &[("a", 2), ("c", 2)]), 0);
        assert_eq!(faults(&oracle, &[("a", 1)]), 0);
        assert_eq!(faults(&oracle, &[("b", 2), ("c", 2)]), 2);
    }

    #[test]
    fn deletes_that_failed_are_whole_too() {
        let mut oracle = Oracle::new();
        let life = oracle.life();
        let first = oracle.begin(life, put(&["a", "b"], 1));
        oracle.acknowledged(first);
        let second = oracle.begin(life, delete(&["a", "b"]));
        oracle.failed(second);
        assert_eq!(faults(&oracle, &[]), 0);
        assert_eq!(faults(&oracle, &[("a", 1), ("b", 1)]), 0);
        assert_eq!(faults(&oracle, &[("a", 1)]), 1);
    }

    #[test]
    fn a_failed_request_may_come_late_while_its_process_lives_and_never_after() {
        let mut oracle = Oracle::new();
        let (slow, quick) = (oracle.life(), oracle.life());
        let first = oracle.begin(slow, put(&["a"], 1));
        oracle.failed(first);
        let second = oracle.begin(quick, put(&["a"], 2));
        oracle.acknowledged(second);
        assert!(oracle.may_show("a", Some(1)) && oracle.may_show("a", Some(2)) && !oracle.may_show("a", None));
        oracle.is_over(slow);
        assert!(oracle.may_show("a", Some(1)), "it may have come between the second request and the end");
        let third = oracle.begin(quick, put(&["a"], 3));
        oracle.acknowledged(third);
        assert!(!oracle.may_show("a", Some(1)) && oracle.may_show("a", Some(3)));
    }

    #[test]
    fn what_was_seen_is_certain_afterwards() {
        let mut oracle = Oracle::new();
        let life = oracle.life();
        let first = oracle.begin(life, put(&["a"], 1));
        oracle.failed(first);
        oracle.is_over(life);
        oracle.settle(&seen(&[("a", 1)]));
        assert_eq!(faults(&oracle, &[("a", 1)]), 0);
        assert_eq!(faults(&oracle, &[]), 1);
    }
}
