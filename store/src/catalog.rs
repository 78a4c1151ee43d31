//! [`CatalogStore`]: all collections in one object, replaced as a whole by create-if-absent of the next version.
//!
//! Not here: what the catalog means (names, aliases, schemas): the caller's function computes the next one.
//!
//! Invariants: the catalog of the highest version is in force, and is never deleted. An update that was reported done was
//! made to the newest catalog and is in every later one. The cached catalog never goes back.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use antiphon_proto::store::Catalog;
use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use crate::error::StoreError;
use crate::frame::Kind;
use crate::framed::{self, Outcome};
use crate::ids::CatalogVersion;
use crate::moment::Moment;
use crate::object::{Listed, Store};
use crate::retention::{FENCE_AFTER, LOG_GRACE};
use crate::retry::Retry;

const PREFIX: &str = "catalog";
/// Versions kept besides the newest, however old.
const KEEP_VERSIONS: usize = 16;
/// How long an update may go on losing races.
const UPDATE_PATIENCE: Duration = Duration::from_secs(30);
/// How often the newest may vanish between list and read before that is called unavailable.
const MAX_LISTINGS: usize = 8;

/// A catalog and its version.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VersionedCatalog {
    /// 0 for the empty catalog of an empty store.
    pub version: CatalogVersion,
    /// All collections.
    pub catalog: Catalog,
}

/// Why [`CatalogStore::update`] did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The caller's function refused; nothing was written.
    #[error("the change was refused")]
    Refused(E),
    /// The store failed. After `Unavailable` the change may be in force, now or later.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The catalog of a store. Cheap to clone; clones share the cached catalog.
#[derive(Debug, Clone)]
pub struct CatalogStore {
    store: Store,
    newest: Arc<ArcSwap<VersionedCatalog>>,
    /// One update at a time in this process, so that it does not race with itself.
    updating: Arc<Mutex<()>>,
    keep_at_least: Duration,
}

impl CatalogStore {
    /// The catalog of `store`; makes no request, so the cached catalog is empty until a [`CatalogStore::refresh`].
    pub fn new(store: Store) -> Self {
        Self { store, newest: Arc::default(), updating: Arc::default(), keep_at_least: LOG_GRACE }
    }

    /// The same catalog, deleting versions that were passed this long ago (by the store's clock) and are not among the
    /// last 16. Less than the default of [`LOG_GRACE`] is for tests: see [`CatalogStore::update`].
    pub fn with_keep_at_least(mut self, keep_at_least: Duration) -> Self {
        self.keep_at_least = keep_at_least;
        self
    }

    /// The newest catalog this process has seen.
    pub fn cached(&self) -> Arc<VersionedCatalog> {
        self.newest.load_full()
    }

    /// Looks for a newer catalog than the cached one, and returns the newest. One list, and one read if there is a newer.
    ///
    /// # Errors
    /// `Corrupt` if the newest is damaged: never silently an older one, for a deleted collection would come back and a
    /// created one would vanish.
    pub async fn refresh(&self) -> Result<Arc<VersionedCatalog>, StoreError> {
        for _ in 0..MAX_LISTINGS {
            let known = self.cached();
            let Some(version) = self.later_than(known.version).await?.last().map(|(version, _)| *version) else {
                return Ok(known);
            };
            if let Some(catalog) = framed::read(&self.store, &path(version), Kind::Catalog).await? {
                return Ok(self.keep(VersionedCatalog { version, catalog }));
            }
            // Deleted between list and read, so there is a newer one.
        }
        Err(unavailable("the newest catalog vanished again and again"))
    }

    /// Replaces the catalog by what `change` makes of the newest one. `change` may be called several times, each time with
    /// a newer catalog, when others were faster. Where it changes nothing, nothing is written.
    ///
    /// # Errors
    /// `Refused` with what `change` returned. After `Store(Unavailable)` the change may be in force, now or later: refresh
    /// and look.
    pub async fn update<E>(
        &self,
        mut change: impl FnMut(&Catalog) -> Result<Catalog, E>,
    ) -> Result<Arc<VersionedCatalog>, UpdateError<E>> {
        let _one_at_a_time = self.updating.lock().await;
        let mut races = Retry::new(UPDATE_PATIENCE);
        loop {
            let began = Moment::now();
            let base = self.refresh().await?;
            let catalog = change(&base.catalog).map_err(UpdateError::Refused)?;
            if catalog == base.catalog {
                return Ok(base);
            }
            let version = base.version.next();
            match framed::create(&self.store, &path(version), Kind::Catalog, &catalog).await? {
                Outcome::Created => {
                    let later = self.later_than(version).await?;
                    // A version is deleted only `keep_at_least` after it was passed, so if this was quick it was ours to
                    // create, though others went on since. If we were stopped on the way, it may be one that was deleted.
                    if !later.is_empty() && began.elapsed() >= FENCE_AFTER {
                        return Err(unavailable("the update took too long to tell whether it is in force").into());
                    }
                    let done = self.keep(VersionedCatalog { version, catalog });
                    if let Err(error) = self.delete_old().await {
                        // The next update tries again.
                        tracing::warn!(%error, "could not delete old versions of the catalog");
                    }
                    return Ok(done);
                }
                Outcome::Taken(_) => {
                    if !races.again().await {
                        return Err(unavailable("others changed the catalog first, again and again").into());
                    }
                }
            }
        }
    }

