//! Merging one list over shards: by (score, folded key), the same rule as on the nodes (INV-6).

use antiphon_proto::internal::Candidate;
use antiphon_proto::key::KeyRule;

/// One match of a list, from one shard.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hit {
    /// As it was spelled.
    pub(super) key: String,
    /// What it is compared by.
    pub(super) folded: String,
    /// Its score in the list.
    pub(super) score: f64,
    /// The shard that has it.
    pub(super) shard: u32,
    /// Its row there.
    pub(super) row: u64,
}

/// The first `window` matches over all shards. A key that two shards claim, which only a bug could bring about, counts
/// once.
pub(super) fn merge(shards: Vec<(u32, Vec<Candidate>)>, key_rule: KeyRule, window: usize) -> Vec<Hit> {
    let several = shards.len() > 1;
    let mut hits: Vec<Hit> = shards
        .into_iter()
        .flat_map(|(shard, candidates)| {
            candidates.into_iter().map(move |candidate| Hit {
                folded: key_rule.fold(&candidate.key).into_owned(),
                key: candidate.key,
                score: candidate.score,
                shard,
                row: candidate.row,
            })
        })
        .collect();
    if several {
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.folded.cmp(&b.folded)));
        let mut seen = std::collections::HashSet::new();
        hits.retain(|hit| seen.insert(hit.folded.clone()));
    }
    hits.truncate(window);
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(key: &str, score: f64) -> Candidate {
        Candidate { key: key.into(), score, row: 0 }
    }

    #[test]
    fn ties_are_decided_by_the_folded_key() {
        let shards = vec![
            (0, vec![candidate("c", 2.0), candidate("b", 1.0)]),
            (1, vec![candidate("A", 1.0), candidate("d", 0.5)]),
        ];
        let merged = merge(shards, KeyRule::CaseInsensitive, 3);
        let keys: Vec<_> = merged.iter().map(|hit| (hit.key.as_str(), hit.shard)).collect();
        assert_eq!(keys, [("c", 0), ("A", 1), ("b", 0)]);
    }
}
