//! A view that this node never had, made anew from its name: the manifest it goes by, and the log up to its position.
//!
//! That is how a snapshot taken on one replica is answered by another, or by the same node after a restart, for as long as
//! the store keeps what the view is made of.

use antiphon_proto::internal::ViewName;
use antiphon_store::{ManifestVersion, Seq};
use futures::{StreamExt, stream};

use super::core::Core;
use super::recover;
use crate::error::NodeError;
use crate::view::{View, apply};

/// Most log entries that a view is made of; one that needs more is called expired.
const MAX_ENTRIES: u64 = 100_000;
/// Entries read at once.
const READS_IN_FLIGHT: usize = 8;
/// Entries applied together.
const ENTRIES_AT_ONCE: usize = 1024;

/// The view of a name; none where the store does not keep what it is made of, or the name is none that ever was.
///
/// # Errors
/// The store's; [`NodeError::Corruption`].
pub(super) async fn rebuild(core: &Core, name: &ViewName) -> Result<Option<View>, NodeError> {
    let manifest = match name.manifest_version {
        0 => antiphon_proto::store::Manifest::default(),
        version => match core.manifests.read(ManifestVersion(version)).await? {
            Some(manifest) => manifest,
            None => return Ok(None),
        },
    };
    // A view shows at least what its manifest's tombstones do.
    if name.seq < manifest.covered_seq.max(manifest.tombstone_seq) || name.seq - manifest.covered_seq > MAX_ENTRIES {
        return Ok(None);
    }
    core.check_schema(manifest.schema_version)?;
    if manifest.schema_version < core.schema.version {
        // It had fewer fields, and a search of all fields would find more in it now.
        return Ok(None);
    }
    let held = core.current();
    let landed = recover::land_missing(core, &held, &manifest).await?;
    let mut view = recover::load(core, &held, name.manifest_version, &manifest, &landed).await?;
    if !view.quarantined.is_empty() {
        // Of the files that the store has deleted since, nothing can be said.
        return Ok(None);
    }
    let positions = manifest.covered_seq + 1..=name.seq;
    let mut entries = stream::iter(positions)
        .map(|seq| async move { core.log.read(Seq(seq)).await.map(|entry| (Seq(seq), entry)) })
        .buffered(READS_IN_FLIGHT)
        .chunks(ENTRIES_AT_ONCE);
    while let Some(chunk) = entries.next().await {
        let mut groups = Vec::with_capacity(chunk.len());
        for read in chunk {
            let (seq, entry) = read?;
            let Some(entry) = entry else { return Ok(None) };
            groups.push(core.group_of(seq, entry)?);
        }
        let (schema, threads) = (std::sync::Arc::clone(&core.schema), core.threads);
        let work = tokio::task::spawn_blocking(move || apply(&view, &schema, groups, threads));
        view = work.await.map_err(|error| NodeError::Internal(error.to_string()))??.view;
    }
    Ok(Some(view))
}
