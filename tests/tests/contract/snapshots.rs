//! Tokens: a snapshot shows the same data again or says that it expired; a version makes a search see a write, whoever took
//! it; other tokens are refused.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::*;
use antiphon_store::Store;
use antiphon_tests::ask::{Answer, Ask};
use antiphon_tests::client::{Client, kind_of};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::model::Words;
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;

const DIMS: usize = 6;

fn random_schema() -> Schema {
    let mut schema = schema(DIMS as u32, Metric::Euclidean);
    schema.vectors[0].hnsw = Some(Hnsw { expansion_search: 16, connectivity: 4, ..Hnsw::default() });
    schema.texts.push(TextField { name: "u".into(), analyzer: "standard".into(), boost: 1.0 });
    schema
}

fn at(snapshot: &str, options: SearchOptions) -> SearchOptions {
    SearchOptions { snapshot: snapshot.into(), ..options }
}

async fn upsert_random(random: &mut Random, client: &Client, name: &str, count: usize, num_keys: usize) {
    let documents = (0..count).map(|_| random.document(num_keys, DIMS, Metric::Euclidean)).collect();
    client.upsert(name, documents).await.unwrap();
}

async fn delete_random(random: &mut Random, client: &Client, name: &str, count: usize, num_keys: usize) {
    let keys: Vec<String> = (0..count).map(|_| random.key(num_keys)).collect();
    client.delete(name, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
}

async fn kind(ask: &Ask, client: &Client, options: SearchOptions) -> ErrorKind {
    kind_of(&ask.send(client, options).await.unwrap_err())
}

#[tokio::test(flavor = "multi_thread")]
async fn later_pages_of_a_snapshot_are_as_they_would_have_been() {
    const NUM_KEYS: usize = 1_500;
    let mut random = Random::seeded(51);
    let server = LocalBuilder::new()
        .small_segments(5_000)
        .coordinator_config(|config| config.law.max_result_window = 16)
        .node_config(|config| {
            config.merging.fan_in = 2;
            config.merging.dead_share = 0.05;
        })
        .start()
        .await;
    let client = &server.client;
    for shards in [1, 3] {
        let name = format!("shards-{shards}");
        client.create(collection(&name, shards, random_schema())).await.unwrap();
        upsert_random(&mut random, client, &name, NUM_KEYS, NUM_KEYS).await;
        server.settle(|replica| replica.num_live_rows == 0).await;
        upsert_random(&mut random, client, &name, 30, NUM_KEYS).await;

        let mut kept = Vec::new();
        for _ in 0..4 {
            for ask in random.asks(DIMS, Metric::Euclidean) {
                for exact in [false, true] {
                    let page = |page| SearchOptions { exact, include_vectors: true, ..options(&name, page, 4) };
                    let first = ask.send(client, page(1)).await.unwrap();
                    for number in 1..=3 {
                        let now = ask.send(client, at(&first.snapshot, page(number))).await.unwrap();
                        assert_eq!(now.snapshot, first.snapshot);
                        if number == 1 {
                            assert_eq!(now, first);
                        }
                        kept.push((ask.clone(), page(number), now));
                    }
                }
            }
        }
        let before = positions(client, &name).await;
        let mut num_changed = 0;
        for _ in 0..2 {
            upsert_random(&mut random, client, &name, 500, NUM_KEYS).await;
            delete_random(&mut random, client, &name, 300, NUM_KEYS).await;
            for (ask, options, then) in kept.iter().step_by(7) {
                assert_eq!(&ask.send(client, at(&then.snapshot, options.clone())).await.unwrap(), then, "{ask:?}");
            }
            server.settle(|replica| replica.num_live_rows == 0 && replica.num_deleted * 20 <= replica.num_docs).await;
            num_changed = 0;
            for (ask, options, then) in &kept {
                assert_eq!(&ask.send(client, at(&then.snapshot, options.clone())).await.unwrap(), then, "{ask:?}");
                let fresh = ask.send(client, options.clone()).await.unwrap();
                num_changed += usize::from(fresh.matches != then.matches);
            }
        }
        assert!(num_changed > kept.len() / 4, "only {num_changed} of {} answers changed", kept.len());
        let after = positions(client, &name).await;
        assert!(before.iter().zip(&after).all(|(before, after)| after.1 > before.1 + 1), "{before:?} {after:?}");
    }
    server.stop().await;
}

/// Log position and manifest of each shard.
async fn positions(client: &Client, name: &str) -> Vec<(u64, u64)> {
    let shards = client.describe_cluster().await.unwrap().shards.into_iter().filter(|shard| shard.collection == name);
    shards.map(|shard| (shard.replicas[0].seq, shard.replicas[0].manifest_version)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_expires_and_is_then_never_other_data() {
    for shards in [1, 3] {
        let retention = Duration::from_millis(300);
        let server = LocalBuilder::new().node_config(|config| config.view_retention = retention).start().await;
        let client = &server.client;
        client.create(collection("c", shards, schema(1, Metric::Dot))).await.unwrap();
        let documents =
            |offset: f32| (0..30).map(|n| document(&format!("d{n}"), &[n as f32 + offset], "red")).collect();
        client.upsert("c", documents(0.0)).await.unwrap();
        for ask in
            [Ask::Vector(vec![1.0]), Ask::Keyword(Words::any("red")), Ask::fused(&[1.0], "red", FusionMethod::MaxScore)]
        {
            let first = ask.send(client, options("c", 1, 5)).await.unwrap();
            client.upsert("c", documents(0.5)).await.unwrap();
            let second = ask.send(client, at(&first.snapshot, options("c", 2, 5))).await.unwrap();
            assert_eq!(second.matches[0].rank, 6);
            tokio::time::sleep(retention + Duration::from_millis(50)).await;
            let page = at(&first.snapshot, options("c", 2, 5));
            assert_eq!(kind(&ask, client, page).await, ErrorKind::SnapshotExpired);
        }
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bounded_number_of_snapshots_is_kept() {
    let server = LocalBuilder::new().node_config(|config| config.max_views = 3).start().await;
    let client = &server.client;
    client.create(collection("c", 1, schema(1, Metric::Dot))).await.unwrap();
    let ask = Ask::Vector(vec![1.0]);
    let mut snapshots = Vec::new();
    for n in 0..6 {
        client.upsert("c", vec![document(&format!("d{n}"), &[1.0], "")]).await.unwrap();
        snapshots.push(ask.send(client, options("c", 1, 5)).await.unwrap().snapshot);
    }
    for (n, snapshot) in snapshots.iter().enumerate() {
        let page = at(snapshot, options("c", 1, 10));
        if n < 3 {
            assert_eq!(kind(&ask, client, page).await, ErrorKind::SnapshotExpired);
        } else {
            assert_eq!(ask.send(client, page).await.unwrap().matches.len(), n + 1);
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_no_answer_of_the_collection_gave_are_refused() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    for (name, shards) in [("one", 1), ("two", 2)] {
        client.create(collection(name, shards, schema(1, Metric::Dot))).await.unwrap();
    }
    let version = client.upsert("one", vec![document("a", &[1.0], "red")]).await.unwrap().version;
    let foreign = client.upsert("two", vec![document("a", &[1.0], "red"), document("b", &[1.0], "red")]).await.unwrap();
    for ask in
        [Ask::Vector(vec![1.0]), Ask::Keyword(Words::any("red")), Ask::fused(&[1.0], "red", FusionMethod::TurnTaking)]
    {
        let page = options("one", 1, 5);
        let snapshot = ask.send(client, page.clone()).await.unwrap().snapshot;
        let other = ask.send(client, options("two", 1, 5)).await.unwrap().snapshot;
        assert_eq!(kind(&ask, client, at(&other, page.clone())).await, ErrorKind::SnapshotExpired);
        let half = &snapshot[..snapshot.len() / 2];
        for garbage in ["garbage", "----", "ключ", half, &version, &"A".repeat(300)] {
            assert_eq!(kind(&ask, client, at(garbage, page.clone())).await, ErrorKind::TokenMalformed, "{garbage}");
        }
        for garbage in ["garbage", &snapshot, &foreign.version, half] {
            let page = SearchOptions { at_least: garbage.into(), ..page.clone() };
            assert_eq!(kind(&ask, client, page).await, ErrorKind::TokenMalformed, "{garbage}");
        }
        let both = SearchOptions { at_least: version.clone(), ..at(&snapshot, page.clone()) };
        assert_eq!(kind(&ask, client, both).await, ErrorKind::ArgumentInvalid);
    }
    // A collection that was deleted and made again is another one.
    let ask = Ask::Vector(vec![1.0]);
    let snapshot = ask.send(client, options("one", 1, 5)).await.unwrap().snapshot;
    client.collections.clone().delete_collection(DeleteCollectionRequest { name: "one".into() }).await.unwrap();
    client.create(collection("one", 1, schema(1, Metric::Dot))).await.unwrap();
    client.upsert("one", vec![document("a", &[2.0], "red")]).await.unwrap();
    assert_eq!(kind(&ask, client, at(&snapshot, options("one", 1, 5))).await, ErrorKind::SnapshotExpired);
    let stale = SearchOptions { at_least: version, ..options("one", 1, 5) };
    assert_eq!(kind(&ask, client, stale).await, ErrorKind::TokenMalformed);
    server.stop().await;
}

/// Two servers over one store, of which neither looks for the other's writes by itself.
async fn strangers() -> (Local, Local) {
    let store = Store::open("memory://").unwrap();
    let start = || {
        let builder = LocalBuilder::new().store(store.clone());
        builder.node_config(|config| config.poll_interval = Duration::from_secs(7_200)).start()
    };
    (start().await, start().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_sees_the_write_that_it_names_whoever_took_it() {
    let (writer, reader) = strangers().await;
    writer.client.create(collection("c", 3, schema(1, Metric::Dot))).await.unwrap();
    let asks =
        [Ask::Vector(vec![1.0]), Ask::Keyword(Words::any("red")), Ask::fused(&[1.0], "red", FusionMethod::TurnTaking)];
    for (round, ask) in asks.iter().cycle().take(9).enumerate() {
        // The reader has every shard open and is behind.
        let num_seen = ask.send(&reader.client, options("c", 1, 50)).await.unwrap().matches.len();
        let key = format!("d{round}");
        let written = writer.client.upsert("c", vec![document(&key, &[1.0], "red")]).await.unwrap();
        let eventual = ask.send(&reader.client, options("c", 1, 50)).await.unwrap();
        assert_eq!(eventual.matches.len(), num_seen, "the reader looked by itself, so nothing is shown");
        let options = SearchOptions { at_least: written.version, ..options("c", 1, 50) };
        let response = ask.send(&reader.client, options.clone()).await.unwrap();
        assert!(keys(&response).contains(&key.as_str()), "round {round}: {ask:?}");
        let deleted = writer.client.delete("c", &[&key.to_uppercase()]).await.unwrap();
        let options = SearchOptions { at_least: deleted.version, ..options };
        let response = ask.send(&reader.client, options).await.unwrap();
        assert!(!keys(&response).contains(&key.as_str()), "round {round}: {ask:?}");
        writer.client.upsert("c", vec![document(&format!("kept{round}"), &[2.0], "red")]).await.unwrap();
    }
    writer.stop().await;
    reader.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_refreshes_sees_every_write_acknowledged_before() {
    let (one, other) = strangers().await;
    one.client.create(collection("c", 3, schema(1, Metric::Dot))).await.unwrap();
    let asks =
        [Ask::Vector(vec![1.0]), Ask::Keyword(Words::any("red")), Ask::fused(&[1.0], "red", FusionMethod::TurnTaking)];
    let refresh = SearchOptions { consistency: Consistency::Refresh as i32, ..options("c", 1, 50) };
    for round in 0..10 {
        // By turns each of them is the one that does not know yet.
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        writer.client.upsert("c", vec![document(&format!("d{round}"), &[1.0], "red")]).await.unwrap();
        for ask in &asks {
            let response = ask.send(&reader.client, refresh.clone()).await.unwrap();
            assert_eq!(response.matches.len(), round + 1, "round {round}: {ask:?}");
        }
        assert_eq!(reader.client.count("c").await.unwrap(), round as u64 + 1);
    }
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_the_same_data_on_any_server_whoever_writes_seals_and_merges() {
    const NUM_KEYS: usize = 60;
    let mut random = Random::seeded(57);
    let store = Store::open("memory://").unwrap();
    let start = || {
        let builder = LocalBuilder::new().store(store.clone()).small_segments(15);
        builder.node_config(|config| config.poll_interval = Duration::from_millis(50)).start()
    };
    let servers = [start().await, start().await];
    servers[0].client.create(collection("c", 2, random_schema())).await.unwrap();
    let mut kept: Vec<(Ask, SearchOptions, SearchResponse)> = Vec::new();
    for round in 0..60 {
        let writer = &random.pick(&[0, 1]);
        upsert_random(&mut random, &servers[*writer].client, "c", 6, NUM_KEYS).await;
        delete_random(&mut random, &servers[*writer].client, "c", 2, NUM_KEYS).await;
        let asks = random.asks(DIMS, Metric::Euclidean);
        let ask = random.pick(&asks);
        let options = SearchOptions { exact: true, ..options("c", 1 + random.below(3) as u32, 5) };
        let response = ask.send(&servers[random.below(2)].client, options.clone()).await.unwrap();
        kept.push((ask, options, response));
        if round % 10 == 9 {
            servers[0].settle(|replica| replica.num_live_rows == 0).await;
        }
        for _ in 0..6 {
            let (ask, options, then) = random.pick(&kept);
            // Whoever never had it makes it anew.
            let now = ask.send(&servers[random.below(2)].client, at(&then.snapshot, options)).await.unwrap();
            assert_eq!((Answer::from(&now), &now), (Answer::from(&then), &then), "round {round}: {ask:?}");
        }
    }
    // Both agree on what is there.
    let refresh = SearchOptions { consistency: Consistency::Refresh as i32, exact: true, ..options("c", 1, 100) };
    for ask in random.asks(DIMS, Metric::Euclidean) {
        let one = Answer::from(&ask.send(&servers[0].client, refresh.clone()).await.unwrap());
        assert_eq!(one, Answer::from(&ask.send(&servers[1].client, refresh.clone()).await.unwrap()), "{ask:?}");
    }
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_snapshot_is_the_same_data() {
    let mut random = Random::seeded(59);
    let store = Store::open("memory://").unwrap();
    let start = || LocalBuilder::new().store(store.clone()).small_segments(40).start();
    let mut server = start().await;
    server.client.create(collection("c", 2, random_schema())).await.unwrap();
    for round in 0..4 {
        upsert_random(&mut random, &server.client, "c", 30, 100).await;
        let asks = random.asks(DIMS, Metric::Euclidean);
        let page = SearchOptions { exact: true, ..options("c", 2, 5) };
        let mut kept = Vec::new();
        for ask in &asks {
            kept.push(ask.send(&server.client, page.clone()).await.unwrap());
        }
        if round % 2 == 1 {
            delete_random(&mut random, &server.client, "c", 10, 100).await;
        }
        server.stop().await;
        server = start().await;
        for (ask, then) in asks.iter().zip(&kept) {
            let now = ask.send(&server.client, at(&then.snapshot, page.clone())).await.unwrap();
            assert_eq!(&now, then, "{ask:?}");
        }
    }
    server.stop().await;
}
