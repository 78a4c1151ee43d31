//! Merging: several sealed segments become one, without their dead rows.

use std::sync::Arc;
use std::time::Instant;

use antiphon_telemetry::background;
use roaring::RoaringBitmap;
use tracing::Instrument as _;

use super::core::{Committed, Core, Mutation};
use super::maintain::record_task;
use super::manifest_entry::entry_of;
use super::merge_policy::{SegmentSize, choose_merge};
use super::seal::Built;
use crate::error::NodeError;
use crate::view::{SegmentView, View};

impl Core {
    /// The segments of a view to merge next; none where all is well or something is set aside.
    pub(super) fn wants_merging(&self, view: &View, idle: bool) -> Option<Vec<Arc<SegmentView>>> {
        if !view.quarantined.is_empty() {
            return None;
        }
        // What was built before fields were added holds a text index in memory until it is built anew.
        if let Some(old) = view.sealed.iter().find(|segment| segment.segment().is_rebuilt()) {
            return Some(vec![Arc::clone(old)]);
        }
        let size = |segment: &Arc<SegmentView>| SegmentSize {
            num_rows: u64::from(segment.segment().num_rows()),
            num_docs: segment.num_docs(),
        };
        let sizes: Vec<_> = view.sealed.iter().map(size).collect();
        let chosen = choose_merge(&sizes, &self.config.merging, idle)?;
        Some(chosen.into_iter().filter_map(|index| view.sealed.get(index).cloned()).collect())
    }

    /// Merges segments. Writes and sealing go on meanwhile.
    pub(super) async fn merge(&self, chosen: Vec<Arc<SegmentView>>) -> Result<(), NodeError> {
        let began = Instant::now();
        let span = background!("merge segments", antiphon.shard = %self.id, segments = chosen.len());
        let outcome = self.merge_chosen(chosen).instrument(span).await;
        record_task("merge", began, outcome.is_ok());
        outcome
    }

    async fn merge_chosen(&self, chosen: Vec<Arc<SegmentView>>) -> Result<(), NodeError> {
        let sources = chosen.iter().map(|view| (Arc::clone(view.segment()), Arc::clone(view.dead()))).collect();
        let built = self.build(sources).await?;
        let id = built.as_ref().map(|built| built.id.clone());
        let mut mutation = self.mutation.lock().await;
        let outcome = self.install_merged(&mut mutation, chosen, built).await;
        self.note_unnamed(&mut mutation, id);
        outcome
    }

    async fn install_merged(
        &self,
        mutation: &mut Mutation,
        chosen: Vec<Arc<SegmentView>>,
        built: Option<Built>,
    ) -> Result<(), NodeError> {
        let view = self.current();
        let now: Vec<_> =
            chosen.iter().filter_map(|old| view.sealed.iter().find(|segment| segment.id() == old.id())).collect();
        if now.len() < chosen.len() || !view.quarantined.is_empty() {
            // Another node merged them meanwhile: what it wrote is in force.
            return Ok(());
        }
        let merged: Vec<_> = chosen.iter().filter_map(|segment| segment.id().cloned()).collect();
        let mut sealed: Vec<_> =
            view.sealed.iter().filter(|segment| segment.id().is_none_or(|id| !merged.contains(id))).cloned().collect();
        let mut added = None;
        if let Some(built) = built {
            let died_meanwhile = died_since(&chosen, &now, built.segment.rows());
            sealed.push(built.view(&self.schema, died_meanwhile));
            added = Some(entry_of(&built.id, &built.files));
        }
        if self.commit(mutation, view.covered_seq, sealed, added).await? == Committed::Yes {
            let view = self.current();
            tracing::info!(
                shard = %self.id, merged = merged.len(), manifest = view.manifest_version,
                segments = view.sealed.len(), "merged"
            );
        }
        Ok(())
    }
}

/// Rows of the merged segment that died in its sources since the merge began.
fn died_since(
    before: &[Arc<SegmentView>],
    now: &[&Arc<SegmentView>],
    merged: &crate::segment::RowTable,
) -> RoaringBitmap {
    let pairs = before.iter().zip(now);
    pairs
        .flat_map(|(before, now)| {
            let died = now.dead().as_ref() - before.dead().as_ref();
            died.into_iter().filter_map(|row| merged.find(&now.segment().rows().folded_key(row))).collect::<Vec<_>>()
        })
        .collect()
}
