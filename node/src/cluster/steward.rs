//! The steward of a node's shards: opens those that the node is to hold, tells the others what it serves, and lets go of
//! what others hold by now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use antiphon_membership::{Dialer, Members, Membership, ShardKey, ShardReport, Stage, placement};
use antiphon_proto::internal::ShardRef;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::Peers;
use crate::node::Node;
use crate::shard::Shard;

/// How often the steward looks though nothing changed: positions move, collections come.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Shards that are opened at once.
const OPEN_AT_ONCE: usize = 4;
/// How long a shard that cannot be opened waits before it is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long all that are to hold a shard must have served it before another lets go of it.
const SURPLUS_FOR: Duration = Duration::from_secs(5);
/// How long a shard stays open after it was said that it is not served any more: coordinators hear of it late.
const LINGER: Duration = Duration::from_secs(5);
/// How long a copy on a lost node is waited for.
const REPLACE_AFTER: Duration = Duration::from_secs(60);

/// What the catalog says of the shards that exist: how many copies each has.
pub(crate) type Wanted = BTreeMap<ShardKey, usize>;

/// Sees to the shards of one node.
pub(crate) struct Steward {
    node: Weak<Node>,
    membership: Arc<Membership>,
    dialer: Dialer,
    peers: Peers,
    opening: BTreeMap<ShardKey, JoinHandle<Result<(), String>>>,
    /// What went wrong with shards, and when they are tried again.
    failed: BTreeMap<ShardKey, (String, Instant)>,
    announced: BTreeMap<ShardKey, ShardReport>,
    surplus: BTreeMap<ShardKey, Instant>,
    leaving: BTreeMap<ShardKey, Instant>,
    permits: Arc<Semaphore>,
}

impl Steward {
    /// Begins. Ends with the node.
    pub(crate) fn start(node: &Arc<Node>, membership: Arc<Membership>, dialer: Dialer) -> JoinHandle<()> {
        let steward = Self {
            node: Arc::downgrade(node),
            membership,
            dialer,
            peers: Peers::default(),
            opening: BTreeMap::new(),
            failed: BTreeMap::new(),
            announced: BTreeMap::new(),
            surplus: BTreeMap::new(),
            leaving: BTreeMap::new(),
            permits: Arc::new(Semaphore::new(OPEN_AT_ONCE)),
        };
        tokio::spawn(steward.run())
    }

