//! A cluster under writes, deletions and searches while its nodes and coordinators are killed, stopped, cut off from each
//! other and started again, and its store refuses writes, at random: nothing that was acknowledged is lost or undone, no
//! search answers from a view older than asked, pages keep the page law within a snapshot, and all copies agree in the end.
//!
//! ANTIPHON_TEST_FAULT_SECONDS says for how long; a minute unless it does. ANTIPHON_TEST_SEED chooses what happens when.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::key::shard_of;
use antiphon_proto::v1::{Collection, Consistency, Metric, SearchOptions, SearchResponse};
use antiphon_tests::client::Client;
use antiphon_tests::cluster::{
    Cluster, ClusterBuilder, DIMENSIONS, Mounted, ServerProcess, Workload, all_rows, document_of, flush_writes,
    node_client, read_state, vector_of, verify_answers,
};
use antiphon_tests::model::fold;
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;
use rand::prelude::*;
use rand::rngs::StdRng;
use tokio::sync::RwLock;
use tokio::task::JoinSet;
use tonic::Status;

const SHARDS: u32 = 4;
const NODES: usize = 3;
const COORDINATORS: usize = 2;
/// How long a request is waited for.
const TIMEOUT: Duration = Duration::from_secs(8);
/// How often everything is healed and held against what was promised.
const VERIFY_EVERY: Duration = Duration::from_secs(20);

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// A node is killed and started again.
    KillNode(usize),
    /// A node is stopped in its tracks for a while.
    PauseNode(usize),
    /// A node is told to stop, and started again.
    RestartNode(usize),
    /// Two nodes, or a node and a coordinator, don't reach each other; or only one way.
    Cut(usize, usize, bool),
    KillCoordinator(usize),
    PauseCoordinator(usize),
    /// The store takes no writes.
    StoreRefuses,
}

impl Fault {
    /// The processes that it befalls, nodes before coordinators.
    fn victims(self) -> Vec<usize> {
        match self {
            Self::KillNode(node) | Self::PauseNode(node) | Self::RestartNode(node) => vec![node],
            Self::KillCoordinator(index) | Self::PauseCoordinator(index) => vec![NODES + index],
            Self::Cut(..) | Self::StoreRefuses => vec![],
        }
    }
}

struct Faults {
    cluster: Cluster,
    store: Mounted,
    active: Vec<(Fault, Instant)>,
    done: u64,
}

impl Faults {
    fn process(&mut self, place: usize) -> &mut ServerProcess {
        match place.checked_sub(NODES) {
            None => &mut self.cluster.nodes[place],
            Some(index) => &mut self.cluster.coordinators[index],
        }
    }

    /// Something that can happen now.
    fn choose(&self, random: &mut Random) -> Option<Fault> {
        let (node, coordinator) = (random.below(NODES), random.below(COORDINATORS));
        let fault = match random.below(14) {
            0..3 => Fault::KillNode(node),
            3..6 => Fault::PauseNode(node),
            6..7 => Fault::RestartNode(node),
            7..10 => {
                let other = random.below(NODES + COORDINATORS);
                Fault::Cut(node, other, random.chance(0.5))
            }
            10..12 => Fault::KillCoordinator(coordinator),
            12..13 => Fault::PauseCoordinator(coordinator),
            _ => Fault::StoreRefuses,
        };
        let is_possible = match fault {
            Fault::Cut(one, other, _) => {
                one != other && self.cluster.nodes[one].host().is_some_and(|host| host.can_be_cut_off())
            }
            Fault::StoreRefuses => self.store.can_refuse(),
            _ => true,
        };
        let active: Vec<Fault> = self.active.iter().map(|(fault, _)| *fault).collect();
        let overlaps = |other: &Fault| match (*other, fault) {
            (Fault::Cut(a, b, _), Fault::Cut(c, d, _)) => (a, b) == (c, d) || (a, b) == (d, c),
            (Fault::StoreRefuses, Fault::StoreRefuses) => true,
            _ => other.victims().iter().any(|victim| fault.victims().contains(victim)),
        };
        (is_possible && !active.iter().any(overlaps)).then_some(fault)
    }

