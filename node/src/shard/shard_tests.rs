//! A shard against its store: what is collected, what is read again, which views a name means.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_proto::deadline::Deadline;
use antiphon_proto::internal::{Freshness, ViewChoice, view_choice::Choice};
use antiphon_proto::store::{LogOp, log_op::Op};
use antiphon_proto::v1::{Document, Schema};
use antiphon_store::failing::{FailingStore, Fault, Op as StoreOp};
use antiphon_store::{LOG_GRACE, Limits, LogPoll, Seq, ShardId, Store};

use super::seal::{Part, oldest_part};
use super::{Shard, ShardContext};
use crate::cache::{CacheConfig, SegmentCache};
use crate::config::{NodeConfig, SealingConfig};
use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::view::View;

/// A shard whose background does nothing by itself.
async fn open(store: &Store) -> Result<Shard, NodeError> {
    open_sealing(store, u64::MAX).await
}

/// A shard that seals so many rows.
async fn open_sealing(store: &Store, rows: u64) -> Result<Shard, NodeError> {
    let mut config = NodeConfig::default();
    config.sealing.rows = rows;
    config.sealing.age = Duration::from_secs(3600);
    config.merging.idle = Duration::from_secs(3600);
    config.poll_interval = Duration::from_secs(3600);
    let context = ShardContext {
        store: store.clone(),
        config: Arc::new(config),
        cache: SegmentCache::open(None, &CacheConfig::default()).unwrap(),
        threads: 1,
    };
    let schema = Arc::new(ShardSchema::resolve(&Schema::default()).unwrap());
    Shard::open(id(), schema, context).await
}

