//! A manifest's way into a view: its segments replace the sealed ones, and the live part loses what they cover.

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_store::SegmentId;
use roaring::RoaringBitmap;

use super::{SegmentView, View};

/// Installs a manifest's segments into a view. `sealed` are the segments with the manifest's tombstones at least;
/// operations beyond `covered_seq` that the view's live part holds are applied to them here. The view must have applied
/// the manifest's `tombstone_seq`.
pub fn install(
    view: &View,
    manifest_version: u64,
    covered_seq: u64,
    sealed: Vec<Arc<SegmentView>>,
    quarantined: Vec<SegmentId>,
) -> View {
    let ops = ops_beyond(view, covered_seq);
    let sealed = sealed
        .into_iter()
        .map(|segment| {
            let died = tombstones_by(&segment, &ops);
            segment.with_dead(&died)
        })
        .collect();
    let live = view.live.iter().filter_map(|segment| without_covered(segment, covered_seq)).collect();
    let deletes =
        view.deletes.iter().filter(|batch| batch.iter().any(|(seq, _)| *seq > covered_seq)).cloned().collect();
    View { seq: view.seq.max(covered_seq), manifest_version, covered_seq, sealed, live, quarantined, deletes }
}

/// Rows of a segment that operations in the view's live part, beyond `covered_seq`, replaced or deleted.
pub fn tombstones_by_ops(view: &View, covered_seq: u64, segment: &SegmentView) -> RoaringBitmap {
    tombstones_by(segment, &ops_beyond(view, covered_seq))
}

/// For each key written or deleted beyond a position, the last position that did.
fn ops_beyond(view: &View, covered_seq: u64) -> HashMap<String, u64> {
    let mut ops: HashMap<String, u64> = HashMap::new();
    let mut note = |folded: String, seq: u64| {
        if seq > covered_seq {
            let last = ops.entry(folded).or_default();
            *last = seq.max(*last);
        }
    };
    for segment in &view.live {
        let rows = segment.segment().rows();
        (0..rows.num_rows()).for_each(|row| note(rows.folded_key(row).into_owned(), rows.seq(row)));
    }
    for (seq, folded) in view.deletes.iter().flat_map(|batch| batch.iter()) {
        note(folded.clone(), *seq);
    }
    ops
}

fn tombstones_by(segment: &SegmentView, ops: &HashMap<String, u64>) -> RoaringBitmap {
    let rows = segment.segment().rows();
    ops.iter().filter_map(|(folded, seq)| rows.find(folded).filter(|row| rows.seq(*row) < *seq)).collect()
}

/// A live segment without the rows that the manifest covers; none where nothing is left.
fn without_covered(segment: &Arc<SegmentView>, covered_seq: u64) -> Option<Arc<SegmentView>> {
    let rows = segment.segment().rows();
    let covered: RoaringBitmap = (0..rows.num_rows()).filter(|row| rows.seq(*row) <= covered_seq).collect();
    (covered.len() < u64::from(rows.num_rows())).then(|| segment.with_dead(&covered))
}
