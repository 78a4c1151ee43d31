//! Servers killed at any moment (SIGKILL, SIGSTOP) under writes, with small segments so that sealing and merging are always
//! under way: what was acknowledged is there, nothing is half there, and processes that share a shard agree.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use antiphon_proto::key::shard_of;
use antiphon_proto::v1::{Consistency, Metric, SearchOptions, SearchResponse};
use antiphon_tests::client::Client;
use antiphon_tests::cluster::{Cluster, ClusterBuilder, DIMENSIONS, Workload, read_state, vector_of, verify_answers};
use antiphon_tests::model::fold;
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;
use rand::prelude::*;
use tokio::time::sleep;

const SHARDS: u32 = 2;

fn builder(num_serves: usize) -> ClusterBuilder {
    ClusterBuilder::serve(num_serves)
        .set("sealing.seal_rows", 60)
        .set("sealing.seal_age_s", 1)
        .set("merging.segments_per_tier", 2)
}

fn millis(random: &mut Random, most: u64) -> Duration {
    Duration::from_millis(random.rng.random_range(0..most))
}

/// Reads everything and holds it against what was promised; afterwards it is certain. Only while paused, with every failed
/// request's process killed or drained.
async fn verify(workload: &Workload, client: &Client, random: &mut Random) {
    let state = read_state(client, "c").await.unwrap();
    let keys = workload.oracle().keys();
    let mut faults = workload.oracle().check(&state, |key| shard_of(&fold(key), SHARDS));
    faults.extend(verify_answers(client, "c", &keys, &state, &mut random.rng).await.unwrap());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    workload.assert_no_faults();
    workload.oracle().settle(&state);
}

/// The least manifest version of the collection's shards: how often each was sealed or merged.
async fn num_manifests(client: &Client) -> u64 {
    let cluster = client.describe_cluster().await.unwrap();
    let replicas = cluster.shards.iter().flat_map(|shard| &shard.replicas);
    replicas.map(|replica| replica.manifest_version).min().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_and_nothing_is_half_there_when_a_process_is_killed() {
    let mut random = Random::seeded(rand::random());
    let mut cluster = builder(1).start().await;
    cluster.client(0).create(collection("c", SHARDS, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    let mut workload = Workload::start("c", 4, 1, Duration::from_secs(10), &mut random.rng);
    workload.up(0, cluster.client(0));
    for _ in 0..24 {
        sleep(millis(&mut random, 800)).await;
        cluster.serves[0].kill();
        workload.killed(0);
        let paused = workload.pause().await;
        if random.chance(0.3) {
            // Once more while it reads what the first one left.
            cluster.serves[0].spawn();
            sleep(millis(&mut random, 150)).await;
            cluster.serves[0].kill();
        }
        cluster.serves[0].start().await;
        verify(&workload, &cluster.client(0), &mut random).await;
        workload.up(0, cluster.client(0));
        drop(paused);
    }
    workload.stop().await;
    let (acknowledged, unknown) = workload.oracle().counts();
    let manifests = num_manifests(&cluster.client(0)).await;
    eprintln!("{acknowledged} requests acknowledged, {unknown} unknown, {manifests} manifests");
    assert!(acknowledged > 100 && unknown > 10 && manifests > 10, "the test is too tame");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_write_to_one_shard_agree_whatever_stops_them() {
    let mut random = Random::seeded(rand::random());
    let mut cluster = builder(2).start().await;
    cluster.client(0).create(collection("c", SHARDS, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    // Given up sooner than a long pause lasts.
    let mut workload = Workload::start("c", 4, 2, Duration::from_millis(1200), &mut random.rng);
    workload.up(0, cluster.client(0));
    workload.up(1, cluster.client(1));
    for fault in 1..=20 {
        sleep(millis(&mut random, 500)).await;
        let victim = random.below(2);
        if random.chance(0.5) {
            cluster.serves[victim].kill();
            workload.killed(victim);
            sleep(millis(&mut random, 200)).await;
            cluster.serves[victim].start().await;
            workload.up(victim, cluster.client(victim));
        } else {
            cluster.serves[victim].pause();
            sleep(millis(&mut random, 1800)).await;
            cluster.serves[victim].resume();
        }
        if fault % 5 == 0 {
            let _paused = workload.pause().await;
            workload.drain().await;
            agree(&cluster).await;
            verify(&workload, &cluster.client(victim), &mut random).await;
        }
    }
    workload.stop().await;
    for serve in &mut cluster.serves {
        serve.kill();
    }
    for (index, serve) in cluster.serves.iter_mut().enumerate() {
        workload.killed(index);
        serve.start().await;
    }
    agree(&cluster).await;
    verify(&workload, &cluster.client(0), &mut random).await;
    let (acknowledged, unknown) = workload.oracle().counts();
    let manifests = num_manifests(&cluster.client(0)).await;
    eprintln!("{acknowledged} requests acknowledged, {unknown} unknown, {manifests} manifests");
    assert!(acknowledged > 100 && unknown > 5 && manifests > 10, "the test is too tame");
}

/// Both servers show the same documents and the same pages, to the last bit.
async fn agree(cluster: &Cluster) {
    let (first, second) = (cluster.client(0), cluster.client(1));
    let state = read_state(&first, "c").await.unwrap();
    assert_eq!(state, read_state(&second, "c").await.unwrap());
    let keys: Vec<&str> = state.keys().map(String::as_str).collect();
    for keys in keys.chunks(500) {
        assert_eq!(first.get("c", keys).await.unwrap(), second.get("c", keys).await.unwrap());
    }
    for page in 1..=4 {
        assert_eq!(pages(&first, page).await, pages(&second, page).await, "page {page}");
    }
}

async fn pages(client: &Client, page: u32) -> Vec<Vec<(String, u64)>> {
    let vector = vector_of("query", 0);
    let options = || SearchOptions { consistency: Consistency::Refresh as i32, ..options("c", page, 15) };
    let answers = [
        client.search_vector(vector_search(&vector, options())).await.unwrap(),
        client.search_keyword(keyword_search("common", options())).await.unwrap(),
        client.search_hybrid(hybrid_search(&vector, "common", options())).await.unwrap(),
    ];
    let scored = |answer: &SearchResponse| {
        answer.matches.iter().map(|found| (found.key.clone(), found.score.to_bits())).collect()
    };
    answers.iter().map(scored).collect()
}
