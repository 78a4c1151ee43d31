//! The catalog.

use std::time::Duration;

use antiphon_proto::store::{Catalog, CollectionEntry};
use antiphon_proto::v1::Collection;
use antiphon_store::{CatalogStore, CatalogVersion, Store, UpdateError};
use futures::future::join_all;

// The entry may come to have more fields.
#[allow(clippy::needless_update)]
fn with(catalog: &Catalog, name: &str) -> Catalog {
    let mut next = catalog.clone();
    next.collections.push(CollectionEntry {
        collection: Some(Collection { name: name.to_owned(), ..Default::default() }),
        ..Default::default()
    });
    next
}

async fn add(catalogs: &CatalogStore, name: &str) {
    catalogs.update(|catalog| Ok::<_, ()>(with(catalog, name))).await.unwrap();
}

fn names(catalog: &Catalog) -> Vec<String> {
    let mut names: Vec<_> =
        catalog.collections.iter().filter_map(|entry| Some(entry.collection.as_ref()?.name.clone())).collect();
    names.sort_unstable();
    names
}

pub async fn an_empty_store_has_an_empty_catalog(store: Store) {
    let catalogs = CatalogStore::new(store);
    let newest = catalogs.refresh().await.unwrap();
    assert_eq!(newest.version, CatalogVersion(0));
    assert_eq!(newest.catalog, Catalog::default());
}

pub async fn concurrent_updates_lose_none(store: Store) {
    let updaters = (0..6).map(|updater| {
        // Each its own, as if each were another process.
        let catalogs = CatalogStore::new(store.clone());
        tokio::spawn(async move {
            for n in 0..4 {
                add(&catalogs, &format!("{updater}-{n}")).await;
            }
        })
    });
    join_all(updaters).await.into_iter().for_each(Result::unwrap);
    let newest = CatalogStore::new(store).refresh().await.unwrap();
    assert_eq!(newest.version, CatalogVersion(24));
    let expected: Vec<_> = (0..6).flat_map(|updater| (0..4).map(move |n| format!("{updater}-{n}"))).collect();
    assert_eq!(names(&newest.catalog), expected);
}

pub async fn refusals_and_no_changes_write_nothing(store: Store) {
    let catalogs = CatalogStore::new(store.clone());
    add(&catalogs, "one").await;
    let refused = catalogs.update(|_| Err("no")).await;
    assert!(matches!(refused, Err(UpdateError::Refused("no"))));
    let same = catalogs.update(|catalog| Ok::<_, ()>(catalog.clone())).await.unwrap();
    assert_eq!(same.version, CatalogVersion(1));
    assert_eq!(store.list("catalog", None).await.unwrap().len(), 1);
    assert_eq!(catalogs.cached(), same);
}

pub async fn old_versions_go_and_blind_nobody(store: Store) {
    let reader = CatalogStore::new(store.clone());
    let catalogs = CatalogStore::new(store.clone()).with_keep_at_least(Duration::ZERO);
    add(&catalogs, "0").await;
    assert_eq!(reader.refresh().await.unwrap().version, CatalogVersion(1));
    for n in 1..25 {
        add(&catalogs, &n.to_string()).await;
    }
    let kept = store.list("catalog", None).await.unwrap();
    assert_eq!(kept.len(), 17);
    assert_eq!(kept[0].name, CatalogVersion(9).name());
    let newest = reader.refresh().await.unwrap();
    assert_eq!((newest.version, newest.catalog.collections.len()), (CatalogVersion(25), 25));
}
