//! A store that refuses, is slow, does things without saying so, or stops at any step: writes fail cleanly or are done
//! once, searches go on, and what is left behind opens with everything that was acknowledged.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_proto::error::ErrorKind;
use antiphon_proto::key::shard_of;
use antiphon_proto::v1::{Metric, SearchOptions};
use antiphon_store::failing::{FailingStore, Fault, Op};
use antiphon_store::{Limits, Log, Seq, ShardId, Store};
use antiphon_tests::client::{Client, kind_of};
use antiphon_tests::cluster::{DIMENSIONS, document_of, read_state, vector_of, verify_answers};
use antiphon_tests::local::{Local, LocalBuilder, wait_until};
use antiphon_tests::model::fold;
use antiphon_tests::oracle::{Change, Oracle};
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;
use futures::{StreamExt, stream};
use object_store::memory::InMemory;
use rand::prelude::*;
use rand::rngs::StdRng;
use tonic::Status;

/// Short, so that a store which fails is given up soon.
fn limits(patience_ms: u64) -> Limits {
    Limits { answer: Duration::from_millis(500), patience: Duration::from_millis(patience_ms) }
}

/// A store in memory, and what makes it fail.
fn failing(objects: &Arc<InMemory>, patience_ms: u64) -> (Store, FailingStore) {
    let failing = FailingStore::new(Arc::clone(objects) as _);
    (Store::with_object_store(Arc::new(failing.clone())).with_limits(limits(patience_ms)), failing)
}

async fn create(client: &Client, shards: u32) -> String {
    client.create(collection("c", shards, schema(DIMENSIONS, Metric::Cosine))).await.unwrap().uid
}

async fn upsert(client: &Client, key: &str, generation: u64) -> Result<(), Status> {
    client.upsert("c", vec![document_of(key, generation)]).await.map(drop)
}

async fn nearest(client: &Client, key: &str, generation: u64) -> String {
    let request = vector_search(&vector_of(key, generation), options("c", 1, 1));
    client.search_vector(request).await.unwrap().matches.remove(0).key
}

