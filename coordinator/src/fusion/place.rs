//! Where a match stands in a list.
//!
//! A list should not repeat a match. Where one does, the match stands at the first of its places, and the others
//! are passed over; they still take up their ranks.

use std::collections::HashMap;
use std::hash::Hash;

/// The place of a match in one of several lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which list, from 0, in the order in which they were given.
    pub list: usize,
    /// The match's rank in that list, from 1.
    pub rank: usize,
}

impl Place {
    /// The match itself.
    ///
    /// # Panics
    /// Never for a place found in these same lists.
    #[must_use]
    pub fn of<'l, T, L: AsRef<[T]>>(&self, lists: &'l [L]) -> &'l T {
        &lists[self.list].as_ref()[self.rank - 1]
    }
}

/// Where every key stands, one place for each list that holds it, in the order of the lists.
/// Matches for which `key` gives `None` are left out.
pub fn places_by_key<T, K, L>(lists: &[L], key: impl Fn(&T) -> Option<K>) -> HashMap<K, Vec<Place>>
where
    K: Eq + Hash,
    L: AsRef<[T]>,
{
    let mut places: HashMap<K, Vec<Place>> = HashMap::new();
    for (list, matches) in lists.iter().enumerate() {
        for (index, item) in matches.as_ref().iter().enumerate() {
            let Some(key) = key(item) else { continue };
            let places = places.entry(key).or_default();
            if places.last().is_none_or(|last| last.list != list) {
                places.push(Place { list, rank: index + 1 });
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_once_in_each_list() {
        let lists = [vec!["a", "b", "a", ""], vec!["", "b"], vec!["a"]];
        let places = places_by_key(&lists, |key| (!key.is_empty()).then_some(*key));
        assert_eq!(places.len(), 2);
        assert_eq!(places["a"], [Place { list: 0, rank: 1 }, Place { list: 2, rank: 1 }]);
        assert_eq!(places["b"], [Place { list: 0, rank: 2 }, Place { list: 1, rank: 2 }]);
        assert_eq!(places["b"][1].of(&lists), &"b");
    }
}
