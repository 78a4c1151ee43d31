//! A cluster as its operators have it: nodes and coordinators that find each other, each on a host of its own, over one
//! store. What clients see while nodes die, are stopped, come and go.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::{Collection, Metric, SearchOptions, SearchResponse};
use antiphon_tests::client::{Client, kind_of};
use antiphon_tests::cluster::{
    Cluster, ClusterBuilder, DIMENSIONS, all_rows, document_of, node_client, shard_ref, vector_of,
};
use antiphon_tests::local::wait_until;
use antiphon_tests::sample::*;
use antiphon_tests::secure::dialer_with;
use tokio::task::JoinSet;
use tonic::{Code, Status};

const PATIENCE: Duration = Duration::from_secs(60);

async fn create(client: &Client, shards: u32, replicas: u32) -> String {
    let wanted = collection("c", shards, schema(DIMENSIONS, Metric::Cosine));
    client.create(Collection { replica_count: replicas, ..wanted }).await.unwrap().uid
}

async fn fill(client: &Client, keys: std::ops::Range<u64>) -> String {
    let documents = keys.map(|key| document_of(&format!("k{key}"), key)).collect();
    client.upsert("c", documents).await.unwrap().version
}

fn search_options(page: u32) -> SearchOptions {
    options("c", page, 12)
}

async fn search(client: &Client, options: SearchOptions) -> Result<SearchResponse, Status> {
    client.search_hybrid(hybrid_search(&vector_of("query", 0), "common", options)).await
}

/// The node that owns a shard.
async fn owner(client: &Client, shard: usize) -> String {
    let cluster = client.describe_cluster().await.unwrap();
    cluster.shards[shard].replicas.iter().find(|replica| replica.owner).unwrap().node_id.clone()
}

/// Answers without what may differ between two lives of one process.
fn pages_of(answers: &[SearchResponse]) -> Vec<Vec<(String, u64, u32)>> {
    let page = |answer: &SearchResponse| {
        answer.matches.iter().map(|found| (found.key.clone(), found.score.to_bits(), found.rank)).collect()
    };
    answers.iter().map(page).collect()
}