    async fn begin(&mut self, fault: Fault, until: Instant, workload: &Workload) {
        self.done += 1;
        for victim in fault.victims().into_iter().filter(|victim| *victim >= NODES) {
            workload.down(victim - NODES);
        }
        match fault {
            Fault::KillNode(_) | Fault::KillCoordinator(_) => self.process(fault.victims()[0]).kill(),
            Fault::PauseNode(_) | Fault::PauseCoordinator(_) => self.process(fault.victims()[0]).pause(),
            Fault::RestartNode(node) => self.process(node).terminate(),
            Fault::Cut(one, other, both_ways) => {
                let [one, other] = [one, other].map(|place| self.process(place).host().unwrap().clone());
                one.cut_off_from(&other);
                if both_ways {
                    other.cut_off_from(&one);
                }
            }
            Fault::StoreRefuses => {
                if !self.store.refuse_writes(true).await {
                    return;
                }
            }
        }
        self.active.push((fault, until));
    }

    async fn end(&mut self, fault: Fault, workload: &Workload) {
        match fault {
            Fault::KillNode(_) | Fault::KillCoordinator(_) => self.process(fault.victims()[0]).start().await,
            Fault::PauseNode(_) | Fault::PauseCoordinator(_) => self.process(fault.victims()[0]).resume(),
            Fault::RestartNode(node) => {
                // It may wait for others to take its shards, which may be in no state to.
                let node = self.process(node);
                assert!(node.ended(Duration::from_secs(60)).await.success());
                node.start().await;
            }
            Fault::Cut(one, other, both_ways) => {
                let [one, other] = [one, other].map(|place| self.process(place).host().unwrap().clone());
                one.reach_again(&other);
                if both_ways {
                    other.reach_again(&one);
                }
            }
            Fault::StoreRefuses => assert!(self.store.refuse_writes(false).await),
        }
        for victim in fault.victims().into_iter().filter(|victim| *victim >= NODES) {
            workload.up(victim - NODES, self.process(victim).client());
        }
    }

    /// Ends what is due, or everything.
    async fn heal(&mut self, all: bool, workload: &Workload) {
        let now = Instant::now();
        let (due, active) = self.active.drain(..).partition(|(_, until)| all || *until <= now);
        self.active = active;
        // What is refused or cut off keeps others from ending.
        let mut due: Vec<(Fault, Instant)> = due;
        due.sort_by_key(|(fault, _)| !fault.victims().is_empty());
        for (fault, _) in due {
            self.end(fault, workload).await;
        }
    }

    /// Once everything is healed and no request is under way: sees to it that nothing that was sent before can take effect
    /// any more, and holds everything against what was promised.
    async fn verify(&mut self, workload: &Workload, uid: &str, random: &mut Random) {
        // Coordinators are killed with what they may still be about to send; nodes do or drop what they were sent.
        for index in 0..COORDINATORS {
            workload.down(index);
            self.cluster.coordinators[index].kill();
        }
        for node in &self.cluster.nodes {
            for shard in 0..SHARDS {
                flush_writes(&node_client(node.url()), uid, shard).await.unwrap();
            }
        }
        for index in 0..COORDINATORS {
            self.cluster.coordinators[index].start().await;
            workload.up(index, self.cluster.client(index));
        }
        workload.all_over();
        let client = self.cluster.client(random.below(COORDINATORS));
        self.cluster.whole(&client).await;
        let state = read_state(&client, "c").await.unwrap();
        let keys = workload.oracle().keys();
        let mut faults = workload.oracle().check(&state, |key| shard_of(&fold(key), SHARDS));
        faults.extend(verify_answers(&client, "c", &keys, &state, &mut random.rng).await.unwrap());
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
        workload.assert_no_faults();
        workload.oracle().settle(&state);
        self.copies_agree(&client, uid).await;
    }

    /// All copies of a shard show the same documents at the same position.
    async fn copies_agree(&self, client: &Client, uid: &str) {
        let described = client.describe_cluster().await.unwrap();
        for shard in described.shards.iter().filter(|shard| shard.collection == "c") {
            assert!(shard.replicas.len() >= 2, "{shard:?}");
            let mut shown = Vec::new();
            for replica in &shard.replicas {
                let (view, rows) = all_rows(&node_client(&replica.node_address), uid, shard.shard).await.unwrap();
                shown.push((view.seq, rows));
            }
            assert!(shown.windows(2).all(|pair| pair[0] == pair[1]), "copies of shard {} differ", shard.shard);
        }
    }
}

