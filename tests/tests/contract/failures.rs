//! The rows of the contract's error table that a server's state brings about: full queues, messages too large, deadlines,
//! shards and stores that do not answer, damaged data. Each is answered, and the server goes on.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_node::search::Stop;
use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::ErrorKind as Kind;
use antiphon_proto::v1::*;
use antiphon_store::Store;
use antiphon_store::failing::{FailingStore, Fault, Op};
use antiphon_tests::contract::{check, metadata, prepare, refused, still_serves};
use antiphon_tests::local::{LocalBuilder, wait_until};
use antiphon_tests::raw::Raw;
use antiphon_tests::sample::*;
use object_store::memory::InMemory;
use tonic_types::StatusExt;

fn long_text(bytes: usize) -> Document {
    document("long", &[], &"word ".repeat(bytes / 5))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_search_queue_is_overloaded() {
    let builder = LocalBuilder::new().node_config(|config| (config.search_threads, config.search_queue) = (1, 1));
    let server = builder.start().await;
    prepare(&server).await;
    let (release, wait) = std::sync::mpsc::sync_channel::<()>(1);
    let (stop, _guard) = Stop::new(Deadline::after(Duration::from_secs(60)));
    let pool = Arc::clone(server.nodes[0].pool());
    let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
    let busy = tokio::spawn(async move {
        pool.run(stop, move |_| {
            begun.blocking_send(()).unwrap();
            wait.recv().unwrap();
            Ok(())
        })
        .await
    });
    has_begun.recv().await.unwrap();
    // One search may wait; of two, one is too many.
    let search = || server.client.search_keyword(keyword_search("apple", options("probe", 1, 10)));
    let free = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        release.send(()).unwrap();
    };
    let (one, two, ()) = tokio::join!(search(), search(), free);
    let (answered, turned_away) = if one.is_ok() { (one, two) } else { (two, one) };
    assert_eq!(answered.unwrap().matches.len(), 1);
    let status = refused(turned_away, Kind::Overloaded);
    let delay = status.get_details_retry_info().and_then(|info| info.retry_delay).unwrap();
    assert!(delay > Duration::ZERO && delay <= Duration::from_secs(5), "{delay:?}");
    busy.await.unwrap().unwrap();
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_outrun_sealing_are_overloaded() {
    let builder = LocalBuilder::new().node_config(|config| config.max_unsealed_rows = 10);
    let server = builder.start().await;
    prepare(&server).await;
    let client = &server.client;
    client.create(collection("c", 1, schema(2, Metric::Cosine))).await.unwrap();
    let documents = |range: std::ops::Range<u32>| range.map(|n| document(&format!("d{n}"), &[1.0, 1.0], "")).collect();
    client.upsert("c", documents(0..12)).await.unwrap();
    let status = refused(client.upsert("c", documents(12..13)).await, Kind::Overloaded);
    assert_eq!(metadata(&status, "shard").as_deref(), Some("0"));
    refused(client.delete("c", &["d1"]).await, Kind::Overloaded);
    assert_eq!(client.count("c").await.unwrap(), 12);
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_told_with_the_bound() {
    let builder = LocalBuilder::new().coordinator_config(|config| {
        config.max_message_bytes = 9 << 20;
        config.max_response_bytes = 100_000;
    });
    let server = builder.start().await;
    prepare(&server).await;
    let client = &server.client;
    client.create(collection("c", 2, schema(2, Metric::Cosine))).await.unwrap();

    let status = refused(client.upsert("c", vec![long_text(10 << 20)]).await, Kind::TooLarge);
    assert!(status.message().contains(&(9 << 20).to_string()), "{}", status.message());
    let status = refused(client.upsert("c", vec![long_text((8 << 20) + 100)]).await, Kind::TooLarge);
    assert!(status.message().contains("documents[0]"), "{}", status.message());
    assert!(status.message().contains(&(8 << 20).to_string()), "{}", status.message());
    let long_query = keyword_search(&"word ".repeat(2 << 20), options("c", 1, 10));
    refused(client.search_keyword(long_query).await, Kind::TooLarge);
    assert_eq!(client.count("c").await.unwrap(), 0);

    client.upsert("c", vec![long_text(200_000)]).await.unwrap();
    let search = |options| client.search_keyword(keyword_search("word", options));
    let status = refused(search(options("c", 1, 10)).await, Kind::TooLarge);
    assert!(status.message().contains("100000"), "{}", status.message());
    refused(client.get("c", &["long"]).await, Kind::TooLarge);
    let limited = SearchOptions { text_limit: 100, ..options("c", 1, 10) };
    assert_eq!(search(limited).await.unwrap().matches.len(), 1);
    let without = SearchOptions { fields: vec!["none".into()], ..options("c", 1, 10) };
    assert_eq!(search(without).await.unwrap().matches.len(), 1);
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passes_is_told_as_one() {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    let raw = Raw::connect(&server.url).await;
    let request = keyword_search("apple", options("probe", 1, 10));
    // A deadline too short for anything may still be met by luck, but nothing else may come of it.
    let mut num_late = 0;
    for timeout in ["0n", "1n", "1u", "50u", "1m", "0S"] {
        for _ in 0..20 {
            let headers = [("grpc-timeout", timeout)];
            let method = "antiphon.v1.KeywordSearchService/SearchKeyword";
            let status = raw.call_with(method, &headers, &request).await.status;
            if status.code() != tonic::Code::Ok {
                check(&status, Kind::Deadline);
                num_late += 1;
            }
        }
    }
    assert!(num_late > 0);
    let unreadable = [("grpc-timeout", "soon")];
    let answer = raw.call_with("antiphon.v1.KeywordSearchService/SearchKeyword", &unreadable, &request).await;
    assert_eq!(answer.status.code(), tonic::Code::Ok);
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_holds_while_the_request_is_still_being_sent() {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    let raw = Raw::connect(&server.url).await;
    // Five bytes that promise a message, of which nothing comes.
    let started = Instant::now();
    let headers = [("grpc-timeout", "200m")];
    let method = "antiphon.v1.KeywordSearchService/SearchKeyword";
    let answer = raw.send(method, &headers, &[0, 0, 0, 0, 9], false).await;
    check(&answer.status, Kind::Deadline);
    assert!(started.elapsed() < Duration::from_secs(2));
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_waits_for_its_turn_ends_at_the_deadline() {
    let server = LocalBuilder::new().node_config(|config| config.search_threads = 1).start().await;
    prepare(&server).await;
    let (release, wait) = std::sync::mpsc::sync_channel::<()>(1);
    let (stop, _guard) = Stop::new(Deadline::after(Duration::from_secs(60)));
    let pool = Arc::clone(server.nodes[0].pool());
    let busy = tokio::spawn(async move { pool.run(stop, move |_| Ok(wait.recv().is_ok())).await });
    let raw = Raw::connect(&server.url).await;
    let (request, headers) = (keyword_search("apple", options("probe", 1, 10)), [("grpc-timeout", "100m")]);
    let search = || raw.call_with("antiphon.v1.KeywordSearchService/SearchKeyword", &headers, &request);
    // Until the other job has the only thread, searches are answered.
    let mut status = search().await.status;
    while status.code() == tonic::Code::Ok {
        status = search().await.status;
    }
    check(&status, Kind::Deadline);
    release.send(()).unwrap();
    assert!(busy.await.unwrap().unwrap());
    still_serves(&server.client).await;
}

/// A store with a collection `c` of so many shards and a document for each of 100 keys.
async fn filled_store(shard_count: u32) -> Store {
    let store = Store::open("memory://").unwrap();
    let server = LocalBuilder::new().store(store.clone()).start().await;
    server.client.create(collection("c", shard_count, schema(2, Metric::Cosine))).await.unwrap();
    let documents = (0..100).map(|n| document(&format!("d{n}"), &[1.0, n as f32], "apple")).collect();
    server.client.upsert("c", documents).await.unwrap();
    server.stop().await;
    store
}

async fn check_partial(builder: LocalBuilder, kind: Kind) {
    let num_shards = 16;
    let server = builder.store(filled_store(num_shards).await).start().await;
    let client = &server.client;
    let partial = |partial: Partial, page_size| {
        let timeout = Duration::from_secs(3);
        let options = SearchOptions { partial: partial as i32, ..options("c", 1, page_size) };
        let mut request = tonic::Request::new(hybrid_search(&[1.0, 0.0], "apple", options));
        request.set_timeout(timeout);
        let mut client = client.hybrid.clone();
        async move { Ok(client.search_hybrid(request).await?.into_inner()) }
    };
    let status = refused(partial(Partial::Refuse, 10).await, kind);
    let shard = metadata(&status, "shard").unwrap();
    assert!(status.message().contains(&format!("shard {shard}")), "{}", status.message());

    let answer = partial(Partial::Allow, 100).await.unwrap();
    let coverage = answer.coverage.as_ref().unwrap();
    assert_eq!(coverage.num_shards, num_shards);
    let missing = coverage.failures.len();
    assert!(missing > 0 && missing < 2 * num_shards as usize, "{missing} of {num_shards} shards");
    assert!(!answer.matches.is_empty() && answer.matches.len() < 100, "{} matches", answer.matches.len());
    for channel in [Channel::Vector, Channel::Keyword] {
        assert_eq!(coverage.failures.iter().filter(|failure| failure.channel() == channel).count() * 2, missing);
    }
    assert!(coverage.failures.iter().all(|failure| failure.reason == kind.reason()), "{:?}", coverage.failures);
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_on_a_node_that_is_gone_are_unavailable_or_left_out() {
    check_partial(LocalBuilder::new().address("http://127.0.0.1:1"), Kind::ShardUnavailable).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_on_a_node_that_never_answers_are_late_or_left_out() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    check_partial(LocalBuilder::new().address(&url), Kind::Deadline).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_shard_answers_even_partial_answers_are_refused() {
    let mut builder = LocalBuilder::new().nodes(0).address("http://127.0.0.1:1").store(filled_store(2).await);
    builder.coordinator.default_timeout = Duration::from_secs(5);
    let server = builder.start().await;
    let client = &server.client;
    for partial in [Partial::Refuse, Partial::Allow] {
        let options = SearchOptions { partial: partial as i32, ..options("c", 1, 10) };
        let status = refused(client.search_keyword(keyword_search("apple", options)).await, Kind::ShardUnavailable);
        assert!(metadata(&status, "shard").is_some(), "{status:?}");
    }
    let status = refused(client.upsert("c", vec![document("k", &[], "")]).await, Kind::ShardUnavailable);
    assert!(metadata(&status, "shard").is_some(), "{status:?}");
    refused(client.get("c", &["d1"]).await, Kind::ShardUnavailable);
    refused(client.count("c").await, Kind::ShardUnavailable);
    let cluster = client.describe_cluster().await.unwrap();
    assert!(!cluster.nodes[0].reachable && !cluster.nodes[0].problem.is_empty(), "{:?}", cluster.nodes);
    assert!(cluster.shards.iter().all(|shard| !shard.replicas[0].serving), "{:?}", cluster.shards);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_is_told_and_comes_back() {
    let failing = FailingStore::new(Arc::new(InMemory::new()));
    let limits = antiphon_store::Limits { answer: Duration::from_millis(300), patience: Duration::from_millis(600) };
    let store = Store::with_object_store(Arc::new(failing.clone())).with_limits(limits);
    let server = LocalBuilder::new().store(store).start().await;
    prepare(&server).await;
    let client = &server.client;
    for fault in [Fault::Refuse, Fault::Hang] {
        for op in [Op::Put, Op::Get, Op::List] {
            failing.plan(op, "", usize::MAX, fault);
        }
        let outcome = client.upsert("probe", vec![document("far", &[0.0, 1.0], "apple")]).await;
        refused(outcome, Kind::StoreUnavailable);
        refused(client.create(collection("more", 1, Schema::default())).await, Kind::StoreUnavailable);
        refused(client.get("probe", &["near"]).await, Kind::StoreUnavailable);
        refused(client.get_collection("nobody").await, Kind::StoreUnavailable);
        // What is in memory is served all the same.
        still_serves(client).await;
        let refresh = SearchOptions { consistency: Consistency::Refresh as i32, ..options("probe", 1, 10) };
        refused(client.search_keyword(keyword_search("apple", refresh)).await, Kind::StoreUnavailable);
        failing.clear();
        wait_until(Duration::from_secs(20), || async {
            client.upsert("probe", vec![document("far", &[0.0, 1.0], "apple")]).await.is_ok()
        })
        .await;
        assert_eq!(client.get("probe", &["near", "far"]).await.unwrap().documents.len(), 2);
    }
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_says_so() {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    server.nodes[0].stop().await;
    refused(server.client.upsert("probe", vec![document("k", &[], "")]).await, Kind::ShuttingDown);
    let search = keyword_search("apple", options("probe", 1, 10));
    refused(server.client.search_keyword(search).await, Kind::ShuttingDown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_no_longer_held_has_expired() {
    let builder = LocalBuilder::new().node_config(|config| config.max_views = 1);
    let server = builder.start().await;
    prepare(&server).await;
    let client = &server.client;
    let search = |snapshot: &str| {
        let options = SearchOptions { snapshot: snapshot.into(), ..options("probe", 1, 10) };
        client.search_hybrid(hybrid_search(&[1.0, 0.1], "apple", options))
    };
    let snapshot = search("").await.unwrap().snapshot;
    client.upsert("probe", vec![document("other", &[0.5, 0.5], "plum")]).await.unwrap();
    assert_eq!(keys(&search(&snapshot).await.unwrap()), ["near", "far"], "the old state");
    let newer = search("").await.unwrap();
    assert_eq!(newer.matches.len(), 3);
    refused(search(&snapshot).await, Kind::SnapshotExpired);
    client.delete("probe", &["other"]).await.unwrap();
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_segments_are_data_loss_and_the_rest_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    let server = LocalBuilder::new().store(Store::open(&url).unwrap()).small_segments(10).start().await;
    prepare(&server).await;
    server.client.create(collection("c", 1, schema(2, Metric::Cosine))).await.unwrap();
    let documents = |from: u32| (from..from + 20).map(|n| document(&format!("d{n}"), &[1.0, 0.5], "apple")).collect();
    server.client.upsert("c", documents(0)).await.unwrap();
    server.settle(|replica| replica.num_live_rows == 0 && replica.num_segments > 0).await;
    let uid = server.client.get_collection("c").await.unwrap().uid;
    server.stop().await;
    let damaged = damage(&folder.path().join("collections").join(&uid));
    assert!(damaged > 0);

    let server = LocalBuilder::new().store(Store::open(&url).unwrap()).start().await;
    let client = &server.client;
    let search = |partial: Partial| {
        let options = SearchOptions { partial: partial as i32, ..options("c", 1, 10) };
        client.search_keyword(keyword_search("apple", options))
    };
    refused(search(Partial::Refuse).await, Kind::Corruption);
    refused(client.count("c").await, Kind::Corruption);
    refused(client.get("c", &["d1"]).await, Kind::Corruption);
    client.upsert("c", documents(100)).await.unwrap();
    let answer = search(Partial::Allow).await.unwrap();
    assert_eq!(answer.matches.len(), 10);
    assert_eq!(answer.coverage.unwrap().failures[0].reason, "CORRUPTION");
    assert_eq!(client.get("c", &["d100"]).await.unwrap().documents.len(), 1);
    still_serves(client).await;
    server.stop().await;
}

/// Flips a bit in the middle of every segment file below a folder.
fn damage(folder: &std::path::Path) -> usize {
    let mut damaged = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            damaged += damage(&path);
        } else if path.to_string_lossy().contains("/segments/") {
            let mut bytes = std::fs::read(&path).unwrap();
            if let Some(byte) = bytes.len().checked_div(2).and_then(|middle| bytes.get_mut(middle)) {
                *byte ^= 0x10;
                std::fs::write(&path, bytes).unwrap();
                damaged += 1;
            }
        }
    }
    damaged
}