    async fn run(mut self) {
        let mut members = self.membership.members();
        loop {
            let now = Arc::clone(&members.borrow_and_update());
            let Some(node) = self.node.upgrade() else { return };
            self.look(&node, &now).await;
            drop(node);
            tokio::select! {
                changed = members.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn look(&mut self, node: &Arc<Node>, members: &Members) {
        let wanted = node.wanted();
        let own = self.membership.id().to_owned();
        let is_mine = |held: &[Arc<antiphon_membership::Member>]| held.iter().any(|member| member.id == own);
        self.take_in_opened().await;
        let open: BTreeMap<ShardKey, Arc<Shard>> = node.open_shards().await;
        for (key, copies) in &wanted {
            if is_mine(&placement::holders(members, key, *copies, REPLACE_AFTER)) {
                self.surplus.remove(key);
                self.leaving.remove(key);
                if !open.contains_key(key) {
                    self.open(node, key);
                }
            }
        }
        self.let_go(node, members, &wanted, &open).await;
        self.direct(members, &open);
        self.announce(&wanted, &open).await;
    }

    /// Opens a shard in the background.
    fn open(&mut self, node: &Arc<Node>, key: &ShardKey) {
        let waits = self.failed.get(key).is_some_and(|(_, retry_at)| Instant::now() < *retry_at);
        if waits || self.opening.contains_key(key) {
            return;
        }
        let shard = ShardRef { collection_uid: key.0.clone(), shard: key.1, schema_version: 0 };
        let (node, permits) = (Arc::clone(node), Arc::clone(&self.permits));
        let opening = tokio::spawn(async move {
            let _permit = permits.acquire_owned().await.map_err(|error| error.to_string())?;
            node.shard(&shard).await.map(drop).map_err(|error| error.to_string())
        });
        self.opening.insert(key.clone(), opening);
    }

    async fn take_in_opened(&mut self) {
        let done: Vec<ShardKey> =
            self.opening.iter().filter(|(_, task)| task.is_finished()).map(|(key, _)| key.clone()).collect();
        for key in done {
            let Some(task) = self.opening.remove(&key) else { continue };
            match task.await.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(()) => drop(self.failed.remove(&key)),
                Err(problem) => {
                    tracing::error!(
                        collection = key.0,
                        shard = key.1,
                        problem,
                        "a shard cannot be opened and is tried again"
                    );
                    self.failed.insert(key, (problem, Instant::now() + RETRY_AFTER));
                }
            }
        }
    }

    /// Lets go of shards that all who are to hold them serve: says so first, closes them later.
    async fn let_go(
        &mut self,
        node: &Arc<Node>,
        members: &Members,
        wanted: &Wanted,
        open: &BTreeMap<ShardKey, Arc<Shard>>,
    ) {
        let own = self.membership.id();
        for key in open.keys() {
            let holders = wanted
                .get(key)
                .map(|copies| placement::holders(members, key, *copies, REPLACE_AFTER))
                .unwrap_or_default();
            let is_surplus = !holders.is_empty()
                && holders.iter().all(|member| member.id != own)
                && holders.iter().all(|member| member.serves(key));
            if !is_surplus {
                self.surplus.remove(key);
                self.leaving.remove(key);
                continue;
            }
            let since = *self.surplus.entry(key.clone()).or_insert_with(Instant::now);
            if since.elapsed() >= SURPLUS_FOR {
                self.leaving.entry(key.clone()).or_insert_with(Instant::now);
            }
        }
        let due: Vec<ShardKey> =
            self.leaving.iter().filter(|(_, since)| since.elapsed() >= LINGER).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.leaving.remove(&key);
            self.surplus.remove(&key);
            tracing::info!(collection = key.0, shard = key.1, "let go of a shard that other nodes hold");
            node.close(&key).await;
        }
        self.surplus.retain(|key, _| open.contains_key(key));
        self.leaving.retain(|key, _| open.contains_key(key));
    }

    /// Tells each shard whether it is the owner's, and where its writes are pushed.
    fn direct(&mut self, members: &Members, open: &BTreeMap<ShardKey, Arc<Shard>>) {
        let own = self.membership.id();
        let mut used = BTreeSet::new();
        for (key, shard) in open {
            let serving = placement::serving(members, key);
            shard.set_owner(serving.first().is_none_or(|owner| owner.id == own));
            let others: Vec<&str> =
                serving.iter().filter(|member| member.id != own).map(|member| member.address.as_str()).collect();
            self.peers.direct(shard.outbox(), &others, &self.dialer);
            used.extend(others.into_iter().map(str::to_owned));
        }
        self.peers.keep(&used.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Announces what changed.
    async fn announce(&mut self, wanted: &Wanted, open: &BTreeMap<ShardKey, Arc<Shard>>) {
        let mut reports: BTreeMap<ShardKey, ShardReport> = BTreeMap::new();
        let opening = |problem: &str| ShardReport {
            stage: Stage::Opening,
            seq: 0,
            manifest_version: 0,
            problem: problem.to_owned(),
        };
        for key in self.opening.keys() {
            reports.insert(key.clone(), opening(""));
        }
        for (key, (problem, _)) in &self.failed {
            reports.insert(key.clone(), opening(problem));
        }
        for (key, shard) in open.iter().filter(|(key, _)| wanted.contains_key(*key) && !self.leaving.contains_key(*key))
        {
            let view = shard.current();
            let problem = match view.quarantined.len() {
                0 => String::new(),
                count => format!("{count} damaged segments are set aside"),
            };
            let report =
                ShardReport { stage: Stage::Serving, seq: view.seq, manifest_version: view.manifest_version, problem };
            reports.insert(key.clone(), report);
        }
        self.failed.retain(|key, _| wanted.contains_key(key));
        let mut changes: Vec<(ShardKey, Option<ShardReport>)> = reports
            .iter()
            .filter(|(key, report)| self.announced.get(*key) != Some(report))
            .map(|(key, report)| (key.clone(), Some(report.clone())))
            .collect();
        changes.extend(self.announced.keys().filter(|key| !reports.contains_key(*key)).map(|key| (key.clone(), None)));
        if !changes.is_empty() {
            self.membership.announce(changes).await;
        }
        self.announced = reports;
    }
}
