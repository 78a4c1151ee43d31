//! Score fusion: every match gets one score out of its places in all lists, and the ranking follows that score.
//!
//! Invariants:
//!
//! - Order is (score descending, key ascending): the same lists and weights give the same ranking, bit by bit.
//! - Every match of every list is in the ranking, be its score 0 or less.
//! - Points are added up in the order of the lists.
//!
//! The ranking of truncated lists is not the head of that of whole lists, for a match gains from each list that it is
//! found in. Pages of one ranking must therefore fuse lists of one depth: see
//! [`PageCut::fusion_window`](crate::page::PageCut::fusion_window).

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::Hash;

use super::scale::Scale;
use super::{FusionError, Place, places_by_key, weights};

/// The ways to make one score out of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreFusion {
    /// The sum over lists of weight / (k + rank), rank from 1; without weights, each is 1.
    /// (Cormack, Clarke and Büttcher, SIGIR 2009.)
    ReciprocalRank {
        /// How little the first ranks stand out; 60 in the paper.
        k: u32,
    },
    /// The highest score of any list, as it is. Takes no weights.
    MaxScore,
    /// The weighted mean over lists of scores mapped to 0..1 by the list's lowest and highest.
    RelativeScore,
    /// The same by the mean of the list's scores ∓ 3 standard deviations.
    DistributionScore,
}

/// A match of the fused ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused<K> {
    /// What tells the match apart.
    pub key: K,
    /// What the method computed, higher is better, always finite.
    pub score: f64,
    /// Where the lists hold it, in their order; never empty.
    pub places: Vec<Place>,
}

impl ScoreFusion {
    /// The ranking of all matches of all lists.
    ///
    /// `lists` come best first, `weights` are one for each list or none, `key` tells matches apart and decides ties,
    /// `score` is a match's score in its list, higher is better. A match that a list repeats counts at its first
    /// place there, and its repetitions count for nothing.
    ///
    /// For several queries, every query brings its own lists: a weight for each channel is then given once for each
    /// query. Weights that sum to 1 over all lists are what llama-index calls weights that sum to 1 over
    /// retrievers, divided by the number of queries.
    ///
    /// # Errors
    /// Every [`FusionError`].
    pub fn fuse<T, K, L>(
        self,
        lists: &[L],
        weights: &[f64],
        key: impl Fn(&T) -> K,
        score: impl Fn(&T) -> f64,
    ) -> Result<Vec<Fused<K>>, FusionError>
    where
        K: Ord + Hash,
        L: AsRef<[T]>,
    {
        let weights = self.weights(weights, lists.len())?;
        let scales: Vec<Scale> =
            lists.iter().map(|list| self.scale(&distinct_scores(list.as_ref(), &key, &score))).collect();
        let points =
            |place: &Place| weights[place.list] * scales[place.list].points(place.rank, score(place.of(lists)));

        let mut ranking: Vec<Fused<K>> = places_by_key(lists, |item| Some(key(item)))
            .into_iter()
            .map(|(key, places)| Fused { key, score: self.join(places.iter().map(points)), places })
            .collect();
        ranking.sort_unstable_by(best_first);
        Ok(ranking)
    }

    /// What each list's points are multiplied by.
    fn weights(self, given: &[f64], lists: usize) -> Result<Vec<f64>, FusionError> {
        weights::check(given, lists)?;
        match self {
            Self::ReciprocalRank { .. } => Ok(weights::as_given(given, lists)),
            Self::RelativeScore | Self::DistributionScore => Ok(weights::sum_to_one(given, lists)),
            Self::MaxScore if given.is_empty() => Ok(weights::as_given(given, lists)),
            Self::MaxScore => Err(FusionError::WeightsRefused),
        }
    }

    /// What the places of a list with these scores are worth.
    fn scale(self, scores: &[f64]) -> Scale {
        match self {
            Self::ReciprocalRank { k } => Scale::ReciprocalRank { k },
            Self::MaxScore => Scale::AsIs,
            Self::RelativeScore => Scale::extremes(scores),
            Self::DistributionScore => Scale::distribution(scores),
        }
    }

    /// One score out of a match's points in the lists, which are at least one. It is never -0, so that equal scores
    /// have equal bits.
    fn join(self, points: impl Iterator<Item = f64>) -> f64 {
        let score = match self {
            Self::MaxScore => points.fold(f64::NEG_INFINITY, f64::max),
            Self::ReciprocalRank { .. } | Self::RelativeScore | Self::DistributionScore => points.sum(),
        };
        score + 0.0
    }
}

/// The scores of a list, those of repetitions left out.
fn distinct_scores<T, K: Eq + Hash>(list: &[T], key: impl Fn(&T) -> K, score: impl Fn(&T) -> f64) -> Vec<f64> {
    let mut seen = HashSet::new();
    list.iter().filter(|item| seen.insert(key(item))).map(score).collect()
}

/// The order of the ranking.
fn best_first<K: Ord>(one: &Fused<K>, other: &Fused<K>) -> Ordering {
    other.score.total_cmp(&one.score).then_with(|| one.key.cmp(&other.key))
}

#[cfg(test)]
#[path = "score_fusion_tests.rs"]
mod tests;
