//! Sealing: the live part becomes a segment in the store, and the log before it garbage.

use std::sync::Arc;
use std::time::Instant;

use antiphon_store::SegmentId;
use antiphon_telemetry::background;
use roaring::RoaringBitmap;
use tracing::Instrument as _;

use super::core::{Committed, Core, Mutation};
use super::maintain::record_task;
use super::manifest_entry::entry_of;
use super::segment_files::LandError;
use crate::cache::BuildRoom;
use crate::config::SealingConfig;
use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::segment::{BuiltSegment, Destination, Segment, SegmentBuilder, merge_segments};
use crate::view::{SegmentView, View, tombstones_by_ops};

/// How many times as much as its owner others let wait to be sealed.
const OTHERS_SLACK: u32 = 4;

/// The oldest live segments, and the log position that they and all before them reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) num_segments: usize,
    pub(super) covered_seq: u64,
}

/// As many of the oldest live segments as are large enough to be sealed, or all: one build has a bounded size, and a
/// backlog becomes several.
pub(super) fn oldest_part(view: &View, sealing: &SealingConfig) -> Part {
    let (mut rows, mut bytes, mut reached) = (0, 0, 0);
    for (place, segment) in view.live.iter().enumerate() {
        let table = segment.segment().rows();
        let seqs = || (0..table.num_rows()).map(|row| table.seq(row));
        // A position is covered whole or not at all.
        if (rows >= sealing.rows || bytes >= sealing.bytes) && seqs().min() > Some(reached) {
            return Part { num_segments: place, covered_seq: reached };
        }
        rows += u64::from(table.num_rows());
        bytes += segment.segment().size_bytes();
        reached = seqs().fold(reached, u64::max);
    }
    Part { num_segments: view.live.len(), covered_seq: view.seq }
}

impl Core {
    /// Whether the live part is large or old enough, and nothing is set aside: then the log must stay as it is. Who is not
    /// the owner waits much longer, and seals only where the owner does not.
    pub(super) fn wants_sealing(&self, view: &View, unsealed_for: std::time::Duration) -> bool {
        let sealing = &self.config.sealing;
        let unsealed = view.num_unsealed();
        let slack = if self.is_owner.load(std::sync::atomic::Ordering::Relaxed) { 1 } else { OTHERS_SLACK };
        let rows = (sealing.rows * u64::from(slack)).min(self.config.max_unsealed_rows);
        let bytes = (sealing.bytes * u64::from(slack)).min(self.config.max_unsealed_bytes);
        view.quarantined.is_empty()
            && unsealed > 0
            && (unsealed >= rows || view.live_bytes() >= bytes || unsealed_for >= sealing.age * slack)
    }

    /// Seals the oldest of what is live now. Writes go on meanwhile.
    pub(super) async fn seal(&self) -> Result<(), NodeError> {
        let (base, part) = {
            let mut mutation = self.mutation.lock().await;
            let view = self.current();
            let part = oldest_part(&view, &self.config.sealing);
            mutation.frozen = part.num_segments;
            (view, part)
        };
        let began = Instant::now();
        let span = background!("seal", antiphon.shard = %self.id, segments = part.num_segments);
        let outcome = self.seal_part(&base, part).instrument(span).await;
        record_task("seal", began, outcome.is_ok());
        if outcome.is_err() {
            self.mutation.lock().await.frozen = 0;
        }
        outcome
    }

    pub(super) async fn seal_part(&self, base: &View, part: Part) -> Result<(), NodeError> {
        let segments = base.live.iter().take(part.num_segments);
        let sources = segments.map(|view| (Arc::clone(view.segment()), Arc::clone(view.dead()))).collect();
        let built = self.build(sources).await?;
        let id = built.as_ref().map(|built| built.id.clone());
        let mut mutation = self.mutation.lock().await;
        let outcome = self.install_sealed(&mut mutation, base, part, built).await;
        self.note_unnamed(&mut mutation, id);
        outcome
    }

    async fn install_sealed(
        &self,
        mutation: &mut Mutation,
        base: &View,
        part: Part,
        built: Option<Built>,
    ) -> Result<(), NodeError> {
        let view = self.current();
        if view.covered_seq != base.covered_seq || !view.quarantined.is_empty() {
            // Another node sealed meanwhile: what it wrote is in force.
            mutation.frozen = 0;
            return Ok(());
        }
        let mut sealed = view.sealed.clone();
        let mut added = None;
        if let Some(built) = built {
            let fresh = built.view(&self.schema, RoaringBitmap::new());
            let dead = tombstones_by_ops(&view, part.covered_seq, &fresh);
            sealed.push(fresh.with_dead(&dead));
            added = Some(entry_of(&built.id, &built.files));
        }
        if self.commit(mutation, part.covered_seq, sealed, added).await? == Committed::Yes {
            let view = self.current();
            tracing::info!(
                shard = %self.id, seq = part.covered_seq, manifest = view.manifest_version, segments = view.sealed.len(),
                "sealed"
            );
        }
        mutation.frozen = 0;
        mutation.unsealed_since = (self.current().num_unsealed() > 0).then(std::time::Instant::now);
        Ok(())
    }

