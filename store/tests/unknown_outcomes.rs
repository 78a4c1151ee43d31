//! Writes whose answer was lost, late or an error: nothing is done twice, nothing acknowledged is absent.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use antiphon_proto::store::{Catalog, CollectionEntry, LogEntry, Manifest};
use antiphon_store::failing::{FailingStore, Fault, Op};
use antiphon_store::{
    Append, CatalogStore, Commit, FileSum, Limits, Log, LogCursor, LogPoll, ManifestVersion, Manifests, Seq, ShardId,
    Store, StoreErrorKind, Written,
};
use object_store::memory::InMemory;
use tokio::sync::Semaphore;

/// A store, and the store that makes it fail.
fn store() -> (Store, FailingStore) {
    let failing = FailingStore::new(Arc::new(InMemory::new()));
    let limits = Limits { answer: Duration::from_millis(100), patience: Duration::from_millis(500) };
    (Store::with_object_store(Arc::new(failing.clone())).with_limits(limits), failing)
}

fn shard() -> ShardId {
    "u/0".parse().unwrap()
}

fn entry() -> LogEntry {
    LogEntry { nonce: Log::new_nonce(), ops: Vec::new(), schema_version: 0 }
}

fn cover(seq: u64) -> Manifest {
    Manifest { covered_seq: seq, tombstone_seq: seq, ..Manifest::default() }
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_is_known_by_its_nonce() {
    let (store, failing) = store();
    let log = Log::new(store, shard());
    failing.plan(Op::Put, "/log/", 1, Fault::LoseAnswer);
    assert_eq!(log.append(Seq(1), &entry()).await.unwrap(), Append::Appended);
    assert_eq!(failing.calls(Op::Put, "/log/"), 2);
    assert_eq!(log.positions_after(Seq(0)).await.unwrap(), [Seq(1)]);
}

#[tokio::test]
async fn an_append_that_was_refused_or_never_answered_is_tried_again() {
    let (store, failing) = store();
    let log = Log::new(store, shard());
    failing.plan(Op::Put, "/log/", 2, Fault::Refuse);
    failing.plan(Op::Put, "/log/", 1, Fault::Hang);
    assert_eq!(log.append(Seq(1), &entry()).await.unwrap(), Append::Appended);
    assert_eq!(failing.calls(Op::Put, "/log/"), 4);
}

#[tokio::test]
async fn reading_back_may_fail_too() {
    let (store, failing) = store();
    let log = Log::new(store, shard());
    failing.plan(Op::Put, "/log/", 1, Fault::LoseAnswer);
    failing.plan(Op::Get, "/log/", 3, Fault::Refuse);
    assert_eq!(log.append(Seq(1), &entry()).await.unwrap(), Append::Appended);
}

#[tokio::test]
async fn when_patience_ends_the_same_position_decides() {
    let (store, failing) = store();
    let log = Log::new(store.clone(), shard());
    let manifests = Manifests::new(store, shard());
    let (_, mut cursor) = LogCursor::open(log.clone(), manifests).await.unwrap();
    let (first, second) = (entry(), entry());

    // The first does get there, and nobody hears of it.
    failing.plan(Op::Put, "/log/", 1, Fault::LoseAnswer);
    failing.plan(Op::Put, "/log/", usize::MAX, Fault::Refuse);
    let error = cursor.append(&first).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert_eq!(cursor.next(), Seq(1));

    // With another entry the writer learns that the first is in the log; with the first it would be told so.
    failing.clear();
    assert_eq!(cursor.append(&second).await.unwrap(), Written::Taken(Seq(1), Box::new(first)));
    assert_eq!(cursor.append(&second).await.unwrap(), Written::Durable(Seq(2)));
    assert_eq!(cursor.poll(5).await.unwrap(), LogPoll::Entries(Vec::new()));
}

#[tokio::test]
async fn an_unanswered_entry_tried_again_is_in_the_log_once() {
    let (store, failing) = store();
    let log = Log::new(store.clone(), shard());
    let (_, mut cursor) = LogCursor::open(log.clone(), Manifests::new(store, shard())).await.unwrap();
    let mine = entry();
    failing.plan(Op::Put, "/log/", 1, Fault::LoseAnswer);
    failing.plan(Op::Put, "/log/", usize::MAX, Fault::Refuse);
    cursor.append(&mine).await.unwrap_err();
    failing.clear();
    assert_eq!(cursor.append(&mine).await.unwrap(), Written::Durable(Seq(1)));
    assert_eq!(log.positions_after(Seq(0)).await.unwrap(), [Seq(1)]);
}

#[tokio::test]
async fn a_writer_that_cannot_look_at_the_manifest_acknowledges_nothing() {
    let (store, failing) = store();
    let log = Log::new(store.clone(), shard());
    let (_, cursor) = LogCursor::open(log, Manifests::new(store, shard())).await.unwrap();
    let mut cursor = cursor.with_fence_after(Duration::ZERO);
    failing.plan(Op::List, "/manifest", usize::MAX, Fault::Refuse);
    let mine = entry();
    assert_eq!(cursor.append(&mine).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    failing.clear();
    assert_eq!(cursor.append(&mine).await.unwrap(), Written::Durable(Seq(1)));
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_committed() {
    let (store, failing) = store();
    let manifests = Manifests::new(store, shard());
    failing.plan(Op::Put, "/manifest/", 1, Fault::LoseAnswer);
    assert_eq!(manifests.commit(ManifestVersion(1), &cover(3)).await.unwrap(), Commit::Committed);
    // And across calls: created, but the list that must follow failed.
    failing.plan(Op::List, "/manifest", usize::MAX, Fault::Refuse);
    let error = manifests.commit(ManifestVersion(2), &cover(4)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    failing.clear();
    assert_eq!(manifests.commit(ManifestVersion(2), &cover(4)).await.unwrap(), Commit::Committed);
    assert_eq!(manifests.commit(ManifestVersion(2), &cover(5)).await.unwrap(), Commit::Lost);
}

#[tokio::test]
async fn a_catalog_update_whose_answer_was_lost_is_made_once() {
    let (store, failing) = store();
    let catalogs = CatalogStore::new(store);
    failing.plan(Op::Put, "catalog/", 1, Fault::LoseAnswer);
    let add = |catalog: &Catalog| {
        let mut next = catalog.clone();
        next.collections.push(CollectionEntry::default());
        Ok::<_, ()>(next)
    };
    assert_eq!(catalogs.update(add).await.unwrap().catalog.collections.len(), 1);
    assert_eq!(catalogs.refresh().await.unwrap().catalog.collections.len(), 1);
}

#[tokio::test]
async fn reads_lists_and_deletes_are_tried_again() {
    let (store, failing) = store();
    store.create_if_absent("a/b", "x".into()).await.unwrap();
    for op in [Op::Get, Op::List, Op::Delete] {
        failing.plan(op, "a", 1, Fault::Refuse);
        failing.plan(op, "a", 1, Fault::Hang);
        failing.plan(op, "a", 1, Fault::LoseAnswer);
        failing.plan(op, "a", 1, Fault::Delay(Duration::from_millis(20)));
    }
    assert_eq!(store.get("a/b").await.unwrap(), Some("x".into()));
    assert_eq!(store.list("a", None).await.unwrap().len(), 1);
    store.delete("a/b").await.unwrap();
    assert_eq!(store.get("a/b").await.unwrap(), None);
}

#[tokio::test]
async fn no_call_waits_for_ever() {
    let (store, failing) = store();
    for op in [Op::Put, Op::Get, Op::List, Op::Delete] {
        failing.plan(op, "", usize::MAX, Fault::Hang);
    }
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let (to, part, permits) = (temp.path().join("to"), temp.path().join("part"), Semaphore::new(1));
    let all = async {
        let kinds = [
            store.create_if_absent("a", "x".into()).await.unwrap_err().kind(),
            store.get("a").await.unwrap_err().kind(),
            store.list("a", None).await.unwrap_err().kind(),
            store.list_dirs("a").await.unwrap_err().kind(),
            store.delete("a").await.unwrap_err().kind(),
            store.delete_prefix("a").await.unwrap_err().kind(),
            store.upload_file(&file, "a").await.unwrap_err().kind(),
            store
                .download_file("a", &to, &part, FileSum { size_bytes: 1, crc32: 0 }, &permits)
                .await
                .unwrap_err()
                .kind(),
        ];
        assert_eq!(kinds, [StoreErrorKind::Unavailable; 8]);
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.unwrap();
}
