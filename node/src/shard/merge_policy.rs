//! Which segments of a shard to merge: a pure function of their sizes.

use crate::config::MergingConfig;

/// How large a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentSize {
    /// Rows, live and dead.
    pub(super) num_rows: u64,
    /// Rows that live.
    pub(super) num_docs: u64,
}

/// While idle, smaller segments are merged into a larger one once they are this large beside it.
const IDLE_RATIO: f64 = 0.2;

/// The segments to merge next, by index; none where all is well.
///
/// A segment with too many dead rows is rewritten first. Else segments are ordered by size, and the longest tail whose
/// smaller members are together at least `fan_in − 1` times as large as its largest is merged: each row is rewritten once
/// for each growth of its segment by `fan_in`. A shard without writes affords more, since fewer segments answer faster.
pub(super) fn choose_merge(segments: &[SegmentSize], config: &MergingConfig, idle: bool) -> Option<Vec<usize>> {
    let dead = |segment: &SegmentSize| segment.num_rows - segment.num_docs.min(segment.num_rows);
    let worn = segments
        .iter()
        .enumerate()
        .filter(|(_, segment)| dead(segment) as f64 > segment.num_rows as f64 * config.dead_share)
        .max_by_key(|(_, segment)| dead(segment));
    if let Some((index, _)) = worn {
        return Some(vec![index]);
    }
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse((segments[*index].num_docs, *index)));
    let sizes: Vec<u64> = order.iter().map(|index| segments[*index].num_docs).collect();
    let ratio = if idle { IDLE_RATIO } else { config.fan_in.saturating_sub(1).max(1) as f64 };
    for start in 0..sizes.len().saturating_sub(1) {
        let smaller: u64 = sizes[start + 1..].iter().sum();
        if smaller + sizes[start] <= config.max_rows && smaller as f64 >= sizes[start] as f64 * ratio {
            return Some(order[start..].to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeConfig;

    fn sizes(docs: &[u64]) -> Vec<SegmentSize> {
        docs.iter().map(|docs| SegmentSize { num_rows: *docs, num_docs: *docs }).collect()
    }

    fn choose(docs: &[u64], idle: bool) -> Option<Vec<usize>> {
        choose_merge(&sizes(docs), &NodeConfig::default().merging, idle)
    }

    #[test]
    fn segments_of_one_size_are_merged_and_a_large_one_is_left_alone() {
        assert_eq!(choose(&[], false), None);
        assert_eq!(choose(&[100], true), None);
        assert_eq!(choose(&[100, 100, 100], false), None);
        assert_eq!(choose(&[100, 100, 100, 100], false).map(|merge| merge.len()), Some(4));
        assert_eq!(choose(&[100_000, 10, 10, 10, 10], false).map(|merge| merge.len()), Some(4));
        assert_eq!(choose(&[100_000, 10], true), None);
        assert_eq!(choose(&[100_000, 30_000], true).map(|merge| merge.len()), Some(2));
        assert_eq!(choose(&[4_000_000, 4_000_000], true), None);
    }

    #[test]
    fn worn_segments_are_rewritten() {
        let mut segments = sizes(&[100_000, 50]);
        segments[0].num_docs = 50_000;
        assert_eq!(choose_merge(&segments, &NodeConfig::default().merging, false), Some(vec![0]));
    }

    #[test]
    fn a_growing_shard_rewrites_each_row_a_few_times_and_stays_in_few_segments() {
        let (mut docs, mut rewritten) = (Vec::<u64>::new(), 0);
        for _ in 0..1000 {
            docs.push(1000);
            while let Some(merge) = choose(&docs, false) {
                let sum = merge.iter().map(|index| docs[*index]).sum();
                rewritten += sum;
                docs = docs.iter().enumerate().filter(|(n, _)| !merge.contains(n)).map(|(_, docs)| *docs).collect();
                docs.push(sum);
            }
            assert!(docs.len() <= 20, "{docs:?}");
        }
        assert!(rewritten <= 6 * 1_000_000, "{rewritten}");
    }
}