async fn num_entries(store: &Store, uid: &str) -> usize {
    let shard: ShardId = format!("{uid}/0").parse().unwrap();
    Log::new(store.clone(), shard).positions_after(Seq(0)).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_store_refuses_writes_fail_and_searches_go_on() {
    let (store, failing) = failing(&Arc::default(), 300);
    let server = LocalBuilder::new().store(store).start().await;
    let client = &server.client;
    create(client, 1).await;
    upsert(client, "a", 1).await.unwrap();
    for op in [Op::Put, Op::Get, Op::List, Op::Delete] {
        failing.plan(op, "", usize::MAX, Fault::Refuse);
    }
    for _ in 0..3 {
        let refused = upsert(client, "b", 2).await.unwrap_err();
        assert_eq!(kind_of(&refused), ErrorKind::StoreUnavailable, "{refused:?}");
        assert_eq!(nearest(client, "b", 2).await, "a");
    }
    // Somebody else may have written: "as last acknowledged" can't be said.
    let refused = client.get("c", &["a"]).await.unwrap_err();
    assert_eq!(kind_of(&refused), ErrorKind::StoreUnavailable, "{refused:?}");
    failing.clear();
    assert_eq!(client.count("c").await.unwrap(), 1);
    upsert(client, "b", 3).await.unwrap();
    assert_eq!(nearest(client, "b", 3).await, "b");
    assert_eq!(client.count("c").await.unwrap(), 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_acknowledgement_was_lost_is_done_once() {
    let (store, failing) = failing(&Arc::default(), 5000);
    let server = LocalBuilder::new().store(store.clone()).start().await;
    let client = &server.client;
    let uid = create(client, 1).await;
    for generation in 1..=20 {
        failing.plan(Op::Put, "/log/", 1, Fault::LoseAnswer);
        upsert(client, &format!("k{}", generation % 7), generation).await.unwrap();
        if generation % 5 == 0 {
            failing.plan(Op::Put, "/log/", 1, Fault::LoseAnswer);
            let key = format!("K{}", generation % 7);
            assert_eq!(client.delete("c", &[&key]).await.unwrap().num_deleted, 1, "{key}");
        }
    }
    assert_eq!(num_entries(&store, &uid).await, 24);
    let expected: BTreeMap<String, u64> =
        [("k0", 14), ("k2", 16), ("k3", 17), ("k4", 18)].map(|(key, generation)| (key.to_owned(), generation)).into();
    let mut state = read_state(client, "c").await.unwrap();
    // 5, 10, 15 and 20 were deleted: k5, k3, k1 and k6; the others show their last.
    assert_eq!(state.remove("k5"), Some(19));
    assert_eq!(state, expected);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_failed_and_is_in_the_log_comes_before_the_next_one() {
    let (store, failing) = failing(&Arc::default(), 100);
    let server = LocalBuilder::new().store(store.clone()).start().await;
    let client = &server.client;
    let uid = create(client, 1).await;
    failing.plan(Op::Put, "/log/", 1, Fault::LoseAnswer);
    failing.plan(Op::Put, "/log/", usize::MAX, Fault::Refuse);
    let documents = vec![document_of("a", 1), document_of("b", 2)];
    let unknown = client.upsert("c", documents).await.unwrap_err();
    assert_eq!(kind_of(&unknown), ErrorKind::StoreUnavailable, "{unknown:?}");
    failing.clear();
    upsert(client, "b", 3).await.unwrap();
    let state = read_state(client, "c").await.unwrap();
    assert_eq!(state, [("a".to_owned(), 1), ("b".to_owned(), 3)].into());
    assert_eq!(num_entries(&store, &uid).await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_slow_store_writes_share_entries_and_searches_do_not_wait() {
    let (store, failing) = failing(&Arc::default(), 5000);
    let server = LocalBuilder::new().store(store.clone()).start().await;
    let client = &server.client;
    let uid = create(client, 1).await;
    upsert(client, "a", 1).await.unwrap();
    failing.plan(Op::Put, "/log/", usize::MAX, Fault::Delay(Duration::from_millis(200)));
    let began = Instant::now();
    let writes = (2..=41).map(|generation| async move { upsert(client, &format!("k{generation}"), generation).await });
    let (written, ()) = tokio::join!(futures::future::join_all(writes), async {
        for _ in 0..5 {
            assert_eq!(nearest(client, "a", 1).await, "a");
        }
        assert!(failing.calls(Op::Put, "/log/") <= 4, "searches waited for writes");
    });
    assert!(written.iter().all(Result::is_ok), "{written:?}");
    assert_eq!(client.count("c").await.unwrap(), 41);
    let entries = num_entries(&store, &uid).await;
    assert!(entries <= 10, "{entries} entries for 41 writes, after {:?}", began.elapsed());
    server.stop().await;
}

/// Another node's manifest made the shard load anew, and a search under way could not fetch its documents.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_outlives_the_manifest_of_another_node() {
    let (store, _) = failing(&Arc::default(), 5000);
    let one = LocalBuilder::new().store(store.clone()).small_segments(1000).start().await;
    create(&one.client, 1).await;
    let other = LocalBuilder::new().store(store).small_segments(1000).start().await;
    for generation in 1..=8 {
        upsert(&one.client, &format!("k{generation}"), generation).await.unwrap();
    }
    let request = |snapshot: &str| {
        let options = SearchOptions { snapshot: snapshot.to_owned(), ..options("c", 1, 5) };
        vector_search(&vector_of("query", 0), options)
    };
    let before = one.client.search_vector(request("")).await.unwrap();
    // Both seal; whoever loses loads what the other wrote.
    for generation in 9..=16 {
        upsert(&other.client, &format!("k{}", generation % 12), generation).await.unwrap();
        one.settle(|replica| replica.num_live_rows == 0).await;
        other.settle(|replica| replica.num_live_rows == 0).await;
        let again = one.client.search_vector(request(&before.snapshot)).await.unwrap();
        assert_eq!(again.matches, before.matches);
    }
    assert_eq!(read_state(&one.client, "c").await.unwrap(), read_state(&other.client, "c").await.unwrap());
    one.stop().await;
    other.stop().await;
}

// --- A store that fails at any step.

/// Settings with which sealing, merging and the collection of garbage are always under way.
fn busy(store: Store) -> LocalBuilder {
    LocalBuilder::new().store(store).node_config(|config| {
        config.sealing.rows = 8;
        config.sealing.age = Duration::from_millis(200);
        config.merging.fan_in = 2;
        config.merging.dead_share = 0.3;
        config.graph_min_rows = 4;
        config.gc_grace = Duration::ZERO;
        config.orphan_grace = Duration::ZERO;
        config.poll_interval = Duration::from_millis(50);
    })
}

/// Writes, overwrites and deletes for a while; every request is noted.
async fn write_for(client: &Client, oracle: &mut Oracle, time: Duration, rng: &mut StdRng) {
    let (life, began) = (oracle.life(), Instant::now());
    while began.elapsed() < time {
        let keys: Vec<String> = (0..rng.random_range(1..6)).map(|_| format!("k{}", rng.random_range(0..40))).collect();
        let outcome;
        let request;
        if rng.random_bool(0.8) {
            let pairs: BTreeMap<String, u64> = keys.into_iter().map(|key| (key, oracle.generation())).collect();
            let documents = pairs.iter().map(|(key, generation)| document_of(key, *generation)).collect();
            let changes = pairs.into_iter().map(|(key, generation)| (key, Change::Put(generation))).collect();
            request = oracle.begin(life, changes);
            outcome = client.upsert("c", documents).await.map(drop);
        } else {
            request = oracle.begin(life, keys.iter().map(|key| (key.clone(), Change::Delete)).collect());
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            outcome = client.delete("c", &keys).await.map(drop);
        }
        match outcome {
            Ok(()) => oracle.acknowledged(request),
            Err(status) => {
                assert_eq!(kind_of(&status), ErrorKind::StoreUnavailable, "{status:?}");
                oracle.failed(request);
            }
        }
    }
}

async fn verify(server: &Local, oracle: &Oracle, shards: u32, rng: &mut StdRng) {
    let state = read_state(&server.client, "c").await.unwrap();
    let mut faults = oracle.check(&state, |key| shard_of(&fold(key), shards));
    faults.extend(verify_answers(&server.client, "c", &oracle.keys(), &state, rng).await.unwrap());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// How long the operations after which a store stops may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The store stops for good after some number of operations, as for a process that dies there; or comes back.
async fn stopped_at(operations: usize, comes_back: bool, seed: u64) -> bool {
    let mut rng = StdRng::seed_from_u64(seed);
    let objects = Arc::new(InMemory::new());
    let (store, failing) = failing(&objects, 40);
    let server = busy(store).start().await;
    create(&server.client, 2).await;
    let mut oracle = Oracle::new();
    failing.stop_after(operations);
    let began = Instant::now();
    while !failing.has_stopped() && began.elapsed() < STOP_TIMEOUT {
        write_for(&server.client, &mut oracle, Duration::from_millis(50), &mut rng).await;
    }
    let stopped = failing.has_stopped();
    write_for(&server.client, &mut oracle, Duration::from_millis(100), &mut rng).await;
    if comes_back {
        failing.clear();
        write_for(&server.client, &mut oracle, Duration::from_millis(100), &mut rng).await;
        verify(&server, &oracle, 2, &mut rng).await;
    }
    server.stop().await;
    let server = busy(Store::with_object_store(objects)).start().await;
    verify(&server, &oracle, 2, &mut rng).await;
    write_for(&server.client, &mut oracle, Duration::from_millis(200), &mut rng).await;
    verify(&server, &oracle, 2, &mut rng).await;
    server.stop().await;
    stopped
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stops_at_any_step_keeps_all_that_was_acknowledged() {
    let mut random = Random::seeded(rand::random());
    let cases: Vec<(usize, bool, u64)> =
        (0..64).map(|case| (random.below(4 + case * 8), case % 2 == 0, random.rng.random())).collect();
    let runs = stream::iter(cases).map(|(operations, comes_back, seed)| async move {
        let outcome = tokio::spawn(stopped_at(operations, comes_back, seed)).await;
        outcome.unwrap_or_else(|panic| panic!("stopped after {operations}, seed {seed}: {panic}"))
    });
    let stopped = runs.buffer_unordered(6).filter(|stopped| futures::future::ready(*stopped)).count().await;
    assert_eq!(stopped, 64, "some stopped nowhere");
}

/// One operation of one kind fails, the nth; nothing is tried again at once. Whatever background work met it tries again
/// later, and no write is touched by it.
async fn failed_once(op: Op, path: &'static str, nth: usize, fault: Fault, seed: u64) -> bool {
    let mut rng = StdRng::seed_from_u64(seed);
    let objects = Arc::new(InMemory::new());
    let (store, failing) = failing(&objects, 0);
    let server = busy(store).start().await;
    create(&server.client, 1).await;
    let mut oracle = Oracle::new();
    let before = failing.calls(op, path);
    failing.plan(op, path, nth - 1, Fault::Delay(Duration::ZERO));
    failing.plan(op, path, 1, fault);
    let (began, is_met) = (Instant::now(), || failing.calls(op, path) - before >= nth);
    while !is_met() && began.elapsed() < Duration::from_secs(10) {
        write_for(&server.client, &mut oracle, Duration::from_millis(50), &mut rng).await;
    }
    write_for(&server.client, &mut oracle, Duration::from_millis(200), &mut rng).await;
    verify(&server, &oracle, 1, &mut rng).await;
    // It goes on sealing: nothing is stuck.
    server.settle(|replica| replica.num_live_rows == 0 && replica.quarantined_segments.is_empty()).await;
    verify(&server, &oracle, 1, &mut rng).await;
    server.stop().await;
    let server = busy(Store::with_object_store(objects)).start().await;
    verify(&server, &oracle, 1, &mut rng).await;
    server.stop().await;
    is_met()
}

#[tokio::test(flavor = "multi_thread")]
async fn sealing_merging_and_collecting_survive_a_failure_at_each_of_their_steps() {
    let mut random = Random::seeded(rand::random());
    let steps = [
        // A segment with its graph has five files.
        (Op::Put, "/segments/", 11),
        (Op::List, "/segments", 2),
        (Op::Delete, "/segments/", 6),
        (Op::Put, "/manifest/", 4),
        (Op::List, "/manifest", 6),
        (Op::Get, "/manifest/", 3),
        (Op::Delete, "/manifest/", 3),
    ];
    let mut cases = Vec::new();
    for (op, path, times) in steps {
        for nth in 1..=times {
            let faults: &[Fault] = match op {
                Op::Put | Op::Delete => &[Fault::Refuse, Fault::LoseAnswer],
                Op::Get | Op::List => &[Fault::Refuse],
            };
            cases.extend(faults.iter().map(|fault| (op, path, nth, *fault, random.rng.random::<u64>())));
        }
    }
    let runs = stream::iter(cases).map(|(op, path, nth, fault, seed)| async move {
        let outcome = tokio::spawn(failed_once(op, path, nth, fault, seed)).await;
        let was_met =
            outcome.unwrap_or_else(|panic| panic!("{fault:?} at the {nth}th {op:?} of {path}, seed {seed}: {panic}"));
        (op, path, was_met)
    });
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    let mut runs = std::pin::pin!(runs.buffer_unordered(12));
    while let Some((op, path, was_met)) = runs.next().await {
        *met.entry(format!("{op:?} {path}")).or_default() += usize::from(was_met);
    }
    eprintln!("{met:?}");
    assert!(met.values().all(|count| *count > 1), "a step that was hardly met: {met:?}");
}

/// Garbage goes, also what was left by failures: the store does not grow for ever.
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_work_left_behind_is_collected() {
    let mut random = Random::seeded(rand::random());
    let objects = Arc::new(InMemory::new());
    let (store, failing) = failing(&objects, 0);
    let server = busy(store.clone()).start().await;
    let uid = create(&server.client, 1).await;
    let mut oracle = Oracle::new();
    for (op, path) in
        [(Op::Put, "/segments/"), (Op::Get, "/segments/"), (Op::Put, "/manifest/"), (Op::Delete, "/segments/")]
    {
        failing.plan(op, path, 3, Fault::Delay(Duration::ZERO));
        failing.plan(op, path, 1, Fault::Refuse);
        write_for(&server.client, &mut oracle, Duration::from_millis(500), &mut random.rng).await;
    }
    failing.clear();
    server.settle(|replica| replica.num_live_rows == 0).await;
    let is_clean = || async {
        let named = server.client.describe_cluster().await.unwrap().shards[0].replicas[0].num_segments;
        store.list_dirs(&format!("collections/{uid}/shards/00000/segments")).await.unwrap().len() as u64 == named
    };
    wait_until(Duration::from_secs(30), is_clean).await;
    verify(&server, &oracle, 1, &mut random.rng).await;
    server.stop().await;
}
