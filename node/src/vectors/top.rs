//! The best n of many scored rows.
//!
//! Not for merging lists. Invariant: the order is (score descending, row ascending), a total one, so the result does not
//! depend on the order in which rows come.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row and its score. The greatest is the best.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scored {
    score: f64,
    row: u32,
}

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.row.cmp(&self.row))
    }
}

/// Collects rows and keeps the best `limit`.
#[derive(Debug)]
pub(super) struct Top {
    limit: usize,
    /// The worst of the kept rows on top.
    kept: BinaryHeap<std::cmp::Reverse<Scored>>,
}

impl Top {
    /// `limit` may be any number; memory grows with the rows kept.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, kept: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, row: u32, score: f64) {
        let scored = Scored { score, row };
        if self.kept.len() < self.limit {
            self.kept.push(std::cmp::Reverse(scored));
        } else if let Some(mut worst) = self.kept.peek_mut()
            && scored > worst.0
        {
            worst.0 = scored;
        }
    }

    /// The kept rows, best first.
    pub(super) fn into_sorted(self) -> Vec<(u32, f64)> {
        self.kept.into_sorted_vec().into_iter().map(|scored| (scored.0.row, scored.0.score)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_best_are_the_head_of_a_full_sort(scores in proptest::collection::vec(-3i8..3, 0..60), limit in 0usize..70) {
            let mut top = Top::new(limit);
            for (row, &score) in scores.iter().enumerate().rev() {
                top.push(row as u32, f64::from(score));
            }
            let mut model: Vec<(u32, f64)> = scores.iter().enumerate().map(|(row, &s)| (row as u32, f64::from(s))).collect();
            model.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            model.truncate(limit);
            prop_assert_eq!(top.into_sorted(), model);
        }
    }
}