    /// Caches a catalog unless a newer one is; returns the one that is cached then.
    fn keep(&self, found: VersionedCatalog) -> Arc<VersionedCatalog> {
        let found = Arc::new(found);
        self.newest.rcu(|known| match known.version < found.version {
            true => Arc::clone(&found),
            false => Arc::clone(known),
        });
        self.cached()
    }

    async fn later_than(&self, version: CatalogVersion) -> Result<Vec<(CatalogVersion, Listed)>, StoreError> {
        let listed = self.store.list(PREFIX, Some(&version.name())).await?;
        Ok(numbered(listed))
    }

    async fn delete_old(&self) -> Result<(), StoreError> {
        let versions = numbered(self.store.list(PREFIX, None).await?);
        for version in deletable(&versions, self.keep_at_least) {
            self.store.delete(&path(version)).await?;
        }
        Ok(())
    }
}

/// Which versions may go: not the newest nor the [`KEEP_VERSIONS`] before it, and only those whose successor is at least
/// `keep_at_least` older than the newest. Both times are the store's.
fn deletable(versions: &[(CatalogVersion, Listed)], keep_at_least: Duration) -> Vec<CatalogVersion> {
    let Some((_, newest)) = versions.last() else {
        return Vec::new();
    };
    let passed_long_ago =
        |passed: SystemTime| newest.last_modified.duration_since(passed).is_ok_and(|ago| ago >= keep_at_least);
    let candidates = versions.len().saturating_sub(KEEP_VERSIONS + 1);
    let pairs = versions.windows(2).take(candidates);
    let due = pairs.take_while(|pair| passed_long_ago(pair[1].1.last_modified));
    due.map(|pair| pair[0].0).collect()
}

fn numbered(listed: Vec<Listed>) -> Vec<(CatalogVersion, Listed)> {
    let number = |object: Listed| Some((CatalogVersion::from_name(&object.name)?, object));
    listed.into_iter().filter_map(number).collect()
}

fn path(version: CatalogVersion) -> String {
    format!("{PREFIX}/{}", version.name())
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable { path: PREFIX.to_owned(), reason: reason.to_owned(), source: None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn versions(ages_s: &[u64]) -> Vec<(CatalogVersion, Listed)> {
        #[expect(clippy::disallowed_methods, reason = "the store's times are the wall clock's")]
        let now = SystemTime::now();
        let one = |(n, age): (usize, &u64)| {
            let version = CatalogVersion(n as u64 + 1);
            let listed = Listed { name: version.name(), size_bytes: 1, last_modified: now - Duration::from_secs(*age) };
            (version, listed)
        };
        ages_s.iter().enumerate().map(one).collect()
    }

    #[test]
    fn only_versions_passed_long_ago_are_deletable() {
        let mut ages = vec![900, 800, 700, 300];
        ages.extend([200; KEEP_VERSIONS]);
        ages.push(0);
        let grace = Duration::from_secs(600);
        // The third is old, but was in force until 300 s ago.
        assert_eq!(deletable(&versions(&ages), grace), [CatalogVersion(1), CatalogVersion(2)]);
        assert_eq!(deletable(&versions(&ages), Duration::ZERO).len(), 4);
        assert!(deletable(&versions(&ages[..KEEP_VERSIONS]), Duration::ZERO).is_empty());
        assert!(deletable(&[], grace).is_empty());
    }

    #[tokio::test]
    async fn an_older_catalog_never_replaces_a_newer_one() {
        let catalogs = CatalogStore::new(Store::open("memory://").unwrap());
        let version = |n| VersionedCatalog { version: CatalogVersion(n), ..Default::default() };
        assert_eq!(catalogs.keep(version(2)).version, CatalogVersion(2));
        assert_eq!(catalogs.keep(version(1)).version, CatalogVersion(2));
    }
}
