//! [`Membership`]: this process among the others.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chitchat::{Chitchat, ChitchatConfig, ChitchatHandle, ChitchatId, FailureDetectorConfig, ProtocolVersion};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::config::MembershipConfig;
use crate::error::MembershipError;
use crate::member::{self, Member, Phase, ShardKey, ShardReport};
use crate::members::{LostMember, Members};
use crate::signed_socket::SignedTransport;

/// A member is lost when it was not heard of for so many times the mean time between two signs of it.
const PHI: f64 = 8.0;
/// How long a lost member is remembered.
const REMEMBER_LOST: Duration = Duration::from_secs(3600);
/// How long it is remembered that a key was withdrawn: longer than two members fail to reach each other and go on.
const REMEMBER_WITHDRAWN: Duration = Duration::from_secs(600);
/// How often the list of members is made anew though nobody told anything.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// This process's part in the cluster. Leaves without a word when dropped; with one by [`Membership::leave`].
pub struct Membership {
    gossip: Arc<ChitchatHandle>,
    id: String,
    interval: Duration,
    gossip_address: SocketAddr,
    members: watch::Receiver<Arc<Members>>,
    told: Arc<Notify>,
    watcher: JoinHandle<()>,
}

impl Membership {
    /// Joins: binds the address for gossip and begins to gossip with the seeds.
    ///
    /// # Errors
    /// [`MembershipError::Gossip`] where the address cannot be bound.
    pub async fn start(config: MembershipConfig) -> Result<Self, MembershipError> {
        let listen = config.gossip_listen;
        let failed = |reason: String| MembershipError::Gossip { address: listen, reason };
        let bound = UdpSocket::bind(listen).and_then(|socket| {
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        });
        let (socket, address) = bound.map_err(|error| failed(error.to_string()))?;
        let advertise = config.gossip_advertise.unwrap_or(address);
        // Tells this start from earlier ones. Should the clock have been set back, a live member still counts before a lost
        // one of its name.
        #[allow(clippy::disallowed_methods)]
        let generation = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let told = [
            (member::ROLE, config.role.as_str()),
            (member::ADDRESS, &config.address),
            (member::ZONE, &config.zone),
            (member::VERSION, &config.version),
            (member::PHASE, Phase::Up.as_str()),
        ];
        let told = told.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let gossip = ChitchatConfig {
            chitchat_id: ChitchatId::new(config.id.clone(), generation, advertise),
            cluster_id: config.cluster,
            gossip_interval: config.interval,
            listen_addr: listen,
            seed_nodes: config.seeds,
            failure_detector_config: FailureDetectorConfig {
                phi_threshold: PHI,
                initial_interval: config.interval * 2,
                max_interval: config.interval * 10,
                dead_node_grace_period: REMEMBER_LOST,
                ..FailureDetectorConfig::default()
            },
            marked_for_deletion_grace_period: REMEMBER_WITHDRAWN,
            catchup_callback: None,
            extra_liveness_predicate: None,
            protocol_version: ProtocolVersion::V1,
        };
        let transport = SignedTransport { socket: Mutex::new(Some(socket)), secret: config.secret };
        let gossip =
            chitchat::spawn_chitchat(gossip, told, &transport).await.map_err(|error| failed(error.to_string()))?;
        let gossip = Arc::new(gossip);
        let told = Arc::new(Notify::new());
        let (publish, members) = watch::channel(Arc::default());
        let mut watcher = Watcher { gossip: Arc::clone(&gossip), missed: HashMap::new() };
        publish.send_replace(Arc::new(watcher.look().await));
        let watcher = tokio::spawn(watcher.run(publish, Arc::clone(&told)));
        Ok(Self { gossip, id: config.id, interval: config.interval, gossip_address: address, members, told, watcher })
    }

    /// This member's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it listens for gossip.
    pub fn gossip_address(&self) -> SocketAddr {
        self.gossip_address
    }

    /// The members, and word of every change.
    pub fn members(&self) -> watch::Receiver<Arc<Members>> {
        self.members.clone()
    }

    /// The members now.
    pub fn now(&self) -> Arc<Members> {
        Arc::clone(&self.members.borrow())
    }