/// Reads pages of snapshots by way of all coordinators, and writes and reads one document of each shard over and over to see
/// how long that can't be done.
struct Probes {
    tasks: JoinSet<()>,
    clients: Arc<Vec<Client>>,
    pause: Arc<RwLock<()>>,
    tally: Arc<Tally>,
}

#[derive(Default)]
struct Tally {
    stop: AtomicU64,
    pages: AtomicU64,
    expired: AtomicU64,
    failed: AtomicU64,
    /// Longest time without a success, by what was tried.
    gaps: Mutex<std::collections::BTreeMap<String, Duration>>,
    faults: Mutex<Vec<String>>,
}

impl Probes {
    fn start(cluster: &Cluster, rng: &mut StdRng) -> Self {
        let clients = Arc::new((0..COORDINATORS).map(|index| cluster.client(index)).collect::<Vec<_>>());
        let (pause, tally) = (Arc::new(RwLock::new(())), Arc::new(Tally::default()));
        let mut probes = Self { tasks: JoinSet::new(), clients, pause, tally };
        for _ in 0..2 {
            let rng = StdRng::seed_from_u64(rng.random());
            probes.tasks.spawn(read_pages(Arc::clone(&probes.clients), Arc::clone(&probes.tally), rng));
        }
        for shard in 0..SHARDS {
            let key = (0..).map(|n| format!("p{n}")).find(|key| shard_of(&fold(key), SHARDS) == shard).unwrap();
            for is_write in [true, false] {
                let (clients, pause) = (Arc::clone(&probes.clients), Arc::clone(&probes.pause));
                probes.tasks.spawn(probe(clients, pause, Arc::clone(&probes.tally), key.clone(), is_write));
            }
        }
        probes
    }

