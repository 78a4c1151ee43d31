//! Restoring a backup: its objects under a new uid, and the catalog's entry last.

use antiphon_proto::store::{Backup, Catalog, CollectionEntry, ShardBackup};

use super::{Backups, Copier, entry, shards, wanted_files};
use crate::catalog::{CatalogStore, UpdateError};
use crate::error::StoreError;
use crate::ids::{CollectionUid, ManifestVersion, Seq, ShardId};
use crate::log::{Append, Log};
use crate::manifest::{Commit, Manifests};
use crate::object::Store;

/// Why a backup was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A collection or an alias has the name.
    #[error("{0:?} is the name of a collection or an alias already")]
    NameTaken(String),
    /// A store failed, or the backup is damaged. After `Unavailable` the collection may be there: look.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Backups {
    /// Makes a collection of a backup in `target`, named `name`, or as the backup's was. Everything is verified on the way.
    /// The collection has a new uid, and is there at one moment, at the end.
    ///
    /// # Errors
    /// What was written before a failure is deleted again, if the store lets us; nothing of it can be seen.
    pub async fn restore(
        &self,
        backup: &str,
        target: &Store,
        name: Option<&str>,
        copier: &Copier,
    ) -> Result<CollectionEntry, RestoreError> {
        let backup = self.get(backup).await?;
        let uid = CollectionUid::generate();
        let mut made = backup.collection.clone().unwrap_or_default();
        let collection = made.collection.get_or_insert_default();
        collection.uid = uid.as_str().to_owned();
        if let Some(name) = name {
            collection.name = name.to_owned();
        }
        let name = collection.name.clone();
        if !is_name(&name) {
            return Err(StoreError::invalid(format!("collection name {name:?}"), "[a-z0-9_-]{1,64}").into());
        }
        let catalog = CatalogStore::new(target.clone());
        if is_taken(&catalog.refresh().await?.catalog, &name) {
            return Err(RestoreError::NameTaken(name));
        }
        if let Err(error) = self.copy_shards(&backup, &uid, target, copier).await {
            if let Err(error) = target.delete_prefix(&format!("collections/{uid}")).await {
                tracing::warn!(%uid, %error, "what was restored in part could not be deleted");
            }
            return Err(error.into());
        }
        let outcome = catalog.update(|catalog| {
            let is_ours = |entry: &CollectionEntry| entry.collection.as_ref().is_some_and(|c| c.uid == uid.as_str());
            if catalog.collections.iter().any(is_ours) {
                return Ok(catalog.clone());
            }
            if is_taken(catalog, &name) {
                return Err(());
            }
            let mut next = catalog.clone();
            next.collections.push(made.clone());
            Ok(next)
        });
        match outcome.await {
            Ok(_) => Ok(made),
            Err(UpdateError::Refused(())) => {
                target.delete_prefix(&format!("collections/{uid}")).await?;
                Err(RestoreError::NameTaken(name))
            }
            // The entry may be in force now or later, so nothing is deleted.
            Err(UpdateError::Store(error)) => Err(error.into()),
        }
    }

    async fn copy_shards(
        &self,
        backup: &Backup,
        uid: &CollectionUid,
        target: &Store,
        copier: &Copier,
    ) -> Result<(), StoreError> {
        for (shard, state) in shards(backup)? {
            let to = ShardId::new(uid.clone(), shard.shard())?;
            self.copy_shard(&shard, state, &to, target, copier).await?;
        }
        Ok(())
    }

    async fn copy_shard(
        &self,
        shard: &ShardId,
        state: &ShardBackup,
        to: &ShardId,
        target: &Store,
        copier: &Copier,
    ) -> Result<(), StoreError> {
        let files = wanted_files(shard, state)?.into_iter();
        let files = files.map(|file| (file.clone(), file.segment.file_path(to, &file.name))).collect();
        copier.copy_all(&self.store, target, files).await?;
        let (from, log) = (Log::new(self.store.clone(), shard.clone()), Log::new(target.clone(), to.clone()));
        for seq in state.first_seq..=state.last_seq {
            let entry = entry(&from, Seq(seq)).await?;
            if log.append(Seq(seq), &entry).await? != Append::Appended {
                return Err(StoreError::corrupt(to.path(), "somebody writes to a uid that is new"));
            }
        }
        if let Some(manifest) = &state.manifest
            && Manifests::new(target.clone(), to.clone()).commit(ManifestVersion(1), manifest).await? == Commit::Lost
        {
            return Err(StoreError::corrupt(to.path(), "somebody seals a uid that is new"));
        }
        Ok(())
    }
}

/// As the public contract says.
fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn is_taken(catalog: &Catalog, name: &str) -> bool {
    catalog.collections.iter().any(|entry| entry.collection.as_ref().is_some_and(|found| found.name == name))
        || catalog.aliases.iter().any(|alias| alias.name == name)
}
