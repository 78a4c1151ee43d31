//! Turn-taking: the best match of the first list, then the best of the second, then the second best of each, and so on.
//!
//! Not for scores: those of different lists are never compared. Invariants:
//!
//! - No key is placed twice. A match whose key is placed already is passed over, and its list loses that turn.
//! - A list that ran out leaves its turns to the others.
//! - A longer answer begins with the shorter one, and so do longer lists: lists truncated to n matches give the
//!   first n places as whole lists would, as long as none of them repeats a key.

use std::collections::HashSet;
use std::hash::Hash;

use super::Place;

/// The first `count` places of the ranking; fewer only where all lists ran out.
///
/// The lists come in the order of their turns. `key` tells matches apart, over all lists; matches for which it gives
/// `None` are never taken for one another. The time is linear in the matches looked at.
pub fn take_turns<T, K, L>(lists: &[L], key: impl Fn(&T) -> Option<K>, count: usize) -> Vec<Place>
where
    K: Eq + Hash,
    L: AsRef<[T]>,
{
    let mut ranking = Vec::new();
    let mut placed = HashSet::new();
    let mut waiting: Vec<usize> = (0..lists.len()).collect();
    for rank in 1.. {
        waiting.retain(|&list| rank <= lists[list].as_ref().len());
        if waiting.is_empty() {
            break;
        }
        for &list in &waiting {
            if ranking.len() == count {
                return ranking;
            }
            let place = Place { list, rank };
            if key(place.of(lists)).is_none_or(|key| placed.insert(key)) {
                ranking.push(place);
            }
        }
    }
    ranking
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(lists: &[Vec<&str>], count: usize) -> String {
        let key = |key: &&str| (!key.is_empty()).then(|| key.to_uppercase());
        let places = take_turns(lists, key, count);
        places.iter().map(|place| format!("{}{}{} ", place.of(lists), place.list, place.rank)).collect()
    }

    #[test]
    fn lists_take_turns_and_pass_over_what_is_placed() {
        let lists = [vec!["a", "b", "c"], vec!["B", "a", "d"]];
        assert_eq!(turns(&lists, 9), "a01 B11 c03 d13 ");
        assert_eq!(turns(&lists, 2), "a01 B11 ");
        assert_eq!(turns(&lists, 0), "");
    }

    #[test]
    fn a_list_that_ran_out_leaves_its_turns() {
        assert_eq!(turns(&[vec![], vec!["a", "b"], vec!["c"]], 9), "a11 c21 b12 ");
        assert_eq!(turns(&[], 9), "");
    }

    #[test]
    fn a_list_that_repeats_itself_loses_the_turn() {
        assert_eq!(turns(&[vec!["a", "A", "b"], vec!["c", "d"]], 9), "a01 c11 d12 b03 ");
    }

    #[test]
    fn matches_without_a_key_are_never_one_another() {
        assert_eq!(turns(&[vec!["", ""], vec![""]], 9), "01 11 02 ");
    }
}
