//! Collections by name: the catalog as a coordinator uses it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::ShardRef;
use antiphon_proto::key::KeyRule;
use antiphon_proto::store::{Catalog, CollectionEntry};
use antiphon_proto::v1::{Collection, Schema};
use antiphon_store::{CatalogStore, CollectionUid, StoreError, StoreErrorKind, UpdateError};

use crate::cluster::Target;
use crate::embed::Embedders;
use crate::validate::{Updated, updated};

/// Deleted collections that the catalog remembers, so that nodes delete what is left of them.
const MAX_DELETED_UIDS: usize = 1_000;

/// A collection, resolved for one call.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The name that the caller used: the collection's own or an alias.
    pub asked: String,
    /// As it was created.
    pub collection: Collection,
    /// Its schema.
    pub schema: Schema,
    /// How often fields were added to it.
    pub schema_version: u32,
    /// What one key is.
    pub key_rule: KeyRule,
}

impl Resolved {
    fn of(asked: &str, entry: &CollectionEntry) -> Self {
        let collection = entry.collection.clone().unwrap_or_default();
        let schema = collection.schema.clone().unwrap_or_default();
        let key_rule = KeyRule::of(schema.key_case());
        let schema_version = entry.schema_version;
        Self { asked: asked.to_owned(), collection, schema, schema_version, key_rule }
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        &self.collection.uid
    }

    /// Whether it is of another collection, or has fields that an earlier look did not show.
    pub fn is_newer_than(&self, earlier: &Self) -> bool {
        self.uid() != earlier.uid() || self.schema_version > earlier.schema_version
    }

    /// One of its shards, as nodes are told of it.
    pub fn shard_ref(&self, shard: u32) -> ShardRef {
        ShardRef { collection_uid: self.uid().to_owned(), shard, schema_version: self.schema_version }
    }

    /// One of its shards, as it is reached.
    pub fn target(&self, shard: u32) -> Target<'_> {
        Target { collection_uid: self.uid(), shard, copies: self.collection.replica_count, is_patient: true }
    }

    /// Its shards.
    pub fn num_shards(&self) -> u32 {
        self.collection.shard_count
    }
}

/// The catalog. Cheap to clone.
#[derive(Clone)]
pub struct Collections {
    pub(crate) store: CatalogStore,
}

impl Collections {
    /// Over a store's catalog.
    pub fn new(store: CatalogStore) -> Self {
        Self { store }
    }

