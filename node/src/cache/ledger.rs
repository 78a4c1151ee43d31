//! What the cache holds and how much more fits: numbers alone, no files.
//!
//! Invariants: the bytes of all entries and builds stay within the limit; an entry with users is never given up; those that
//! are were used longest ago. A claim is granted whole or changes nothing.

use std::collections::HashMap;

use super::CacheKey;

#[derive(Debug, Default)]
struct Entry {
    bytes: u64,
    users: usize,
    /// Greater is later.
    last_used: u64,
    /// Its files are gone but for those that users have mapped.
    is_gone: bool,
}

/// Why a claim is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shortage {
    /// Bytes that were asked for and are not there yet.
    pub(super) needed: u64,
    /// Bytes that are in use.
    pub(super) in_use: u64,
    /// The limit.
    pub(super) limit: u64,
}

/// The books of a cache.
#[derive(Debug)]
pub(super) struct Ledger {
    limit: u64,
    entries: HashMap<CacheKey, Entry>,
    /// Bytes promised to builds under way.
    builds: u64,
    clock: u64,
}

impl Ledger {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, entries: HashMap::new(), builds: 0, clock: 0 }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes of all that is held or promised.
    pub(super) fn used(&self) -> u64 {
        self.entries.values().fold(self.builds, |sum, entry| sum.saturating_add(entry.bytes))
    }

    fn in_use(&self) -> u64 {
        let entries = self.entries.values().filter(|entry| entry.users > 0);
        entries.fold(self.builds, |sum, entry| sum.saturating_add(entry.bytes))
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Takes in what lay on the disk, unused, in the order in which it was used last.
    pub(super) fn found(&mut self, key: CacheKey, bytes: u64) {
        let last_used = self.tick();
        self.entries.insert(key, Entry { bytes, last_used, ..Entry::default() });
    }

    /// Gives up what was used longest ago until the rest keeps the limit, where a smaller one was set.
    pub(super) fn trim(&mut self) -> Vec<CacheKey> {
        let excess = self.used().saturating_sub(self.limit);
        self.give_up(excess, &[])
    }

    /// A user more for each of several segments, with room for their bytes; gives up others for them. Returns whose files are
    /// to be removed.
    pub(super) fn claim(&mut self, wanted: &[(CacheKey, u64)]) -> Result<Vec<CacheKey>, Shortage> {
        let held = |key: &CacheKey| self.entries.get(key).map_or(0, |entry| entry.bytes);
        let more = wanted.iter().fold(0u64, |sum, (key, bytes)| sum.saturating_add(bytes.saturating_sub(held(key))));
        let keys: Vec<&CacheKey> = wanted.iter().map(|(key, _)| key).collect();
        let given_up = self.make_room(more, &keys)?;
        for (key, bytes) in wanted {
            let last_used = self.tick();
            let entry = self.entries.entry(key.clone()).or_default();
            entry.bytes = entry.bytes.max(*bytes);
            entry.users += 1;
            entry.last_used = last_used;
            entry.is_gone = false;
        }
        Ok(given_up)
    }

    /// A user less. Returns whether the segment stays for others to come.
    pub(super) fn release(&mut self, key: &CacheKey) -> bool {
        let last_used = self.tick();
        let Some(entry) = self.entries.get_mut(key) else { return false };
        entry.users = entry.users.saturating_sub(1);
        entry.last_used = last_used;
        if entry.users == 0 && entry.is_gone {
            self.entries.remove(key);
            return false;
        }
        true
    }

    /// The files of a segment are being removed: its bytes count until nobody has them mapped.
    pub(super) fn forget(&mut self, key: &CacheKey) {
        match self.entries.get_mut(key) {
            Some(entry) if entry.users > 0 => entry.is_gone = true,
            _ => drop(self.entries.remove(key)),
        }
    }

    /// The segments of which a condition is true.
    pub(super) fn keys(&self, of: impl Fn(&CacheKey) -> bool) -> Vec<CacheKey> {
        self.entries.keys().filter(|key| of(key)).cloned().collect()
    }

    /// A build of so many bytes begins, or grows by them.
    pub(super) fn begin_build(&mut self, bytes: u64) -> Result<Vec<CacheKey>, Shortage> {
        let given_up = self.make_room(bytes, &[])?;
        self.builds = self.builds.saturating_add(bytes);
        Ok(given_up)
    }

    /// A build ended, or needs so many bytes less.
    pub(super) fn end_build(&mut self, bytes: u64) {
        self.builds = self.builds.saturating_sub(bytes);
    }

    /// A build became a segment, with one user.
    pub(super) fn adopt(&mut self, key: CacheKey, bytes: u64) {
        self.end_build(bytes);
        let last_used = self.tick();
        self.entries.insert(key, Entry { bytes, users: 1, last_used, is_gone: false });
    }

    /// Gives up segments without users, those used longest ago first, until so many bytes are free or none is left.
    pub(super) fn give_up(&mut self, bytes: u64, but: &[&CacheKey]) -> Vec<CacheKey> {
        let mut unused: Vec<(u64, CacheKey, u64)> = self
            .entries
            .iter()
            .filter(|(key, entry)| entry.users == 0 && !but.contains(key))
            .map(|(key, entry)| (entry.last_used, key.clone(), entry.bytes))
            .collect();
        unused.sort_unstable_by_key(|(last_used, _, _)| *last_used);
        let (mut freed, mut given_up) = (0, Vec::new());
        for (_, key, size) in unused {
            if freed >= bytes {
                break;
            }
            freed += size;
            self.entries.remove(&key);
            given_up.push(key);
        }
        given_up
    }

    fn make_room(&mut self, bytes: u64, but: &[&CacheKey]) -> Result<Vec<CacheKey>, Shortage> {
        let used = self.used();
        let excess = used.saturating_add(bytes).saturating_sub(self.limit);
        let unused = |(key, entry): &(&CacheKey, &Entry)| entry.users == 0 && !but.contains(key);
        let can_go = self.entries.iter().filter(unused).fold(0u64, |sum, (_, entry)| sum.saturating_add(entry.bytes));
        // What is asked for no more bytes is granted, even above a limit that was made smaller.
        if bytes > 0 && excess > can_go {
            return Err(Shortage { needed: bytes, in_use: self.in_use(), limit: self.limit });
        }
        Ok(self.give_up(excess, but))
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
