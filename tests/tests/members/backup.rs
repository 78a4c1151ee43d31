//! Backups: what was acknowledged is in them, they grow by what is new, damage is found by name, and what is restored
//! answers as the original did.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use antiphon_proto::key::shard_of;
use antiphon_proto::v1::Metric;
use antiphon_store::backup::{Backups, Copier, RestoreError};
use antiphon_store::failing::{FailingStore, Op};
use antiphon_store::{Limits, Store};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::sample::*;

fn vector(n: u32) -> [f32; 4] {
    [1.0, (n % 7) as f32, (n % 11) as f32, n as f32]
}

async fn fill(server: &Local, keys: std::ops::Range<u32>) {
    let words = |n: u32| if n.is_multiple_of(5) { "red apple pie" } else { "green pear" };
    for start in keys.clone().step_by(25) {
        let end = (start + 25).min(keys.end);
        let documents = (start..end).map(|n| document(&format!("d{n}"), &vector(n), words(n))).collect();
        server.client.upsert("c", documents).await.unwrap();
    }
}

/// Segments and entries beyond them, in both shards.
async fn sample(store: Store) -> Local {
    let server = LocalBuilder::new().store(store).small_segments(40).start().await;
    server.client.create(collection("c", 2, schema(4, Metric::Cosine))).await.unwrap();
    fill(&server, 0..200).await;
    server.client.delete("c", &["d0", "d199"]).await.unwrap();
    server.settle(|replica| replica.num_live_rows == 0 && replica.num_segments > 0).await;
    server.client.upsert("c", vec![document("late", &vector(3), "apple")]).await.unwrap();
    server
}

async fn round_trip(source: Store, kept: Store) {
    let scratch = tempfile::tempdir().unwrap();
    let copier = Copier::new(scratch.path().to_owned());
    let server = sample(source.clone()).await;
    let backups = Backups::open(kept.clone()).await.unwrap();
    let (_, first) = backups.take(&source, "c", "one", &copier).await.unwrap();
    assert!(first.files > 0 && first.files_there == 0 && first.entries > 0);
    assert!(backups.take(&source, "c", "one", &copier).await.is_err());
    assert!(backups.take(&source, "absent", "two", &copier).await.is_err());
    let (_, again) = backups.take(&source, "c", "two", &copier).await.unwrap();
    assert!(again.files_there > 0);

    assert!(matches!(backups.restore("one", &source, None, &copier).await, Err(RestoreError::NameTaken(_))));
    backups.restore("one", &source, Some("copy"), &copier).await.unwrap();
    // Pages and score bits, by the server that runs and did not hear of it.
    let search = |name: &str| hybrid_search(&vector(100), "apple pie", options(name, 1, 10));
    let before = server.client.search_hybrid(search("c")).await.unwrap();
    let after = server.client.search_hybrid(search("copy")).await.unwrap();
    assert_eq!(after.matches, before.matches);
    assert_eq!(server.client.count("copy").await.unwrap(), 199);
    // The two go their own ways.
    server.client.delete("copy", &["late"]).await.unwrap();
    assert_eq!(server.client.count("c").await.unwrap(), 199);

    backups.delete("one").await.unwrap();
    backups.verify("two", &copier).await.unwrap();
    backups.delete("two").await.unwrap();
    assert!(backups.names().await.unwrap().is_empty());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_collection_answers_as_the_original() {
    round_trip(Store::open("memory://").unwrap(), Store::open("memory://").unwrap()).await;
    let folder = tempfile::tempdir().unwrap();
    let dir = |name: &str| Store::open_dir(folder.path().join(name)).unwrap();
    round_trip(dir("source"), dir("kept")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_collection_answers_as_the_original_in_s3() {
    let Some(bucket) = crate::s3::Bucket::start() else { return };
    round_trip(bucket.store("backed-up"), bucket.store("backups-of-it")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_before_is_in_it_while_writers_go_on() {
    let (source, kept) = (Store::open("memory://").unwrap(), Store::open("memory://").unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let copier = Copier::new(scratch.path().to_owned());
    let server = sample(source.clone()).await;
    let backups = Backups::open(kept).await.unwrap();
    let take = async {
        for round in 0..5 {
            backups.take(&source, "c", &format!("b{round}"), &copier).await.unwrap();
        }
    };
    tokio::join!(take, fill(&server, 200..800));
    backups.restore("b0", &source, Some("copy"), &copier).await.unwrap();
    let found = server.client.export("copy", None).await.unwrap();
    let has = |key: &str| found.iter().any(|document| document.key == key);
    assert!((1..199).all(|n| has(&format!("d{n}"))) && has("late"));
    assert!(!has("d0") && !has("d199"));
    // Of the batches under way: in each shard those up to one, and none without those before it.
    for shard in 0..2 {
        let of_shard = || (200..800).filter(|n| shard_of(&format!("D{n}"), 2) == shard);
        let newest = of_shard().filter(|n| has(&format!("d{n}"))).max();
        let before = |n: &u32| newest.is_some_and(|newest| (n - 200) / 25 < (newest - 200) / 25);
        assert!(of_shard().filter(before).all(|n| has(&format!("d{n}"))), "shard {shard}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (source, kept) = (Store::open("memory://").unwrap(), Store::open_dir(folder.path().join("kept")).unwrap());
    let copier = Copier::new(folder.path().to_owned());
    let server = sample(source.clone()).await;
    let backups = Backups::open(kept.clone()).await.unwrap();
    let (backup, _) = backups.take(&source, "c", "one", &copier).await.unwrap();
    let uid = backup.collection.as_ref().unwrap().collection.as_ref().unwrap().uid.clone();
    let segment = &backup.shards[1].manifest.as_ref().unwrap().segments[0];
    let path = format!("collections/{uid}/shards/00001/segments/{}/{}", segment.id, segment.files[0].name);
    let file = kept.local_path(&path).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let verified = backups.verify("one", &copier).await.unwrap_err().to_string();
    assert!(verified.contains(&path), "{verified}");
    let restored = backups.restore("one", &source, Some("copy"), &copier).await.unwrap_err().to_string();
    assert!(restored.contains(&path), "{restored}");
    assert!(server.client.count("copy").await.is_err());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_stops_midway_is_not_there_and_the_next_copies_only_what_is_missing() {
    let mut failing = None;
    let limits = Limits { answer: Duration::from_secs(5), patience: Duration::from_millis(200) };
    let kept = Store::open("memory://").unwrap().with_limits(limits).wrapped(|inner| {
        let between = Arc::new(FailingStore::new(inner));
        failing = Some(Arc::clone(&between));
        between
    });
    let failing = failing.unwrap();
    let (source, scratch) = (Store::open("memory://").unwrap(), tempfile::tempdir().unwrap());
    let copier = Copier::new(scratch.path().to_owned());
    let server = sample(source.clone()).await;
    let backups = Backups::open(kept).await.unwrap();
    failing.stop_after(12);
    assert!(backups.take(&source, "c", "one", &copier).await.is_err());
    assert!(failing.has_stopped());
    failing.clear();
    assert!(backups.names().await.unwrap().is_empty());
    backups.take(&source, "c", "one", &copier).await.unwrap();
    backups.verify("one", &copier).await.unwrap();

    let puts = || failing.calls(Op::Put, "/segments/");
    let before = puts();
    fill(&server, 1000..1100).await;
    server.settle(|replica| replica.num_live_rows == 0).await;
    let (_, more) = backups.take(&source, "c", "two", &copier).await.unwrap();
    assert!(more.files > 0 && more.files_there > 0);
    assert_eq!((puts() - before) as u64, more.files);
    server.stop().await;
}
