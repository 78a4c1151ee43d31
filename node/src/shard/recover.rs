//! Opening a shard: the newest manifest, its segments, and the log beyond it.

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_proto::store::{Manifest, SegmentEntry};
use antiphon_store::{LogCursor, LogPoll, SegmentId};

use super::core::Core;
use super::manifest_entry::decode_tombstones;
use super::segment_files::LandError;
use crate::error::NodeError;
use crate::segment::Segment;
use crate::view::{SegmentView, View, apply};

/// How often the log may be sealed past a shard that is being opened before that is called unavailable.
const MAX_ATTEMPTS: usize = 8;
/// Entries read at once; they become one live segment.
const ENTRIES_AT_ONCE: usize = 1024;

/// A shard as the store has it.
pub(super) struct Recovered {
    pub(super) view: View,
    pub(super) cursor: LogCursor,
    pub(super) entries: HashMap<SegmentId, SegmentEntry>,
    /// The schema's version that the manifest is of.
    pub(super) schema_version: u32,
}

/// Segments that were opened beforehand, by id.
pub(super) type Landed = HashMap<String, Arc<Segment>>;

/// Reads a shard from the store. Segments that `held` has open or that are `landed` are not opened again. Damaged segments
/// are set aside.
pub(super) async fn recover(core: &Core, held: &View, landed: &Landed) -> Result<Recovered, NodeError> {
    for _ in 0..MAX_ATTEMPTS {
        let (newest, cursor) = LogCursor::open(core.log.clone(), core.manifests.clone()).await?;
        let (version, manifest) = newest.map_or((0, Manifest::default()), |(version, manifest)| (version.0, manifest));
        core.check_schema(manifest.schema_version)?;
        let schema_version = manifest.schema_version;
        let base = load(core, held, version, &manifest, landed).await?;
        if let Some((view, cursor)) = replay(core, base.clone(), cursor).await? {
            if view.seq < manifest.tombstone_seq {
                return Err(NodeError::Corruption(format!(
                    "shard {}: the manifest's tombstones are those of seq {}, but the log ends at {}",
                    core.id, manifest.tombstone_seq, view.seq
                )));
            }
            let entries = without_tombstones(manifest)?;
            return Ok(Recovered { view, cursor, entries, schema_version });
        }
    }
    Err(NodeError::StoreUnavailable(format!("shard {}: the log was sealed again and again while it was read", core.id)))
}

/// Opens what a manifest names and `held` does not have, so that it need not be waited for later. What is damaged or
/// cannot be had is left to [`load`].
///
/// # Errors
/// [`NodeError::DiskFull`], the store's.
pub(super) async fn land_missing(core: &Core, held: &View, manifest: &Manifest) -> Result<Landed, NodeError> {
    let open = open_segments(held);
    let missing: Vec<_> = manifest.segments.iter().filter(|entry| !open.contains_key(entry.id.as_str())).collect();
    let mut landed = Landed::new();
    for (id, outcome) in core.files.land_all(&missing, &core.schema, core.threads).await? {
        match outcome {
            Ok(segment) => drop(landed.insert(id, Arc::new(segment))),
            Err(LandError::Damaged(_)) => {}
            Err(LandError::Node(error)) => return Err(error),
        }
    }
    Ok(landed)
}

fn open_segments(held: &View) -> HashMap<&str, &Arc<Segment>> {
    held.sealed.iter().filter_map(|view| Some((view.id()?.as_str(), view.segment()))).collect()
}

/// The view of a manifest without the log beyond it.
///
/// # Errors
/// [`NodeError::Corruption`]; what opening a segment gives.
pub(super) async fn load(
    core: &Core,
    held: &View,
    version: u64,
    manifest: &Manifest,
    landed: &Landed,
) -> Result<View, NodeError> {
    let mut open = open_segments(held);
    open.extend(landed.iter().map(|(id, segment)| (id.as_str(), segment)));
    let mut view = View::empty();
    view.seq = manifest.covered_seq;
    view.manifest_version = version;
    view.covered_seq = manifest.covered_seq;
    let missing: Vec<_> = manifest.segments.iter().filter(|entry| !open.contains_key(entry.id.as_str())).collect();
    let mut landed = core.files.land_all(&missing, &core.schema, core.threads).await?;
    for entry in &manifest.segments {
        let id: SegmentId =
            entry.id.parse().map_err(|error| NodeError::Corruption(format!("a manifest names a segment {error}")))?;
        let segment = match open.get(entry.id.as_str()).copied() {
            Some(segment) => Arc::clone(segment),
            None => match landed.remove(&entry.id).unwrap_or_else(|| Err(LandError::Damaged("named twice".into()))) {
                Ok(segment) => Arc::new(segment),
                Err(LandError::Damaged(reason)) => {
                    tracing::error!(shard = %core.id, reason, "a segment is damaged and set aside");
                    core.files.forget(&id);
                    view.quarantined.push(id);
                    continue;
                }
                Err(LandError::Node(error)) => return Err(error),
            },
        };
        let dead = decode_tombstones(&entry.tombstones)?;
        view.sealed.push(Arc::new(SegmentView::new(Some(id), segment, dead, core.schema.texts.len())));
    }
    Ok(view)
}

/// Applies the log; nothing where it was sealed further meanwhile.
async fn replay(core: &Core, mut view: View, mut cursor: LogCursor) -> Result<Option<(View, LogCursor)>, NodeError> {
    loop {
        match cursor.poll(ENTRIES_AT_ONCE).await? {
            LogPoll::Behind => return Ok(None),
            LogPoll::Entries(entries) if entries.is_empty() => return Ok(Some((view, cursor))),
            LogPoll::Entries(entries) => {
                let groups =
                    entries.into_iter().map(|(seq, entry)| core.group_of(seq, entry)).collect::<Result<_, _>>()?;
                let (schema, threads) = (Arc::clone(&core.schema), core.threads);
                let work = tokio::task::spawn_blocking(move || apply(&view, &schema, groups, threads));
                view = work.await.map_err(|error| NodeError::Internal(error.to_string()))??.view;
            }
        }
    }
}

/// The entries of a manifest by id, without tombstones.
pub(super) fn without_tombstones(manifest: Manifest) -> Result<HashMap<SegmentId, SegmentEntry>, NodeError> {
    manifest
        .segments
        .into_iter()
        .map(|mut entry| {
            entry.tombstones.clear();
            let id = entry
                .id
                .parse()
                .map_err(|error| NodeError::Corruption(format!("a manifest names a segment {error}")))?;
            Ok((id, entry))
        })
        .collect()
}