    /// Sees to it that a segment which came into no manifest is deleted in time, from the store and this machine. Where the
    /// outcome of a commit is unknown, a manifest may name it all the same: that is looked at before it is deleted.
    pub(super) fn note_unnamed(&self, mutation: &mut Mutation, built: Option<SegmentId>) {
        if let Some(id) = built
            && !mutation.entries.contains_key(&id)
        {
            self.files.forget(&id);
            mutation.garbage.orphan(id, self.config.orphan_grace);
        }
    }

    /// Builds a segment from the live rows of others, puts it into the store, and opens it; nothing where no row lives.
    pub(super) async fn build(
        &self,
        sources: Vec<(Arc<Segment>, Arc<RoaringBitmap>)>,
    ) -> Result<Option<Built>, NodeError> {
        let id = SegmentId::generate();
        let mut room = self.files.build_room(&id, expected_bytes(&sources, &self.schema))?;
        let (dir, schema, graph_min_rows) =
            (room.dir().to_owned(), Arc::clone(&self.schema), self.config.graph_min_rows);
        let stop = Arc::clone(&self.stop);
        let work = tokio::task::spawn_blocking(move || {
            let mut builder = SegmentBuilder::new(schema, Destination::Directory(dir), Some(graph_min_rows))?;
            merge_segments(&sources, |row| {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return Err(crate::segment::SegmentError::Stopped);
                }
                builder.add(&row)
            })?;
            if builder.num_rows() == 0 { Ok(None) } else { builder.finish(&stop).map(Some) }
        });
        let built = work.await.map_err(|error| NodeError::Internal(error.to_string()))?;
        let Some(files) = built.map_err(|error| room.build_failed(error.into()))? else {
            return Ok(None);
        };
        room.resize(files.files.iter().map(|file| file.size_bytes).sum())?;
        match self.put_and_land(&id, &files, room).await {
            Ok(segment) => Ok(Some(Built { id, files, segment })),
            Err(error) => {
                self.note_unnamed(&mut *self.mutation.lock().await, Some(id));
                Err(error)
            }
        }
    }

    async fn put_and_land(
        &self,
        id: &SegmentId,
        files: &BuiltSegment,
        room: BuildRoom,
    ) -> Result<Arc<Segment>, NodeError> {
        self.files.upload(id, files).await?;
        // Where the store is local, the build is not needed any more; else it is the cache's copy.
        let _lease = match self.files.store.is_local() {
            true => None,
            false => Some(room.adopt()?),
        };
        match self.files.land(&entry_of(id, files), &self.schema, self.threads).await {
            Ok(segment) => Ok(Arc::new(segment)),
            Err(LandError::Damaged(reason)) => Err(NodeError::Corruption(reason)),
            Err(LandError::Node(error)) => Err(error),
        }
    }
}

/// About how many bytes the files of a segment of others' rows will have: those they have, and graphs where they have none.
fn expected_bytes(sources: &[(Arc<Segment>, Arc<RoaringBitmap>)], schema: &ShardSchema) -> u64 {
    let graph_bytes = |dims: usize| 256 + 4 * dims as u64;
    let of_source = |(segment, _): &(Arc<Segment>, Arc<RoaringBitmap>)| {
        let fields = schema.vectors.iter().enumerate().filter(|(field, _)| segment.graph(*field).is_none());
        let graphs: u64 = fields.map(|(_, spec)| graph_bytes(spec.graph.dims)).sum();
        segment.size_bytes().saturating_add(graphs.saturating_mul(u64::from(segment.num_rows())))
    };
    sources.iter().map(of_source).fold(0, u64::saturating_add)
}

/// A segment that is in the store and open, and in no manifest yet.
pub(super) struct Built {
    pub(super) id: SegmentId,
    pub(super) files: BuiltSegment,
    pub(super) segment: Arc<Segment>,
}

impl Built {
    /// The segment as a view sees it.
    pub(super) fn view(&self, schema: &ShardSchema, dead: RoaringBitmap) -> Arc<SegmentView> {
        Arc::new(SegmentView::new(Some(self.id.clone()), Arc::clone(&self.segment), dead, schema.texts.len()))
    }
}
