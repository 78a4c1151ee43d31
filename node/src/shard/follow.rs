//! What a shard takes over from others: their log entries and their manifests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use antiphon_proto::store::LogEntry;
use antiphon_store::Seq;

use super::core::Core;
use super::recover::{self, Landed};
use crate::error::NodeError;
use crate::view::install;

impl Core {
    /// Applies what others wrote. Not to be dropped half-way. Cheap where nobody did: one look at the next position of the log, without the lock.
    pub(super) async fn follow(&self) -> Result<(), NodeError> {
        let next = Seq(self.current().seq).next();
        // Asked once more after the read, for the process may have been stopped meanwhile, and the entry collected.
        if self.is_fresh() && self.log.read(next).await?.is_none() && self.is_fresh() {
            return Ok(());
        }
        let mut mutation = self.mutation.lock().await;
        let began = Instant::now();
        self.catch_up(&mut mutation).await?;
        self.note_fresh(began);
        Ok(())
    }

    /// Applies entries that the node which appended them sent. Not to be dropped half-way. What is missing before them is
    /// read from the log.
    pub(super) async fn take_pushed(&self, first_seq: u64, entries: Vec<LogEntry>) -> Result<(), NodeError> {
        let mut mutation = self.mutation.lock().await;
        self.align(&mut mutation).await?;
        let last_seq = (first_seq + entries.len() as u64).saturating_sub(1);
        if first_seq > mutation.cursor.next().0 {
            return self.catch_up(&mut mutation).await;
        }
        let mut groups = Vec::with_capacity(entries.len());
        for (seq, entry) in (first_seq..=last_seq).zip(entries) {
            if seq < mutation.cursor.next().0 {
                continue;
            }
            let group = self.group_of(Seq(seq), entry)?;
            if !mutation.cursor.take(Seq(seq)) {
                break;
            }
            groups.push(group);
        }
        if groups.is_empty() {
            return Ok(());
        }
        self.apply(&mut mutation, groups).await.map(drop)
    }

    /// Notes that a manifest is in force.
    pub(super) fn hear_of_manifest(&self, version: u64) {
        self.heard_manifest.fetch_max(version, Ordering::Relaxed);
    }

    /// Whether a manifest is in force that the view does not go by yet.
    pub(super) fn is_behind_manifest(&self) -> bool {
        self.heard_manifest.load(Ordering::Relaxed) > self.current().manifest_version
    }

    /// Looks whether another committed a manifest. Cheap where nobody did.
    pub(super) async fn look_for_manifest(&self) -> Result<(), NodeError> {
        let next = antiphon_store::ManifestVersion(self.current().manifest_version).next();
        if self.manifests.read(next).await?.is_some() {
            self.hear_of_manifest(next.0);
        }
        Ok(())
    }

    /// Goes over to the newest manifest: its segments are fetched and opened first, while searches and writes go on.
    pub(super) async fn adopt(&self) -> Result<(), NodeError> {
        let Some((version, manifest)) = self.manifests.newest().await? else { return Ok(()) };
        let held = self.current();
        if version.0 <= held.manifest_version {
            return Ok(());
        }
        self.check_schema(manifest.schema_version)?;
        if held.seq < manifest.tombstone_seq {
            self.follow().await?;
        }
        let landed: Landed = recover::land_missing(self, &held, &manifest).await?;
        let mut mutation = self.mutation.lock().await;
        self.align(&mut mutation).await?;
        let view = self.current();
        if version.0 <= view.manifest_version {
            return Ok(());
        }
        if view.seq < manifest.tombstone_seq || manifest.covered_seq < view.covered_seq {
            // Not what the log showed a moment ago: begin anew.
            return self.reload_with(&mut mutation, &landed).await;
        }
        let base = recover::load(self, &view, version.0, &manifest, &landed).await?;
        let next = install(&view, version.0, manifest.covered_seq, base.sealed, base.quarantined);
        mutation.entries = recover::without_tombstones(manifest)?;
        mutation.frozen = 0;
        mutation.garbage.saw_manifest(next.manifest_version, next.covered_seq);
        tracing::debug!(shard = %self.id, manifest = next.manifest_version, segments = next.sealed.len(), "took over a manifest");
        self.publish(&mut mutation, next);
        self.forget_unused(&held, &mutation.entries.keys().cloned().collect::<Vec<_>>());
        Ok(())
    }

    /// Removes from this machine what the segments of an older view left there and no manifest in force names.
    fn forget_unused(&self, older: &crate::view::View, kept: &[antiphon_store::SegmentId]) {
        for id in older.sealed.iter().filter_map(|segment| segment.id()).filter(|id| !kept.contains(id)) {
            self.files.forget(id);
        }
    }

    /// No segments beyond those that are open.
    pub(super) fn nothing_landed() -> Landed {
        HashMap::<String, Arc<crate::segment::Segment>>::new()
    }
}