/// The first pages of one snapshot.
async fn pages(client: &Client, snapshot: &str) -> Vec<SearchResponse> {
    let mut answers = Vec::new();
    for page in 1..=4 {
        let options = SearchOptions { snapshot: snapshot.to_owned(), ..search_options(page) };
        answers.push(search(client, options).await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_are_on_distinct_nodes_follow_each_other_and_answer_alike() {
    let cluster = ClusterBuilder::gossip(3, 2).set("sealing.seal_age_s", 1).start().await;
    let (first, second) = (cluster.client(0), cluster.client(1));
    let uid = create(&first, 4, 2).await;
    let version = fill(&first, 0..600).await;
    // What one coordinator has written, the other shows from any copy.
    for _ in 0..20 {
        let options = SearchOptions { at_least: version.clone(), exact: true, ..options("c", 1, 700) };
        let answer = second.search_vector(vector_search(&vector_of("query", 0), options)).await.unwrap();
        assert_eq!(answer.matches.len(), 600);
    }
    cluster.whole(&first).await;
    let described = first.describe_cluster().await.unwrap();
    assert_eq!(described.nodes.len(), 5);
    assert!(described.nodes.iter().all(|node| node.reachable && node.problem.is_empty()), "{described:?}");
    for shard in &described.shards {
        let mut nodes: Vec<&str> = shard.replicas.iter().map(|replica| replica.node_id.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!((nodes.len(), shard.replica_count, shard.problem.as_str()), (2, 2, ""));
        assert_eq!(shard.replicas.iter().filter(|replica| replica.owner).count(), 1);
    }
    // Sealed by the owner, taken over by the others.
    wait_until(PATIENCE, || async {
        let described = first.describe_cluster().await.unwrap();
        described.shards.iter().flat_map(|shard| &shard.replicas).all(|replica| replica.num_live_rows == 0)
    })
    .await;
    let snapshot = search(&first, search_options(1)).await.unwrap().snapshot;
    let expected = pages(&first, &snapshot).await;
    for _ in 0..10 {
        assert_eq!(pages(&second, &snapshot).await, expected);
        assert_eq!(search(&first, search_options(2)).await.unwrap().matches, expected[1].matches);
    }
    for shard in 0..4 {
        let mut shown = Vec::new();
        for node in &described.shards[shard].replicas {
            let (view, rows) = all_rows(&node_client(&node.node_address), &uid, shard as u32).await.unwrap();
            shown.push((view.seq, rows));
        }
        assert!(shown[0] == shown[1], "the copies of shard {shard} differ");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_may_not_call_a_node_nor_join() {
    let mut cluster = ClusterBuilder::gossip(1, 1).start().await;
    let client = cluster.client(0);
    let uid = create(&client, 1, 1).await;
    let url = cluster.nodes[0].url();
    let stranger = dialer_with(None).node(url).unwrap();
    let request = || antiphon_proto::internal::DescribeShardRequest { shard: Some(shard_ref(&uid, 0)), refresh: false };
    let refused = stranger.clone().describe_shard(request()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert_eq!(kind_of(&refused), ErrorKind::TokenInvalid);
    let other = antiphon_membership::Secret::of_name("another cluster");
    let stranger = dialer_with(Some(other)).node(url).unwrap();
    assert_eq!(kind_of(&stranger.clone().describe_shard(request()).await.unwrap_err()), ErrorKind::TokenInvalid);
    node_client(url).describe_shard(request()).await.unwrap();
    // A coordinator that comes with another secret sees no nodes, and is seen by none.
    cluster.coordinators[0].kill();
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "not what the others have").unwrap();
    cluster.coordinators[0].add_args(&["--set", &format!("cluster.secret_file={}", secret.display())]);
    cluster.coordinators[0].start().await;
    let client = cluster.client(0);
    let refused = client.upsert("c", vec![document_of("a", 1)]).await.unwrap_err();
    assert_eq!(kind_of(&refused), ErrorKind::ShardUnavailable);
    assert_eq!(client.describe_cluster().await.unwrap().nodes.len(), 1);
}

/// Searches without a pause, and counts what failed.
struct Searching {
    tasks: JoinSet<()>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    failed: Arc<std::sync::Mutex<Vec<Status>>>,
}

impl Searching {
    /// `retries` UNAVAILABLE answers of a call are tried again.
    fn start(cluster: &Cluster, retries: usize) -> Self {
        let (stop, done, failed) = <(Arc<AtomicBool>, Arc<AtomicU64>, Arc<std::sync::Mutex<Vec<Status>>>)>::default();
        let mut tasks = JoinSet::new();
        for index in 0..4 {
            let client = cluster.client(index % cluster.coordinators.len());
            let (stop, done, failed) = (Arc::clone(&stop), Arc::clone(&done), Arc::clone(&failed));
            tasks.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let mut left = retries;
                    loop {
                        match search(&client, search_options(1)).await {
                            Ok(answer) => {
                                assert!(answer.coverage.unwrap().failures.is_empty());
                                done.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                            Err(status) if status.code() == Code::Unavailable && left > 0 => left -= 1,
                            Err(status) => {
                                failed.lock().unwrap().push(status);
                                break;
                            }
                        }
                    }
                }
            });
        }
        Self { tasks, stop, done, failed }
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends, and panics where any search failed.
    async fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        let failed = self.failed.lock().unwrap();
        assert!(failed.is_empty(), "{} of {} searches failed, the first: {:?}", failed.len(), self.done(), failed[0]);
        self.done()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_go_on_without_a_failed_call_when_an_owner_is_killed_and_writes_resume() {
    let mut cluster = ClusterBuilder::gossip(3, 2).set("sealing.seal_age_s", 1).start().await;
    let client = cluster.client(0);
    create(&client, 2, 2).await;
    fill(&client, 0..400).await;
    cluster.whole(&client).await;
    for kill in 0..3 {
        let snapshot = search(&client, search_options(1)).await.unwrap().snapshot;
        let before = pages_of(&pages(&client, &snapshot).await);
        let victim = cluster.node_named(&owner(&client, kill % 2).await);
        let searching = Searching::start(&cluster, 0);
        wait_until(PATIENCE, || async { searching.done() > 20 }).await;
        cluster.nodes[victim].kill();
        let killed = Instant::now();
        let mut failures = 0;
        while let Err(status) = client.upsert("c", vec![document_of("a", 1_000 + kill as u64)]).await {
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
            failures += 1;
        }
        let resumed = killed.elapsed();
        // The same pages from the copies that are left.
        assert_eq!(pages_of(&pages(&client, &snapshot).await), before);
        let done = searching.done();
        wait_until(PATIENCE, || async { searching.done() > done + 50 }).await;
        let searches = searching.stop().await;
        eprintln!("writes resumed after {resumed:?} and {failures} failures; {searches} searches, none failed");
        assert!(resumed < Duration::from_secs(3), "writes resumed after {resumed:?}");
        cluster.nodes[victim].start().await;
        cluster.whole(&client).await;
        assert_eq!(pages_of(&pages(&client, &snapshot).await), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_fails_no_call_that_is_tried_again_once() {
    let mut cluster = ClusterBuilder::gossip(3, 2).start().await;
    let client = cluster.client(0);
    create(&client, 3, 2).await;
    fill(&client, 0..300).await;
    cluster.whole(&client).await;
    let searching = Searching::start(&cluster, 1);
    let writing = Arc::new(AtomicBool::new(true));
    let writer = tokio::spawn({
        let (client, writing) = (client.clone(), Arc::clone(&writing));
        async move {
            let mut written = 0;
            while writing.load(Ordering::Relaxed) {
                let write = || client.upsert("c", (0..8).map(|key| document_of(&format!("w{key}"), written)).collect());
                match write().await {
                    Err(status) if status.code() == Code::Unavailable => drop(write().await.unwrap()),
                    outcome => drop(outcome.unwrap()),
                }
                written += 1;
            }
            written
        }
    });
    for node in 0..3 {
        cluster.nodes[node].terminate();
        assert!(cluster.nodes[node].ended(Duration::from_secs(40)).await.success());
        cluster.nodes[node].start().await;
        cluster.whole(&client).await;
    }
    writing.store(false, Ordering::Relaxed);
    let (writes, searches) = (writer.await.unwrap(), searching.stop().await);
    eprintln!("{writes} writes and {searches} searches, none failed");
    assert!(writes > 20 && searches > 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_come_and_go_take_shards_over_and_hand_them_back() {
    let mut cluster = ClusterBuilder::gossip(3, 1).start().await;
    let client = cluster.client(0);
    for node in [1, 2] {
        cluster.nodes[node].kill();
    }
    create(&client, 8, 1).await;
    fill(&client, 0..400).await;
    cluster.whole(&client).await;
    let holders = |described: antiphon_proto::v1::DescribeClusterResponse| {
        let mut holders: Vec<String> = described
            .shards
            .iter()
            .flat_map(|shard| shard.replicas.iter().filter(|replica| replica.serving))
            .map(|replica| replica.node_id.clone())
            .collect();
        holders.sort_unstable();
        holders.dedup();
        holders
    };
    assert_eq!(holders(client.describe_cluster().await.unwrap()), ["node-0"]);
    let searching = Searching::start(&cluster, 1);
    for node in [1, 2] {
        cluster.nodes[node].start().await;
    }
    wait_until(PATIENCE, || async { holders(client.describe_cluster().await.unwrap()).len() == 3 }).await;
    // One copy each in the end: who held them lets go.
    cluster.whole(&client).await;
    assert_eq!(client.count("c").await.unwrap(), 400);
    for node in [0, 1] {
        cluster.nodes[node].terminate();
        assert!(cluster.nodes[node].ended(Duration::from_secs(40)).await.success());
    }
    wait_until(PATIENCE, || async { holders(client.describe_cluster().await.unwrap()) == ["node-2"] }).await;
    assert_eq!(client.count("c").await.unwrap(), 400);
    searching.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_pages_from_one_node_and_from_three() {
    let mut cluster = ClusterBuilder::gossip(3, 1).set("sealing.seal_age_s", 1).start().await;
    let client = cluster.client(0);
    create(&client, 3, 2).await;
    fill(&client, 0..500).await;
    cluster.whole(&client).await;
    let snapshot = search(&client, search_options(1)).await.unwrap().snapshot;
    let of_three = pages_of(&pages(&client, &snapshot).await);
    for node in [0, 1] {
        cluster.nodes[node].terminate();
        assert!(cluster.nodes[node].ended(Duration::from_secs(40)).await.success());
    }
    let of_one = pages_of(&pages(&client, &snapshot).await);
    assert_eq!(of_one, of_three);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_disks_may_be_lost_at_once() {
    let mut cluster = ClusterBuilder::gossip(2, 1).set("sealing.seal_age_s", 1).start().await;
    let client = cluster.client(0);
    create(&client, 2, 2).await;
    fill(&client, 0..300).await;
    for node in &mut cluster.nodes {
        node.kill();
    }
    cluster.lose_disks();
    for node in &mut cluster.nodes {
        node.start().await;
    }
    cluster.whole(&client).await;
    assert_eq!(client.count("c").await.unwrap(), 300);
    fill(&client, 300..310).await;
    assert_eq!(client.count("c").await.unwrap(), 310);
}