fn id() -> ShardId {
    "u/0".parse().unwrap()
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

async fn write(shard: &Shard, key: &str) -> u64 {
    let document = Document { key: key.into(), ..Document::default() };
    let op = LogOp { op: Some(Op::Upsert(document)) };
    shard.write(&mut vec![op], soon()).await.unwrap().seq
}

fn has(view: &View, keys: &[&str]) -> bool {
    view.num_docs() == keys.len() as u64 && keys.iter().all(|key| view.find(&key.to_uppercase()).is_some())
}

/// A store in memory that tries nothing twice, and what makes it fail.
fn failing_store() -> (Store, FailingStore) {
    let mut failing = None;
    let store = Store::open("memory://").unwrap();
    let store = store.wrapped(|objects| Arc::new(failing.insert(FailingStore::new(objects)).clone()));
    (store.with_limits(Limits { patience: Duration::ZERO, ..Limits::default() }), failing.unwrap())
}

/// Writers beside a closing: each write is either acknowledged, and found again, or left with its caller, and not.
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_closes_finishes_what_queued_and_leaves_the_rest_unwritten() {
    let store = Store::open("memory://").unwrap();
    let shard = Arc::new(open(&store).await.unwrap());
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let shard = Arc::clone(&shard);
            tokio::spawn(async move {
                for number in 0.. {
                    let document = Document { key: format!("w{writer}-{number}"), ..Document::default() };
                    let mut ops = vec![LogOp { op: Some(Op::Upsert(document)) }];
                    match shard.write(&mut ops, soon()).await {
                        Ok(_) => assert!(ops.is_empty()),
                        Err(NodeError::ShuttingDown) => {
                            assert_eq!(ops.len(), 1);
                            return number;
                        }
                        Err(error) => panic!("neither written nor left: {error}"),
                    }
                }
                0
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    shard.drain().await;
    shard.stop().await;
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    assert!(written > 0);
    let again = open(&store).await.unwrap();
    assert_eq!(again.current().num_docs(), written);
    again.stop().await;
}

async fn collect_log(shard: &Shard) -> bool {
    let later = Instant::now() + LOG_GRACE;
    let mut due = shard.core.mutation.lock().await.garbage.due(later);
    due.delete(&shard.core).await.is_ok()
}

async fn log_positions(shard: &Shard) -> Vec<Seq> {
    shard.core.log.positions_after(Seq(0)).await.unwrap()
}

/// Where the newest manifest was lost, an empty log looked like a shard that nobody had written to since the one before.
#[tokio::test]
async fn the_last_covered_log_entry_stays_as_a_witness() {
    let store = Store::open("memory://").unwrap();
    let shard = open(&store).await.unwrap();
    for key in ["a", "b", "c"] {
        write(&shard, key).await;
    }
    shard.core.seal().await.unwrap();
    assert!(collect_log(&shard).await);
    assert_eq!(log_positions(&shard).await, [Seq(3)]);
    shard.stop().await;

    let shard = open(&store).await.unwrap();
    assert!(has(&shard.current(), &["a", "b", "c"]));
    assert_eq!((write(&shard, "d").await, write(&shard, "e").await), (4, 5));
    shard.core.seal().await.unwrap();
    assert!(collect_log(&shard).await);
    assert_eq!(log_positions(&shard).await, [Seq(5)]);
    shard.stop().await;

    for lost in [2, 1] {
        store.delete(&format!("{}/manifest/{lost:020}", id().path())).await.unwrap();
        assert!(matches!(open(&store).await, Err(NodeError::Corruption(_))), "without manifest {lost}");
    }
}

#[tokio::test]
async fn a_log_whose_collection_failed_at_any_step_is_whole_and_is_collected_later() {
    for step in 0..4 {
        let (store, failing) = failing_store();
        let shard = open(&store).await.unwrap();
        for key in ["a", "b", "c", "d", "e"] {
            write(&shard, key).await;
        }
        shard.core.seal().await.unwrap();
        failing.plan(StoreOp::Delete, "/log/", step, Fault::Delay(Duration::ZERO));
        failing.plan(StoreOp::Delete, "/log/", 1, if step % 2 == 0 { Fault::Refuse } else { Fault::LoseAnswer });
        assert!(!collect_log(&shard).await);
        write(&shard, "f").await;
        shard.stop().await;
        let shard = open(&store).await.unwrap();
        assert!(has(&shard.current(), &["a", "b", "c", "d", "e", "f"]), "failed at {step}");
        assert!(collect_log(&shard).await);
        assert_eq!(log_positions(&shard).await, [Seq(5), Seq(6)]);
        shard.stop().await;
    }
}

/// A backlog is sealed in parts: what is beyond the part stays in the live part and in the log.
#[tokio::test]
async fn sealing_the_oldest_part_loses_nothing_of_the_rest() {
    let store = Store::open("memory://").unwrap();
    let shard = open(&store).await.unwrap();
    for key in ["a", "b", "c", "d", "e", "f"] {
        write(&shard, key).await;
    }
    let delete = LogOp { op: Some(Op::DeleteKey("a".into())) };
    shard.write(&mut vec![delete], soon()).await.unwrap();
    write(&shard, "b").await;
    let view = shard.current();
    let sizes: Vec<u32> = view.live.iter().map(|segment| segment.segment().num_rows()).collect();
    assert_eq!(sizes, [4, 1, 1, 1]);
    let limit = |rows| SealingConfig { rows, ..NodeConfig::default().sealing };
    assert_eq!(oldest_part(&view, &limit(100)), Part { num_segments: 4, covered_seq: 8 });
    assert_eq!(oldest_part(&view, &limit(5)), Part { num_segments: 2, covered_seq: 5 });
    let part = oldest_part(&view, &limit(4));
    assert_eq!(part, Part { num_segments: 1, covered_seq: 4 });

    shard.core.seal_part(&view, part).await.unwrap();
    let (sealed, keys) = (shard.current(), ["b", "c", "d", "e", "f"]);
    assert_eq!((sealed.sealed.len(), sealed.live.len(), sealed.covered_seq), (1, 3, 4));
    // Of the sealed rows only c and d were alive: a was deleted, and b is a newer row.
    assert_eq!(sealed.sealed[0].segment().num_rows(), 2);
    assert!(has(&sealed, &keys));
    shard.stop().await;

    let shard = open(&store).await.unwrap();
    assert!(has(&shard.current(), &keys));
    assert_eq!(shard.current().num_unsealed(), 4);
    shard.core.seal().await.unwrap();
    assert!(has(&shard.current(), &keys));
    assert_eq!((shard.current().sealed.len(), shard.current().num_unsealed()), (2, 0));
    shard.stop().await;
}

/// A sealing under way went on after the shard was stopped: into a store that others had taken over, or into a collection
/// whose files had just been deleted.
#[tokio::test]
async fn a_shard_that_was_stopped_writes_nothing_more() {
    let (store, failing) = failing_store();
    let shard = open_sealing(&store, 1).await.unwrap();
    failing.plan(StoreOp::Put, "/segments/", 1, Fault::Hang);
    write(&shard, "a").await;
    while failing.calls(StoreOp::Put, "/segments/") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    shard.stop().await;
    assert_eq!(Arc::strong_count(&shard.core), 1, "something still works on the shard");
}

/// A call that was dropped between reading the log and applying it left the shard without those writes, and the next
/// sealing would have dropped them for everybody.
#[tokio::test]
async fn what_was_read_of_the_log_and_not_applied_is_read_again() {
    let store = Store::open("memory://").unwrap();
    let (one, other) = (open(&store).await.unwrap(), open(&store).await.unwrap());
    for reader in [true, false] {
        for key in ["a", "b"] {
            write(&other, key).await;
        }
        let dropped = one.core.mutation.lock().await.cursor.poll(10).await.unwrap();
        assert!(matches!(dropped, LogPoll::Entries(entries) if entries.len() >= 2));
        if reader {
            let view = one.fresh(Freshness { refresh: true, at_least_seq: 0 }, soon()).await.unwrap();
            assert!(has(&view, &["a", "b"]));
        } else {
            write(&one, "c").await;
            assert!(has(&one.current(), &["a", "b", "c"]));
        }
    }
    one.core.seal().await.unwrap();
    let third = open(&store).await.unwrap();
    assert!(has(&third.current(), &["a", "b", "c"]));
}

/// Rows of a view are named by their address, and a shard that is loaded anew may have them at others.
#[tokio::test]
async fn a_view_that_was_named_outlives_a_reload_and_is_never_mistaken_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_dir(folder.path().to_owned()).unwrap();
    let shard = open(&store).await.unwrap();
    write(&shard, "a").await;
    shard.core.seal().await.unwrap();
    write(&shard, "b").await;
    let reload = |shard: &Shard| {
        let core = Arc::clone(&shard.core);
        async move { core.reload(&mut *core.mutation.lock().await).await.unwrap() }
    };
    let newest = ViewChoice { choice: Some(Choice::Fresh(Freshness::default())) };
    let kept = shard.view(&newest, soon()).await.unwrap();
    reload(&shard).await;
    assert!(Arc::ptr_eq(&kept, &shard.kept_view(&kept.name()).unwrap()));
    assert!(Arc::ptr_eq(&kept, &shard.view(&newest, soon()).await.unwrap()));
    shard.stop().await;

    let segments = folder.path().join(id().path()).join("segments");
    let hidden = folder.path().join("hidden");
    std::fs::rename(&segments, &hidden).unwrap();
    let shard = open(&store).await.unwrap();
    let partial = shard.view(&newest, soon()).await.unwrap();
    assert_eq!(partial.quarantined.len(), 1);
    assert!(has(&partial, &["b"]));
    std::fs::rename(&hidden, &segments).unwrap();
    reload(&shard).await;
    let whole = shard.current();
    assert!(whole.name() == partial.name() && has(&whole, &["a", "b"]));
    assert!(matches!(shard.kept_view(&partial.name()), Err(NodeError::ViewExpired { .. })));
    assert!(Arc::ptr_eq(&whole, &shard.view(&newest, soon()).await.unwrap()));
}
