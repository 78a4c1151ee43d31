//! The books of the cache against a plain model, and by example.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn key(n: usize) -> CacheKey {
    CacheKey::parse(&format!("u/0/s{n}")).unwrap()
}

fn claim(ledger: &mut Ledger, n: usize, bytes: u64) -> Result<Vec<CacheKey>, Shortage> {
    ledger.claim(&[(key(n), bytes)])
}

#[test]
fn what_was_used_longest_ago_goes_first_and_what_is_in_use_never() {
    let mut ledger = Ledger::new(100);
    for n in 0..4 {
        assert_eq!(claim(&mut ledger, n, 25), Ok(vec![]));
    }
    for n in [2, 0, 3] {
        assert!(ledger.release(&key(n)));
    }
    // 1 is in use, 2 was let go of first.
    assert_eq!(claim(&mut ledger, 4, 20), Ok(vec![key(2)]));
    // 0 is used again, so 3 is next; 30 bytes take 0 along.
    assert_eq!(claim(&mut ledger, 0, 25), Ok(vec![]));
    ledger.release(&key(0));
    assert_eq!(claim(&mut ledger, 5, 30), Ok(vec![key(3)]));
    assert_eq!(ledger.used(), 100);
    let shortage = claim(&mut ledger, 6, 26).unwrap_err();
    assert_eq!(shortage, Shortage { needed: 26, in_use: 75, limit: 100 });
    assert_eq!(ledger.used(), 100, "a claim that is refused changes nothing");
    assert_eq!(claim(&mut ledger, 6, 25), Ok(vec![key(0)]));
}

#[test]
fn several_segments_are_claimed_together_or_not_at_all() {
    let mut ledger = Ledger::new(100);
    ledger.found(key(0), 40);
    ledger.found(key(1), 40);
    assert!(ledger.claim(&[(key(0), 40), (key(2), 61)]).is_err());
    assert_eq!(ledger.used(), 80);
    // What is wanted itself is not given up for the rest.
    assert_eq!(ledger.claim(&[(key(0), 40), (key(2), 60)]), Ok(vec![key(1)]));
}

#[test]
fn bytes_of_removed_files_count_while_somebody_has_them_mapped() {
    let mut ledger = Ledger::new(100);
    claim(&mut ledger, 0, 60).unwrap();
    ledger.forget(&key(0));
    assert!(claim(&mut ledger, 1, 50).is_err());
    assert!(!ledger.release(&key(0)));
    assert_eq!(claim(&mut ledger, 1, 50), Ok(vec![]));
}

#[test]
fn builds_count_and_become_segments() {
    let mut ledger = Ledger::new(100);
    ledger.found(key(0), 50);
    assert_eq!(ledger.begin_build(60), Ok(vec![key(0)]));
    assert!(ledger.begin_build(41).is_err());
    ledger.end_build(10);
    ledger.adopt(key(1), 50);
    assert_eq!(ledger.used(), 50);
    assert!(ledger.begin_build(51).is_err());
    assert!(ledger.release(&key(1)));
    assert_eq!(ledger.begin_build(51), Ok(vec![key(1)]));
}

#[test]
fn a_smaller_limit_is_kept_from_the_start() {
    let mut ledger = Ledger::new(70);
    for n in 0..4 {
        ledger.found(key(n), 30);
    }
    assert_eq!(ledger.trim(), vec![key(0), key(1)]);
    assert_eq!(ledger.used(), 60);
}

proptest! {
    /// Whatever is claimed, released and forgotten: the limit is kept, and nothing in use is given up.
    #[test]
    fn the_limit_is_kept_and_users_keep_what_they_use(
        steps in proptest::collection::vec((0usize..4, 0usize..8, 1u64..50), 1..200)
    ) {
        let mut ledger = Ledger::new(100);
        let mut users = [0usize; 8];
        let mut builds = Vec::new();
        for (step, n, bytes) in steps {
            // A segment has one size.
            let size = 5 + n as u64 * 7;
            match step {
                0 => if let Ok(gone) = claim(&mut ledger, n, size) {
                    prop_assert!((0..8).all(|n| users[n] == 0 || !gone.contains(&key(n))));
                    users[n] += 1;
                },
                1 if users[n] > 0 => {
                    ledger.release(&key(n));
                    users[n] -= 1;
                }
                2 => if let Ok(gone) = ledger.begin_build(bytes) {
                    prop_assert!((0..8).all(|n| users[n] == 0 || !gone.contains(&key(n))));
                    builds.push(bytes);
                },
                _ => match builds.pop() {
                    Some(bytes) => ledger.end_build(bytes),
                    None => ledger.forget(&key(n)),
                },
            }
            prop_assert!(ledger.used() <= 100, "{}", ledger.used());
            let in_use: u64 = (0..8).filter(|n| users[*n] > 0).map(|n| 5 + n as u64 * 7).sum();
            prop_assert_eq!(ledger.in_use(), in_use + builds.iter().sum::<u64>());
        }
    }
}
