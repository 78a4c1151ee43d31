//! Rows that filters of earlier searches found, kept for the next search with the same filter.
//!
//! Not for deciding what matches. Invariants: what is kept takes no more than the bound, whatever is asked; an answer is
//! that of an evaluation of the same condition over the same rows with the same tombstones, since segments never change
//! and the tombstones are compared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_proto::filter::Condition;
use roaring::RoaringBitmap;

use crate::attributes::Matches;

/// In a segment with fewer rows a filter is evaluated in the time that it takes to look it up.
const MIN_ROWS: u32 = 1_024;
/// Most filters kept: whoever makes room looks at each.
const MAX_ENTRIES: usize = 4_096;
/// No filter takes more than this share of the bound.
const MIN_FILTERS: usize = 8;

/// A condition on the rows of a segment. One schema's columns are behind the condition's numbers as long as the segment
/// is the same open segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    segment: u64,
    condition: Arc<Condition>,
}

struct Entry {
    /// The tombstones of the view that it was evaluated for.
    dead: Arc<RoaringBitmap>,
    matches: Arc<Matches>,
    bytes: usize,
    last_used: u64,
}

/// The filters kept by a node, the least recently used of them given up for others.
pub struct FilterCache {
    max_bytes: usize,
    min_rows: u32,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    uses: u64,
}

impl FilterCache {
    /// A cache of at most so many bytes; of none, it keeps nothing.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, min_rows: MIN_ROWS, kept: Mutex::default() }
    }

    /// The same for segments of any size.
    #[cfg(test)]
    pub fn of_small_segments(max_bytes: usize) -> Self {
        Self { min_rows: 0, ..Self::new(max_bytes) }
    }

    /// Whether filters over a segment of so many rows are kept at all.
    pub fn keeps(&self, num_rows: u32) -> bool {
        self.max_bytes > 0 && num_rows >= self.min_rows
    }

    /// What a condition found in a segment with these tombstones.
    pub fn get(&self, segment: u64, condition: &Arc<Condition>, dead: &Arc<RoaringBitmap>) -> Option<Arc<Matches>> {
        let key = Key { segment, condition: Arc::clone(condition) };
        let mut kept = self.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let entry = kept.entries.get_mut(&key).filter(|entry| Arc::ptr_eq(&entry.dead, dead) || entry.dead == *dead)?;
        entry.last_used = uses;
        Some(Arc::clone(&entry.matches))
    }

    /// Keeps what a condition found, in the place of what it found with other tombstones.
    pub fn put(&self, segment: u64, condition: &Arc<Condition>, dead: &Arc<RoaringBitmap>, matches: &Arc<Matches>) {
        // The tombstones count as well: the view that they came from may be gone.
        let bytes =
            size_of::<(Key, Entry)>() + condition.size_bytes() + dead.serialized_size() + matches.max_size_bytes();
        if bytes > self.max_bytes / MIN_FILTERS {
            return;
        }
        let key = Key { segment, condition: Arc::clone(condition) };
        let mut kept = self.lock();
        kept.remove(&key);
        while kept.entries.len() >= MAX_ENTRIES || kept.bytes + bytes > self.max_bytes {
            let oldest = kept.entries.iter().min_by_key(|(_, entry)| entry.last_used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            kept.remove(&oldest);
        }
        kept.uses += 1;
        kept.bytes += bytes;
        let last_used = kept.uses;
        let (dead, matches) = (Arc::clone(dead), Arc::clone(matches));
        kept.entries.insert(key, Entry { dead, matches, bytes, last_used });
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

impl std::fmt::Debug for FilterCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilterCache").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::RowSet;

    const ROWS: u32 = 6_400;

    fn condition(attribute: usize) -> Arc<Condition> {
        Arc::new(Condition::Exists { attribute })
    }

    fn matches(row: u32) -> Arc<Matches> {
        let mut rows = RowSet::none(ROWS);
        rows.insert(row);
        Arc::new(Matches::new(rows, 1))
    }

    fn row_of(found: Option<Arc<Matches>>) -> Option<u32> {
        found.and_then(|found| found.rows().iter().next())
    }

    fn dead(rows: impl IntoIterator<Item = u32>) -> Arc<RoaringBitmap> {
        Arc::new(rows.into_iter().collect())
    }

    #[test]
    fn what_was_found_with_other_tombstones_or_elsewhere_is_not_given() {
        let cache = FilterCache::new(1 << 20);
        let (none, some) = (dead([]), dead([7]));
        cache.put(1, &condition(0), &none, &matches(3));
        assert_eq!(row_of(cache.get(1, &condition(0), &none)), Some(3));
        // The same rows in another bitmap are the same.
        assert_eq!(row_of(cache.get(1, &condition(0), &dead([]))), Some(3));
        assert_eq!(row_of(cache.get(1, &condition(0), &some)), None);
        assert_eq!(row_of(cache.get(2, &condition(0), &none)), None);
        assert_eq!(row_of(cache.get(1, &condition(1), &none)), None);
        cache.put(1, &condition(0), &some, &matches(4));
        assert_eq!(row_of(cache.get(1, &condition(0), &some)), Some(4));
        assert_eq!(row_of(cache.get(1, &condition(0), &none)), None);
        assert_eq!(cache.lock().entries.len(), 1);
    }

    #[test]
    fn memory_is_bounded_and_the_least_recently_used_goes_first() {
        let cache = FilterCache::new(64 << 10);
        let none = dead([]);
        for attribute in 0..1_000 {
            cache.put(1, &condition(attribute), &none, &matches(attribute as u32));
            // The first is in use all the time.
            assert_eq!(row_of(cache.get(1, &condition(0), &none)), Some(0));
            let kept = cache.lock();
            assert!(kept.bytes <= 64 << 10);
            assert_eq!(kept.bytes, kept.entries.values().map(|entry| entry.bytes).sum::<usize>());
        }
        assert!(cache.lock().entries.len() > 10);
        assert_eq!(row_of(cache.get(1, &condition(999), &none)), Some(999));
        assert_eq!(row_of(cache.get(1, &condition(1), &none)), None);
        let large = Condition::AnyOf { attribute: 0, values: vec![vec![0; 64 << 10]] };
        cache.put(1, &Arc::new(large), &none, &matches(0));
        assert_eq!(row_of(cache.get(1, &condition(0), &none)), Some(0));
    }

    #[test]
    fn a_cache_of_nothing_keeps_nothing() {
        let cache = FilterCache::new(0);
        cache.put(1, &condition(0), &dead([]), &matches(1));
        assert_eq!(row_of(cache.get(1, &condition(0), &dead([]))), None);
    }
}