    /// Tells how ready this member is for shards; none: it does not hold it any more.
    pub async fn announce(&self, reports: Vec<(ShardKey, Option<ShardReport>)>) {
        let tell = |chitchat: &mut Chitchat| {
            let state = chitchat.self_node_state();
            for (shard, report) in &reports {
                let key = member::shard_key(shard);
                match report {
                    Some(report) => state.set(key, report),
                    None => state.delete(&key),
                }
            }
        };
        self.gossip.with_chitchat(tell).await;
        self.told.notify_one();
    }

    /// Tells where this member is in its life.
    pub async fn set_phase(&self, phase: Phase) {
        self.set(member::PHASE, phase.as_str()).await;
    }

    /// Tells what is wrong with this member; empty: nothing.
    pub async fn set_problem(&self, problem: &str) {
        self.set(member::PROBLEM, problem).await;
    }

    async fn set(&self, key: &str, value: &str) {
        self.gossip.with_chitchat(|chitchat| chitchat.self_node_state().set(key, value)).await;
        self.told.notify_one();
    }

    /// Tells the others that this member goes, and gives the word time to spread.
    pub async fn leave(&self) {
        self.set_phase(Phase::Gone).await;
        tokio::time::sleep(self.interval * 3).await;
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.watcher.abort();
        self.gossip.abort();
    }
}

/// Makes lists of members of what is gossiped.
struct Watcher {
    gossip: Arc<ChitchatHandle>,
    /// When members were missed, by name and generation.
    missed: HashMap<(String, u64), Instant>,
}

impl Watcher {
    async fn run(mut self, publish: watch::Sender<Arc<Members>>, told: Arc<Notify>) {
        let mut changes = self.gossip.with_chitchat(|chitchat| chitchat.live_nodes_watcher()).await;
        let ended = self.gossip.termination_watcher();
        tokio::pin!(ended);
        let mut has_ended = false;
        loop {
            tokio::select! {
                changed = changes.changed(), if !has_ended => has_ended |= changed.is_err(),
                outcome = &mut ended, if !has_ended => {
                    has_ended = true;
                    let why = outcome.err().map(|error| error.to_string()).unwrap_or_default();
                    tracing::error!(why, "gossip has ended: this process sees no change of the cluster until it is started anew");
                }
                () = told.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let members = self.look().await;
            let publish_it = |held: &mut Arc<Members>| {
                let is_new = **held != members;
                if is_new {
                    *held = Arc::new(members);
                }
                is_new
            };
            publish.send_if_modified(publish_it);
        }
    }

    async fn look(&mut self) -> Members {
        let read = |chitchat: &mut Chitchat| {
            let live: Vec<ChitchatId> = chitchat.live_nodes().cloned().collect();
            let states = chitchat.node_states().iter();
            let members = states.filter_map(|(id, state)| {
                let member = Member::read(&id.node_id, id.generation_id, state.key_values())?;
                let is_live = live.contains(id) && member.phase != Phase::Gone;
                Some((member, is_live))
            });
            members.collect::<Vec<_>>()
        };
        let all = self.gossip.with_chitchat(read).await;
        // Of several of one name a live one counts, and of these the one that started last.
        let mut newest: HashMap<String, (Member, bool)> = HashMap::new();
        for (member, is_live) in all {
            match newest.get(&member.id) {
                Some((other, lives)) if (*lives, other.generation) > (is_live, member.generation) => {}
                _ => drop(newest.insert(member.id.clone(), (member, is_live))),
            }
        }
        let (mut members, now) = (Members::default(), Instant::now());
        let mut missed = HashMap::new();
        for (member, is_live) in newest.into_values() {
            if is_live {
                members.live.push(Arc::new(member));
            } else {
                let key = (member.id.clone(), member.generation);
                let since = self.missed.get(&key).copied().unwrap_or(now);
                missed.insert(key, since);
                members.lost.push(LostMember { member: Arc::new(member), since });
            }
        }
        self.missed = missed;
        members.live.sort_by(|a, b| a.id.cmp(&b.id));
        members.lost.sort_by(|a, b| a.member.id.cmp(&b.member.id));
        members
    }
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
