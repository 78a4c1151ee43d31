//! [`LogCursor`]: one process's place in one shard's log, from which it follows and writes.
//!
//! The danger it averts: a process that was stopped for long (SIGSTOP, a suspended machine) wakes up at a position that was
//! covered by a manifest and deleted since. Its create-if-absent succeeds there, where nobody will ever look; or it finds
//! there what another sleeper wrote. Neither is part of the log.
//!
//! Invariant: at the moment `confirmed`, no manifest covered `next`. By the rule of [`crate::retention`] an entry at `next`
//! or above is then not deleted for `LOG_GRACE`, so what is found or created there within `fence_after` is the log's true
//! entry. Later, the newest manifest is read *after* the create or the list: if it does not cover the position, the
//! position was not collected before (deletion follows coverage), and the entry is true; if it does, the cursor is behind
//! for good.

use std::time::Duration;

use antiphon_proto::store::{LogEntry, Manifest};
use futures::{StreamExt, TryStreamExt, stream};

use crate::error::StoreError;
use crate::ids::{ManifestVersion, Seq};
use crate::log::{Append, Log};
use crate::manifest::Manifests;
use crate::moment::Moment;
use crate::retention::FENCE_AFTER;

/// Entries read at once.
const READS_IN_FLIGHT: usize = 8;

/// What became of [`LogCursor::append`].
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// The entry is in the log, durably: acknowledge it once applied.
    Durable(Seq),
    /// Another entry is at this position: apply it, then append again.
    Taken(Seq, Box<LogEntry>),
    /// The log was sealed past this cursor. **Whether the entry took effect is unknown**: it may have been read and sealed
    /// by others. Answer UNAVAILABLE to its clients, don't append it again of one's own accord, and load the shard anew
    /// from the newest manifest. This cursor answers nothing else any more.
    Behind,
}

/// What [`LogCursor::poll`] found.
#[derive(Debug, Clone, PartialEq)]
pub enum LogPoll {
    /// The next entries, without a gap; empty if there are none yet. Apply them all, in order.
    Entries(Vec<(Seq, LogEntry)>),
    /// As [`Written::Behind`].
    Behind,
}

/// A place in a log. One a process and shard: `&mut self` keeps one append on its way at a time.
#[derive(Debug)]
pub struct LogCursor {
    log: Log,
    manifests: Manifests,
    next: Seq,
    confirmed: Moment,
    /// When the first append at `next` began, if one did and its outcome is not known.
    trying_since: Option<Moment>,
    fence_after: Duration,
    behind: bool,
}

impl LogCursor {
    /// Reads the newest manifest, and stands after what it covers. Load its segments, then poll until nothing comes.
    pub async fn open(
        log: Log,
        manifests: Manifests,
    ) -> Result<(Option<(ManifestVersion, Manifest)>, Self), StoreError> {
        let confirmed = Moment::now();
        let newest = manifests.newest().await?;
        let covered = newest.as_ref().map_or(0, |(_, manifest)| manifest.covered_seq);
        let cursor = Self {
            log,
            manifests,
            next: Seq(covered).next(),
            confirmed,
            trying_since: None,
            fence_after: FENCE_AFTER,
            behind: false,
        };
        Ok((newest, cursor))
    }

    /// The same cursor, looking at the newest manifest if `fence_after` passed since it was last sure; zero: every time.
    /// More than [`FENCE_AFTER`] is taken as that.
    pub fn with_fence_after(mut self, fence_after: Duration) -> Self {
        self.fence_after = fence_after.min(FENCE_AFTER);
        self
    }

