//! Collections by name: the catalog as a coordinator uses it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::key::KeyRule;
use antiphon_proto::store::{Catalog, CollectionEntry};
use antiphon_proto::v1::{Collection, Schema};
use antiphon_store::{CatalogStore, CollectionUid, StoreError, StoreErrorKind, UpdateError};

/// Deleted collections that the catalog remembers, so that nodes delete what is left of them.
const MAX_DELETED_UIDS: usize = 1_000;

/// A collection, resolved for one call.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// As it was created.
    pub collection: Collection,
    /// Its schema.
    pub schema: Schema,
    /// What one key is.
    pub key_rule: KeyRule,
}

impl Resolved {
    fn of(collection: &Collection) -> Self {
        let schema = collection.schema.clone().unwrap_or_default();
        let key_rule = KeyRule::of(schema.key_case());
        Self { collection: collection.clone(), schema, key_rule }
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        &self.collection.uid
    }

    /// Its shards.
    pub fn num_shards(&self) -> u32 {
        self.collection.shard_count
    }
}

/// The catalog. Cheap to clone.
#[derive(Clone)]
pub struct Collections {
    store: CatalogStore,
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

    /// A collection by name, from the cached catalog where it is there.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; STORE_UNAVAILABLE.
    pub async fn find(&self, name: &str) -> Result<Arc<Resolved>, ApiError> {
        match find(&self.store.cached().catalog, name) {
            Some(collection) => Ok(Arc::new(Resolved::of(collection))),
            None => self.find_newest(name).await,
        }
    }

    /// A collection by name, from the store's newest catalog.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; STORE_UNAVAILABLE.
    pub async fn find_newest(&self, name: &str) -> Result<Arc<Resolved>, ApiError> {
        let newest = self.store.refresh().await.map_err(store_error)?;
        let collection = find(&newest.catalog, name).ok_or_else(|| not_found(name))?;
        Ok(Arc::new(Resolved::of(collection)))
    }

    /// All collections in order of name, from the newest catalog.
    ///
    /// # Errors
    /// STORE_UNAVAILABLE.
    pub async fn list(&self) -> Result<Vec<Arc<Resolved>>, ApiError> {
        let newest = self.store.refresh().await.map_err(store_error)?;
        let collections = newest.catalog.collections.iter().filter_map(|entry| entry.collection.as_ref());
        let mut all: Vec<_> = collections.map(|collection| Arc::new(Resolved::of(collection))).collect();
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
                Some(_) => {
                    return Err(ApiError::new(
                        ErrorKind::CollectionExists,
                        format!("a collection named {:?} is there already", collection.name),
                    ));
                }
                None => {}
            }
            let mut next = catalog.clone();
            next.collections.push(CollectionEntry { collection: Some(collection.clone()) });
            Ok(next)
        });
        outcome.await.map_err(update_error)?;
        Ok(collection)
    }

    /// Deletes a collection.
    ///
    /// # Errors
    /// COLLECTION_NOT_FOUND; STORE_UNAVAILABLE.
    pub async fn delete(&self, name: &str) -> Result<(), ApiError> {
        let outcome = self.store.update(|catalog| {
            let mut next = catalog.clone();
            let uid = find(catalog, name).ok_or_else(|| not_found(name))?.uid.clone();
            next.collections.retain(|entry| entry.collection.as_ref().is_some_and(|found| found.uid != uid));
            next.deleted_uids.push(uid);
            let surplus = next.deleted_uids.len().saturating_sub(MAX_DELETED_UIDS);
            next.deleted_uids.drain(..surplus);
            Ok(next)
        });
        outcome.await.map(drop).map_err(update_error)
    }
}

fn find<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Collection> {
    catalog.collections.iter().filter_map(|entry| entry.collection.as_ref()).find(|found| found.name == name)
}

fn not_found(name: &str) -> ApiError {
    let words = match name {
        "" => "no collection was named".to_owned(),
        name => format!("there is no collection named {name:?}"),
    };
    ApiError::new(ErrorKind::CollectionNotFound, words)
}

fn store_error(error: StoreError) -> ApiError {
    let kind = match error.kind() {
        StoreErrorKind::Corrupt => ErrorKind::Corruption,
        StoreErrorKind::Full => ErrorKind::DiskFull,
        _ => ErrorKind::StoreUnavailable,
    };
    ApiError::new(kind, format!("the catalog: {error}"))
}

fn update_error(error: UpdateError<ApiError>) -> ApiError {
    match error {
        UpdateError::Refused(error) => error,
        UpdateError::Store(error) => store_error(error),
    }
}