    async fn stop(mut self) -> Arc<Tally> {
        self.tally.stop.store(1, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        let faults = self.tally.faults.lock().unwrap();
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
        drop(faults);
        self.tally
    }
}

/// Writes, or reads, one document again and again, by one coordinator or the other.
async fn probe(clients: Arc<Vec<Client>>, pause: Arc<RwLock<()>>, tally: Arc<Tally>, key: String, is_write: bool) {
    let name = format!("{} {key}", if is_write { "write" } else { "read" });
    let mut last = Instant::now();
    for turn in 0_usize.. {
        if tally.stop.load(Ordering::Relaxed) > 0 {
            return;
        }
        if pause.try_read().is_err() {
            let _ = pause.read().await;
            last = Instant::now();
        }
        let client = &clients[turn % clients.len()];
        let call = async {
            if is_write {
                client.upsert("probes", vec![document_of(&key, turn as u64)]).await.is_ok()
            } else {
                client.get("probes", &[&key]).await.is_ok()
            }
        };
        if tokio::time::timeout(Duration::from_secs(2), call).await.unwrap_or(false) && pause.try_read().is_ok() {
            let gap = last.elapsed();
            let mut gaps = tally.gaps.lock().unwrap();
            let longest = gaps.entry(name.clone()).or_default();
            *longest = gap.max(*longest);
            last = Instant::now();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn read_pages(clients: Arc<Vec<Client>>, tally: Arc<Tally>, mut rng: StdRng) {
    while tally.stop.load(Ordering::Relaxed) == 0 {
        match read_one_snapshot(&clients, &tally, &mut rng).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => tally.faults.lock().unwrap().push(fault),
            Err(status) => {
                match ApiError::from_status(&status).kind() {
                    ErrorKind::SnapshotExpired => tally.expired.fetch_add(1, Ordering::Relaxed),
                    _ => tally.failed.fetch_add(1, Ordering::Relaxed),
                };
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Pages of one snapshot by way of any coordinator: none repeats a match, and the same page is the same again.
async fn read_one_snapshot(clients: &[Client], tally: &Tally, rng: &mut StdRng) -> Result<Result<(), String>, Status> {
    let vector = vector_of("query", rng.random_range(0..50));
    let (mut snapshot, mut seen, mut first) = (String::new(), BTreeSet::new(), None::<SearchResponse>);
    for page in [1, 2, 3, 4, 1] {
        let client = clients.choose(rng).unwrap();
        let consistency = if rng.random_bool(0.5) { Consistency::Refresh } else { Consistency::Eventual };
        let options = SearchOptions {
            consistency: if snapshot.is_empty() { consistency as i32 } else { 0 },
            snapshot: snapshot.clone(),
            ..options("c", page, 15)
        };
        let call = client.search_hybrid(hybrid_search(&vector, "common", options));
        let Ok(answer) = tokio::time::timeout(TIMEOUT, call).await else {
            return Err(Status::deadline_exceeded("given up"));
        };
        let answer = answer?;
        tally.pages.fetch_add(1, Ordering::Relaxed);
        if answer.coverage.as_ref().is_none_or(|coverage| !coverage.failures.is_empty()) {
            return Ok(Err(format!("a page that does not cover all: {:?}", answer.coverage)));
        }
        match &first {
            None => {
                snapshot.clone_from(&answer.snapshot);
                first = Some(answer.clone());
            }
            Some(first) if page == 1 && first.matches != answer.matches => {
                return Ok(Err(format!("page 1 of one snapshot differs: {:?} {:?}", keys(first), keys(&answer))));
            }
            Some(_) if page == 1 => return Ok(Ok(())),
            Some(_) => {}
        }
        for found in &answer.matches {
            if !seen.insert(found.key.clone()) {
                return Ok(Err(format!("{} is on two pages of one snapshot", found.key)));
            }
        }
    }
    Ok(Ok(()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_loses_nothing_whatever_happens_to_it() {
    let seconds = std::env::var("ANTIPHON_TEST_FAULT_SECONDS").map_or(60, |given| given.parse().unwrap());
    let mut random = Random::seeded(rand::random());
    let store = Mounted::create();
    let cluster = ClusterBuilder::gossip(NODES, COORDINATORS)
        .store(&format!("file://{}", store.path().display()))
        .set("sealing.seal_rows", 60)
        .set("sealing.seal_age_s", 1)
        .set("merging.segments_per_tier", 2)
        .set("cluster.drain_s", 3)
        .start()
        .await;
    let client = cluster.client(0);
    let wanted = |name| Collection { replica_count: 2, ..collection(name, SHARDS, schema(DIMENSIONS, Metric::Cosine)) };
    let uid = client.create(wanted("c")).await.unwrap().uid;
    client.create(wanted("probes")).await.unwrap();
    cluster.whole(&client).await;
    let mut workload = Workload::start("c", 4, COORDINATORS, TIMEOUT, &mut random.rng);
    for index in 0..COORDINATORS {
        workload.up(index, cluster.client(index));
    }
    let probes = Probes::start(&cluster, &mut random.rng);
    let mut faults = Faults { cluster, store, active: Vec::new(), done: 0 };
    let (began, mut verified) = (Instant::now(), Instant::now());
    let mut verifications = 0;
    loop {
        let is_last = began.elapsed() >= Duration::from_secs(seconds);
        if is_last || verified.elapsed() >= VERIFY_EVERY {
            faults.heal(true, &workload).await;
            let paused = probes.pause.write().await;
            let workload_paused = workload.pause().await;
            faults.verify(&workload, &uid, &mut random).await;
            drop((paused, workload_paused));
            verified = Instant::now();
            verifications += 1;
        }
        if is_last {
            break;
        }
        tokio::time::sleep(Duration::from_millis(random.rng.random_range(50..600))).await;
        faults.heal(false, &workload).await;
        if faults.active.len() < 3
            && let Some(fault) = faults.choose(&mut random)
        {
            let until = Instant::now() + Duration::from_millis(random.rng.random_range(100..4000));
            faults.begin(fault, until, &workload).await;
        }
    }
    workload.stop().await;
    let tally = probes.stop().await;
    let (acknowledged, unknown) = workload.oracle().counts();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    eprintln!(
        "{} faults in {:?}; {acknowledged} writes acknowledged, {unknown} unknown; {} pages read, {} failed, {} expired; \
         {verifications} times everything was verified; longest without a success: {:?}",
        faults.done,
        began.elapsed(),
        count(&tally.pages),
        count(&tally.failed),
        count(&tally.expired),
        tally.gaps.lock().unwrap(),
    );
    assert!(faults.done > seconds / 4 && acknowledged > 5 * seconds as usize, "the test is too tame");
    assert!(count(&tally.pages) > 5 * seconds, "the test is too tame");
    // A snapshot is held for a minute by any copy that is left.
    assert!(count(&tally.expired) * 20 <= count(&tally.pages), "{} snapshots expired", count(&tally.expired));
}
