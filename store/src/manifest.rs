//! [`Manifests`]: the versioned list of one shard's sealed segments, replaced by create-if-absent of the next version.
//!
//! Invariants: the manifest of the highest version is in force. It is never deleted. A manifest that breaks
//! [`check_manifest`] is neither written nor returned.

use antiphon_proto::store::Manifest;

use crate::error::StoreError;
use crate::frame::Kind;
use crate::framed::{self, Outcome};
use crate::ids::{ManifestVersion, ShardId};
use crate::manifest_check::check_manifest;
use crate::object::Store;

/// How often the newest may vanish between list and read before that is called unavailable.
const MAX_LISTINGS: usize = 8;

/// What became of [`Manifests::commit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// The manifest is in force.
    Committed,
    /// Another manifest of this version, or a higher version, is in force. Mostly this manifest never was; it may have been
    /// for a moment. Either way: read the newest, see what it covers, and begin from there. Don't delete the segments' files
    /// on this word: the newest manifest may name them.
    Lost,
}

/// The manifests of one shard.
#[derive(Debug, Clone)]
pub struct Manifests {
    store: Store,
    shard: ShardId,
    prefix: String,
}

impl Manifests {
    /// The manifests of `shard`; makes no request.
    pub fn new(store: Store, shard: ShardId) -> Self {
        let prefix = format!("{}/manifest", shard.path());
        Self { store, shard, prefix }
    }

    /// Whose manifests they are.
    pub fn shard(&self) -> &ShardId {
        &self.shard
    }

    /// The versions in the store, ascending.
    pub async fn versions(&self) -> Result<Vec<ManifestVersion>, StoreError> {
        let listed = self.store.list(&self.prefix, None).await?;
        Ok(listed.iter().filter_map(|object| ManifestVersion::from_name(&object.name)).collect())
    }

    /// The manifest in force; nothing if the shard never had one.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged: never silently an older one, since what it covered less may already be deleted from the
    /// log, and writes would be lost without a word. An operator who accepts that can [`Manifests::read`] an older one and
    /// commit it as a new version.
    pub async fn newest(&self) -> Result<Option<(ManifestVersion, Manifest)>, StoreError> {
        for _ in 0..MAX_LISTINGS {
            let Some(version) = self.versions().await?.last().copied() else {
                return Ok(None);
            };
            if let Some(manifest) = self.read(version).await? {
                return Ok(Some((version, manifest)));
            }
            // Deleted between list and read, so there is a newer one.
        }
        Err(StoreError::Unavailable {
            path: self.prefix.clone(),
            reason: "the newest manifest vanished again and again".to_owned(),
            source: None,
        })
    }

    /// The manifest of one version; nothing if there is none (any more).
    pub async fn read(&self, version: ManifestVersion) -> Result<Option<Manifest>, StoreError> {
        let path = self.path(version);
        let manifest: Option<Manifest> = framed::read(&self.store, &path, Kind::Manifest).await?;
        if let Some(manifest) = &manifest {
            check_manifest(manifest).map_err(|fault| StoreError::corrupt(path, fault))?;
        }
        Ok(manifest)
    }

    /// Puts `manifest` in force as `version`, which follows the one it was made from. Its segments' files must be in the
    /// store.
    ///
    /// # Errors
    /// `Invalid` if it breaks its rules. After `Unavailable` it may be in force, now or later: commit the same again, or
    /// read the newest.
    pub async fn commit(&self, version: ManifestVersion, manifest: &Manifest) -> Result<Commit, StoreError> {
        if version == ManifestVersion(0) {
            return Err(StoreError::invalid("manifest version", "the first is 1"));
        }
        check_manifest(manifest).map_err(|fault| StoreError::invalid("manifest", fault))?;
        match framed::create(&self.store, &self.path(version), Kind::Manifest, manifest).await? {
            Outcome::Created => {}
            // An earlier call's, or another writer's with the same content: as good as this one.
            Outcome::Taken(found) if found == *manifest => {}
            Outcome::Taken(_) => return Ok(Commit::Lost),
        }
        // A writer that was stopped for long may have created a version that was passed and deleted.
        let later = self.store.list(&self.prefix, Some(&version.name())).await?;
        match later.iter().any(|object| ManifestVersion::from_name(&object.name).is_some()) {
            true => Ok(Commit::Lost),
            false => Ok(Commit::Committed),
        }
    }

    /// Deletes the versions below `version`, but never the highest there is. Returns how many.
    pub async fn delete_before(&self, version: ManifestVersion) -> Result<u64, StoreError> {
        let mut versions = self.versions().await?;
        versions.pop();
        let mut deleted = 0;
        for old in versions.into_iter().take_while(|old| *old < version) {
            self.store.delete(&self.path(old)).await?;
            deleted += 1;
        }
        Ok(deleted)
    }

    fn path(&self, version: ManifestVersion) -> String {
        format!("{}/{}", self.prefix, version.name())
    }
}
