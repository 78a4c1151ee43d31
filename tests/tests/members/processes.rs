//! Roles as processes: what is served when, what happens when a part of a cluster goes, and how a server stops.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use antiphon_proto::error::ErrorKind;
use antiphon_proto::key::shard_of;
use antiphon_proto::v1::{Metric, Partial, SearchOptions};
use antiphon_tests::client::{Client, kind_of};
use antiphon_tests::cluster::{
    Bucket, ClusterBuilder, DIMENSIONS, Workload, document_of, read_state, vector_of, verify_answers,
};
use antiphon_tests::local::wait_until;
use antiphon_tests::model::fold;
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;

/// How long a server may take to end once it was told to: calls under way are let to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

async fn write(client: &Client, name: &str, num_docs: u64) {
    let documents = (1..=num_docs).map(|generation| document_of(&format!("k{generation}"), generation)).collect();
    client.upsert(name, documents).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_told_to_stop_under_load_ends_with_0_and_loses_nothing() {
    let mut random = Random::seeded(rand::random());
    let mut cluster = ClusterBuilder::serve(1).set("sealing.seal_rows", 60).start().await;
    cluster.client(0).create(collection("c", 2, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    let mut workload = Workload::start("c", 3, 1, Duration::from_secs(15), &mut random.rng);
    workload.up(0, cluster.client(0));
    for round in 1..=4 {
        wait_until(Duration::from_secs(20), || async { workload.oracle().counts().0 > round * 30 }).await;
        let told = Instant::now();
        cluster.serves[0].terminate();
        let status = cluster.serves[0].ended(STOP_TIMEOUT).await;
        assert!(status.success(), "{status}");
        eprintln!("ended after {:?}", told.elapsed());
        workload.killed(0);
        let paused = workload.pause().await;
        cluster.serves[0].start().await;
        let client = cluster.client(0);
        let state = read_state(&client, "c").await.unwrap();
        let mut faults = workload.oracle().check(&state, |key| shard_of(&fold(key), 2));
        let keys = workload.oracle().keys();
        faults.extend(verify_answers(&client, "c", &keys, &state, &mut random.rng).await.unwrap());
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        workload.oracle().settle(&state);
        workload.up(0, client);
        drop(paused);
    }
    workload.stop().await;
}

/// The line on standard output is what scripts wait for. The files are hidden as soon as it appears: only a server that
/// has its shards open by then can still answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_that_it_listens_only_when_its_shards_are_open() {
    let mut cluster = ClusterBuilder::serve(1).set("sealing.seal_rows", 100).start().await;
    let client = cluster.client(0);
    client.create(collection("c", 3, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    write(&client, "c", 500).await;
    wait_until(Duration::from_secs(20), || async { client.get_collection("c").await.unwrap().num_segments >= 3 }).await;
    let search = || vector_search(&vector_of("k7", 7), SearchOptions { exact: true, ..options("c", 1, 500) });
    let before = client.search_vector(search()).await.unwrap();
    assert_eq!((before.matches.len(), before.matches[0].key.as_str()), (500, "k7"));
    cluster.serves[0].kill();
    cluster.serves[0].start().await;
    let (there, hidden) = (cluster.data.join("collections"), cluster.data.join("hidden"));
    std::fs::rename(&there, &hidden).unwrap();
    let after = cluster.client(0).search_vector(search()).await.unwrap();
    std::fs::rename(&hidden, &there).unwrap();
    assert_eq!(after.matches, before.matches);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_holds_is_missing_while_it_is_gone_and_back_when_it_is() {
    over_roles(ClusterBuilder::roles(2, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_over_s3() {
    match Bucket::start() {
        Some(bucket) => over_roles(ClusterBuilder::roles(2, 2).bucket(&bucket)).await,
        None => eprintln!("skipped: this needs python3 with moto[server]"),
    }
}

async fn over_roles(builder: ClusterBuilder) {
    let mut cluster = builder.set("sealing.seal_rows", 50).start().await;
    let (one, other) = (cluster.client(0), cluster.client(1));
    one.create(collection("c", 8, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    write(&one, "c", 400).await;
    assert_eq!(other.count("c").await.unwrap(), 400);
    let options = |partial: Partial| SearchOptions { exact: true, partial: partial as i32, ..options("c", 1, 400) };
    let search = |partial| vector_search(&vector_of("k7", 7), options(partial));
    let whole = other.search_vector(search(Partial::Refuse)).await.unwrap();
    assert_eq!(whole.matches.len(), 400);
    let of_first = {
        let described = one.describe_cluster().await.unwrap();
        assert!(described.nodes.iter().all(|node| node.reachable), "{described:?}");
        let url = cluster.nodes[0].url();
        let is_first = |shard: &&antiphon_proto::v1::Shard| shard.replicas[0].node_address == url;
        described.shards.iter().filter(is_first).map(|shard| shard.shard).collect::<Vec<_>>()
    };
    assert!(!of_first.is_empty() && of_first.len() < 8, "{of_first:?}");

    cluster.nodes[0].kill();
    for client in [&one, &other] {
        let refused = client.search_vector(search(Partial::Refuse)).await.unwrap_err();
        assert_eq!(kind_of(&refused), ErrorKind::ShardUnavailable, "{refused:?}");
        let part = client.search_vector(search(Partial::Allow)).await.unwrap();
        let coverage = part.coverage.unwrap();
        let missing: Vec<u32> = coverage.failures.iter().map(|failure| failure.shard).collect();
        assert_eq!(missing, of_first);
        assert!(coverage.failures.iter().all(|failure| failure.reason == "SHARD_UNAVAILABLE"), "{coverage:?}");
        let rest = whole.matches.iter().filter(|found| !of_first.contains(&shard_of(&fold(&found.key), 8)));
        let rest: Vec<&str> = rest.map(|found| found.key.as_str()).collect();
        assert_eq!(part.matches.iter().map(|found| found.key.as_str()).collect::<Vec<_>>(), rest);
        let described = client.describe_cluster().await.unwrap();
        assert_eq!(described.nodes.iter().filter(|node| node.reachable).count(), 1);
    }

    cluster.nodes[0].start().await;
    let answers = || async { one.search_vector(search(Partial::Refuse)).await.is_ok() };
    wait_until(Duration::from_secs(20), answers).await;
    assert_eq!(one.search_vector(search(Partial::Refuse)).await.unwrap().matches, whole.matches);
    write(&other, "c", 401).await;
    assert_eq!(one.count("c").await.unwrap(), 401);
    for process in cluster.coordinators.iter_mut().chain(&mut cluster.nodes) {
        process.terminate();
        assert!(process.ended(STOP_TIMEOUT).await.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_does_not_hold_up_the_stop() {
    let mut cluster = ClusterBuilder::serve(1).start().await;
    let client = cluster.client(0);
    client.create(collection("c", 1, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    write(&client, "c", 3).await;
    let told = Instant::now();
    cluster.serves[0].terminate();
    let status = cluster.serves[0].ended(STOP_TIMEOUT).await;
    assert!(status.success(), "{status}");
    assert!(told.elapsed() < Duration::from_secs(10), "{:?}", told.elapsed());
    assert!(client.count("c").await.is_err());
}