    /// The position of the next entry: everything before was returned by this cursor or is covered by the manifest it
    /// began with.
    pub fn next(&self) -> Seq {
        self.next
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Writes `entry` at the next position, or returns what is there; either moves the cursor one on.
    ///
    /// # Errors
    /// The cursor stays. After `Unavailable` (and if the call is dropped) the entry may be in the log, now or later. Call
    /// again, with this entry or another: what is at the position then decides. Whoever polls in between may be given this
    /// very entry, which its nonce tells; it must not be appended once more.
    pub async fn append(&mut self, entry: &LogEntry) -> Result<Written, StoreError> {
        if self.behind {
            return Ok(Written::Behind);
        }
        let seq = self.next;
        let began = *self.trying_since.get_or_insert_with(Moment::now);
        let outcome = self.log.append(seq, entry).await?;
        let confirmed = match self.confirm(seq, false).await? {
            Confirmed::Behind => return Ok(Written::Behind),
            Confirmed::At(moment) => moment,
            // Created by us, so it was absent when we began, and so was all that follows: nothing covered it.
            Confirmed::StillFresh if outcome == Append::Appended => began,
            Confirmed::StillFresh => self.confirmed,
        };
        self.step(seq.next(), confirmed);
        Ok(match outcome {
            Append::Appended => Written::Durable(seq),
            Append::Taken(found) => Written::Taken(seq, found),
        })
    }

    /// Reads up to `max_entries` of the entries that follow, and moves the cursor past them.
    ///
    /// # Errors
    /// The cursor stays. `Corrupt` where an entry is missing before others.
    pub async fn poll(&mut self, max_entries: usize) -> Result<LogPoll, StoreError> {
        if self.behind {
            return Ok(LogPoll::Behind);
        }
        let first = self.next;
        let began = Moment::now();
        let positions = self.log.positions_after(Seq(first.0.saturating_sub(1))).await?;
        // A listing made while entries are created may show a later one and not an earlier: stop at a gap.
        let wanted = positions.iter().zip(first.0..).take_while(|(seq, expected)| seq.0 == *expected);
        let mut wanted: Vec<Seq> = wanted.map(|(seq, _)| *seq).take(max_entries).collect();
        let all = wanted.len() == positions.len();
        // Later entries exist, so this one does: it was created before them. Unless it was collected, or is lost.
        let at_gap = wanted.is_empty() && !positions.is_empty();
        if at_gap {
            wanted.push(first);
        }
        let log = &self.log;
        let entries: Vec<(Seq, Option<LogEntry>)> = stream::iter(wanted)
            .map(|seq| async move { log.read(seq).await.map(|entry| (seq, entry)) })
            .buffered(READS_IN_FLIGHT)
            .try_collect()
            .await?;
        let gone = entries.iter().any(|(_, entry)| entry.is_none());
        let entries: Vec<_> = entries.into_iter().map_while(|(seq, entry)| Some((seq, entry?))).collect();
        // An entry deleted between list and read was covered long ago, so the clock must have deceived us.
        let confirmed = match self.confirm(first, gone).await? {
            Confirmed::Behind => return Ok(LogPoll::Behind),
            Confirmed::At(moment) => moment,
            // The listing showed the log's end, so nothing beyond it existed when we began.
            Confirmed::StillFresh if all && !gone => began,
            Confirmed::StillFresh => self.confirmed,
        };
        if let Some((last, _)) = entries.last() {
            self.step(last.next(), confirmed);
        } else if at_gap {
            return Err(StoreError::corrupt(
                format!("{}/log/{}", self.log.shard().path(), first.name()),
                "the entry is missing, though later ones are there and no manifest covers it",
            ));
        } else {
            self.confirmed = confirmed;
        }
        Ok(LogPoll::Entries(entries))
    }

    /// Moves past the next position, whose entry another process appended and sent here. Says whether `seq` is that
    /// position; else nothing changes.
    ///
    /// Whoever sends an entry knows from its own cursor that it is the log's.
    pub fn take(&mut self, seq: Seq) -> bool {
        let is_next = !self.behind && seq == self.next;
        if is_next {
            self.step(seq.next(), self.confirmed);
        }
        is_next
    }

    fn step(&mut self, next: Seq, confirmed: Moment) {
        self.next = next;
        self.confirmed = confirmed;
        self.trying_since = None;
    }

    /// Makes sure that what was found or created at `seq` (the next position) is the log's: to be called after that.
    async fn confirm(&mut self, seq: Seq, doubtful: bool) -> Result<Confirmed, StoreError> {
        if !doubtful && self.confirmed.elapsed() < self.fence_after {
            return Ok(Confirmed::StillFresh);
        }
        let moment = Moment::now();
        match self.manifests.newest().await? {
            Some((version, manifest)) if manifest.covered_seq >= seq.0 => {
                tracing::warn!(
                    shard = %self.log.shard(), position = %seq, covered = manifest.covered_seq, manifest = %version,
                    "the log was sealed past this position"
                );
                self.behind = true;
                Ok(Confirmed::Behind)
            }
            _ => Ok(Confirmed::At(moment)),
        }
    }
}

enum Confirmed {
    /// Not enough time passed for the position to have been collected.
    StillFresh,
    /// No manifest covered the position at this moment.
    At(Moment),
    /// A manifest covers the position.
    Behind,
}
