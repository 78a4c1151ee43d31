//! Folding: small live segments become fewer, so that a search meets few of them however small the writes are.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use roaring::RoaringBitmap;

use super::{SegmentView, View};
use crate::schema::ShardSchema;
use crate::segment::{Destination, SegmentBuilder, SegmentError, merge_segments};

/// Segments of one size that are folded together.
const FAN_IN: usize = 4;
/// Rows beyond which a live segment is left alone until it is sealed: what a fold may cost a write is bounded.
const MAX_FOLDED_ROWS: u64 = 8192;

/// Folds the newest live segments until no run of [`FAN_IN`] of about one size is left. The first `frozen` of them are
/// left alone: a sealing reads them.
///
/// # Errors
/// [`SegmentError`] where a segment cannot be built.
pub fn fold(mut view: View, schema: &Arc<ShardSchema>, frozen: usize, threads: usize) -> Result<View, SegmentError> {
    loop {
        let sizes: Vec<u64> = view.live.iter().map(|segment| u64::from(segment.segment().num_rows())).collect();
        let Some(start) = run_to_fold(&sizes[frozen.min(sizes.len())..]) else { return Ok(view) };
        let tail = view.live.split_off(frozen + start);
        if let Some(folded) = fold_segments(&tail, schema, threads)? {
            view.live.push(Arc::new(folded));
        }
    }
}

/// Where the newest run of segments of about one size starts, if it is long enough to be folded.
fn run_to_fold(sizes: &[u64]) -> Option<usize> {
    let tier = |size: u64| size.max(1).ilog(FAN_IN as u64);
    let newest = tier(*sizes.last()?);
    let run = sizes.iter().rev().take_while(|size| tier(**size) <= newest).count();
    let start = sizes.len() - run;
    let rows: u64 = sizes[start..].iter().sum();
    (run >= FAN_IN && rows <= MAX_FOLDED_ROWS).then_some(start)
}

fn fold_segments(
    segments: &[Arc<SegmentView>],
    schema: &Arc<ShardSchema>,
    threads: usize,
) -> Result<Option<SegmentView>, SegmentError> {
    let sources: Vec<_> = segments.iter().map(|view| (Arc::clone(view.segment()), Arc::clone(view.dead()))).collect();
    let mut builder = SegmentBuilder::new(Arc::clone(schema), Destination::Memory, None)?;
    merge_segments(&sources, |row| builder.add(&row))?;
    if builder.num_rows() == 0 {
        return Ok(None);
    }
    let segment = builder.finish(&AtomicBool::new(false))?.open(schema, threads)?;
    Ok(Some(SegmentView::new(None, Arc::new(segment), RoaringBitmap::new(), schema.texts.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_size_are_folded_and_large_segments_left_alone() {
        assert_eq!(run_to_fold(&[]), None);
        assert_eq!(run_to_fold(&[1, 1, 1]), None);
        assert_eq!(run_to_fold(&[1, 1, 1, 1]), Some(0));
        assert_eq!(run_to_fold(&[64, 1, 1, 1, 1]), Some(1));
        assert_eq!(run_to_fold(&[64, 64, 64, 64]), Some(0));
        assert_eq!(run_to_fold(&[3000, 3000, 3000, 3000]), None);
    }

    #[test]
    fn whatever_the_writes_few_segments_are_left() {
        for batch in [1, 7, 100, 500] {
            let mut sizes: Vec<u64> = Vec::new();
            for _ in 0..20_000 / batch {
                sizes.push(batch);
                while let Some(start) = run_to_fold(&sizes) {
                    let rows = sizes.drain(start..).sum();
                    sizes.push(rows);
                }
            }
            assert!(sizes.len() <= 32, "{batch}: {} segments", sizes.len());
        }
    }
}