    /// Keeps the cached catalog no older than `interval` until the future is dropped.
    pub async fn follow(self, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            if let Err(error) = self.store.refresh().await {
                tracing::warn!(%error, "the catalog could not be read");
            }
        }
    }

    /// A collection by its name or an alias, from the cached catalog where it is there.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; STORE_UNAVAILABLE.
    pub async fn find(&self, name: &str) -> Result<Arc<Resolved>, ApiError> {
        match find_entry(&self.store.cached().catalog, name) {
            Some(entry) => Ok(Arc::new(Resolved::of(name, entry))),
            None => self.find_newest(name).await,
        }
    }

    /// A collection by its name or an alias, from the store's newest catalog.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; STORE_UNAVAILABLE.
    pub async fn find_newest(&self, name: &str) -> Result<Arc<Resolved>, ApiError> {
        let newest = self.store.refresh().await.map_err(store_error)?;
        let entry = find_entry(&newest.catalog, name).ok_or_else(|| not_found(name))?;
        Ok(Arc::new(Resolved::of(name, entry)))
    }

    /// All collections in order of name, from the newest catalog.
    ///
    /// # Errors
    /// STORE_UNAVAILABLE.
    pub async fn list(&self) -> Result<Vec<Arc<Resolved>>, ApiError> {
        let newest = self.store.refresh().await.map_err(store_error)?;
        let mut all: Vec<_> = newest
            .catalog
            .collections
            .iter()
            .filter_map(|entry| Some(Arc::new(Resolved::of(&entry.collection.as_ref()?.name, entry))))
            .collect();
        all.sort_by(|a, b| a.collection.name.cmp(&b.collection.name));
        Ok(all)
    }

    /// Creates a validated collection.
    ///
    /// # Errors
    /// COLLECTION_EXISTS; STORE_UNAVAILABLE.
    pub async fn create(&self, mut collection: Collection) -> Result<Collection, ApiError> {
        collection.uid = CollectionUid::generate().as_str().to_owned();
        #[expect(clippy::disallowed_methods, reason = "told to people, compared with nothing")]
        {
            collection.create_time = Some(SystemTime::now().into());
        }
        let outcome = self.store.update(|catalog| {
            match find(catalog, &collection.name) {
                // Our own update, whose acknowledgement was lost.
                Some(found) if found.uid == collection.uid => return Ok(catalog.clone()),
                Some(_) => return Err(taken(catalog, &collection.name)),
                None => {}
            }
            let mut next = catalog.clone();
            next.collections.push(CollectionEntry { collection: Some(collection.clone()), schema_version: 0 });
            Ok(next)
        });
        outcome.await.map_err(update_error)?;
        Ok(collection)
    }

    /// Makes a collection what is wanted of it. Its vector fields may name these embedders.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; SCHEMA_CONFLICT, SCHEMA_INVALID; STORE_UNAVAILABLE.
    pub async fn update(&self, wanted: &Collection, embedders: &Embedders) -> Result<Arc<Resolved>, ApiError> {
        let outcome = self.store.update(|catalog| {
            let uid = find(catalog, &wanted.name).ok_or_else(|| not_found(&wanted.name))?.uid.clone();
            let mut next = catalog.clone();
            for entry in &mut next.collections {
                if let Some(current) = entry.collection.as_mut().filter(|found| found.uid == uid) {
                    let Updated { collection, adds_fields } = updated(current, wanted, embedders)?;
                    *current = collection;
                    entry.schema_version += u32::from(adds_fields);
                }
            }
            Ok(next)
        });
        let done = outcome.await.map_err(update_error)?;
        let entry = find_entry(&done.catalog, &wanted.name).ok_or_else(|| not_found(&wanted.name))?;
        Ok(Arc::new(Resolved::of(&wanted.name, entry)))
    }

    /// Deletes a collection by its own name, and its aliases with it.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; STORE_UNAVAILABLE.
    pub async fn delete(&self, name: &str) -> Result<(), ApiError> {
        let outcome = self.store.update(|catalog| {
            let mut next = catalog.clone();
            let uid = find_by_own_name(catalog, name)?.uid.clone();
            next.aliases.retain(|alias| alias.collection_uid != uid);
            next.collections.retain(|entry| entry.collection.as_ref().is_some_and(|found| found.uid != uid));
            next.deleted_uids.push(uid);
            let surplus = next.deleted_uids.len().saturating_sub(MAX_DELETED_UIDS);
            next.deleted_uids.drain(..surplus);
            Ok(next)
        });
        outcome.await.map(drop).map_err(update_error)
    }
}

fn all(catalog: &Catalog) -> impl Iterator<Item = &Collection> {
    catalog.collections.iter().filter_map(|entry| entry.collection.as_ref())
}

fn find_entry<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a CollectionEntry> {
    let uid = &find(catalog, name)?.uid;
    catalog.collections.iter().find(|entry| entry.collection.as_ref().is_some_and(|found| found.uid == *uid))
}

/// A collection by its name or an alias.
pub(crate) fn find<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Collection> {
    all(catalog).find(|found| found.name == name).or_else(|| {
        let alias = catalog.aliases.iter().find(|alias| alias.name == name)?;
        all(catalog).find(|found| found.uid == alias.collection_uid)
    })
}

/// A collection that is called so itself.
pub(crate) fn find_by_own_name<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Collection, ApiError> {
    let found = find(catalog, name).ok_or_else(|| not_found(name))?;
    if found.name == name {
        return Ok(found);
    }
    let words = format!("{name:?} is an alias of the collection {:?}, which is named by its own name here", found.name);
    Err(ApiError::new(ErrorKind::CollectionNotFound, words))
}

/// The error of a name that is in use.
pub(crate) fn taken(catalog: &Catalog, name: &str) -> ApiError {
    let what = if all(catalog).any(|found| found.name == name) { "a collection" } else { "an alias" };
    ApiError::new(ErrorKind::CollectionExists, format!("{what} named {name:?} is there already"))
}

pub(crate) fn not_found(name: &str) -> ApiError {
    let words = match name {
        "" => "no collection was named".to_owned(),
        name => format!("there is no collection named {name:?}"),
    };
    ApiError::new(ErrorKind::CollectionNotFound, words)
}

pub(crate) fn store_error(error: StoreError) -> ApiError {
    let kind = match error.kind() {
        StoreErrorKind::Corrupt => ErrorKind::Corruption,
        StoreErrorKind::Full => ErrorKind::DiskFull,
        _ => ErrorKind::StoreUnavailable,
    };
    ApiError::new(kind, format!("the catalog: {error}"))
}

pub(crate) fn update_error(error: UpdateError<ApiError>) -> ApiError {
    match error {
        UpdateError::Refused(error) => error,
        UpdateError::Store(error) => store_error(error),
    }
}
