//! Log entries on their way to other nodes. A push is a hint: what is lost or does not fit, the others read from the log.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use antiphon_membership::{Dialer, NodeClient};
use antiphon_proto::internal::{PushEntriesRequest, ShardRef};
use antiphon_proto::store::LogEntry;
use arc_swap::ArcSwap;
use prost::Message;
use tokio::sync::mpsc;
use tonic::Request;

/// Pushes that wait for one node.
const MAX_WAITING: usize = 4096;
/// Bytes of them.
const MAX_WAITING_BYTES: u64 = 32 << 20;
/// Bytes sent at once.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// How long a node may take to take them.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What one shard pushes.
#[derive(Clone)]
struct Push {
    shard: ShardRef,
    /// An entry and its position; none where only the manifest is news.
    entry: Option<(u64, Arc<LogEntry>)>,
    manifest_version: u64,
    bytes: u64,
}

/// The way to one node.
#[derive(Clone)]
struct Peer {
    pushes: mpsc::Sender<Push>,
    waiting: Arc<AtomicU64>,
}

impl Peer {
    fn start(client: NodeClient) -> Self {
        let (pushes, taken) = mpsc::channel(MAX_WAITING);
        let waiting = Arc::new(AtomicU64::new(0));
        tokio::spawn(send_all(client, taken, Arc::clone(&waiting)));
        Self { pushes, waiting }
    }

    fn offer(&self, push: Push) {
        let bytes = push.bytes;
        let waiting = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        if waiting + bytes > MAX_WAITING_BYTES || self.pushes.try_send(push).is_err() {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// The ways to the nodes of a cluster, shared by all shards; made when first needed, and dropped when no shard does.
#[derive(Default)]
pub(crate) struct Peers {
    peers: HashMap<String, Peer>,
}

impl Peers {
    /// Directs a shard's outbox to these addresses.
    pub(crate) fn direct(&mut self, outbox: &Outbox, addresses: &[&str], dialer: &Dialer) {
        let mut targets = Vec::with_capacity(addresses.len());
        for address in addresses {
            if let Some(peer) = self.peers.get(*address) {
                targets.push(peer.clone());
                continue;
            }
            match dialer.node(address) {
                Ok(client) => {
                    let peer = Peer::start(client);
                    self.peers.insert((*address).to_owned(), peer.clone());
                    targets.push(peer);
                }
                Err(error) => tracing::warn!(%error, "a node cannot be told of writes"),
            }
        }
        outbox.targets.store(Arc::new(targets));
    }

    /// Lets go of the ways to nodes that are not among `addresses`.
    pub(crate) fn keep(&mut self, addresses: &[&str]) {
        self.peers.retain(|address, _| addresses.contains(&address.as_str()));
    }
}

/// Where one shard's pushes go.
pub(crate) struct Outbox {
    shard: ShardRef,
    targets: ArcSwap<Vec<Peer>>,
}

impl Outbox {
    /// Goes nowhere yet.
    pub(crate) fn new(collection_uid: &str, shard: u32) -> Self {
        let shard = ShardRef { collection_uid: collection_uid.to_owned(), shard, schema_version: 0 };
        Self { shard, targets: ArcSwap::default() }
    }

    /// Pushes an entry that is in the log, and the manifest that the view goes by.
    pub(crate) fn entry(&self, seq: u64, entry: &LogEntry, manifest_version: u64) {
        let targets = self.targets.load();
        if targets.is_empty() {
            return;
        }
        let bytes = entry.encoded_len() as u64;
        let entry = Some((seq, Arc::new(entry.clone())));
        self.offer(&targets, Push { shard: self.shard.clone(), entry, manifest_version, bytes });
    }

    /// Tells that a manifest is in force.
    pub(crate) fn manifest(&self, manifest_version: u64) {
        let push = Push { shard: self.shard.clone(), entry: None, manifest_version, bytes: 64 };
        self.offer(&self.targets.load(), push);
    }

    fn offer(&self, targets: &[Peer], push: Push) {
        for peer in targets {
            peer.offer(push.clone());
        }
    }
}

async fn send_all(client: NodeClient, mut pushes: mpsc::Receiver<Push>, waiting: Arc<AtomicU64>) {
    let mut client = client;
    let mut batch = Vec::new();
    while pushes.recv_many(&mut batch, MAX_WAITING).await > 0 {
        for request in join(&mut batch, &waiting) {
            let mut request = Request::new(request);
            request.set_timeout(TIMEOUT);
            if let Ok(Err(error)) = tokio::time::timeout(TIMEOUT, client.push_entries(request)).await {
                tracing::debug!(%error, "a push was lost");
            }
        }
    }
}

/// Joins what follows on each other, in one shard, into few requests.
fn join(batch: &mut Vec<Push>, waiting: &AtomicU64) -> Vec<PushEntriesRequest> {
    let mut requests: Vec<(PushEntriesRequest, usize)> = Vec::new();
    for push in batch.drain(..) {
        waiting.fetch_sub(push.bytes, Ordering::Relaxed);
        let last = requests.iter_mut().rev().find(|(request, _)| request.shard.as_ref() == Some(&push.shard));
        let follows = |request: &PushEntriesRequest, bytes: usize| match &push.entry {
            None => true,
            Some(_) if request.entries.is_empty() => true,
            Some((seq, _)) => *seq == request.first_seq + request.entries.len() as u64 && bytes < MAX_BATCH_BYTES,
        };
        let request = match last {
            Some((request, bytes)) if follows(request, *bytes) => {
                *bytes += push.bytes as usize;
                request
            }
            _ => {
                let request = PushEntriesRequest { shard: Some(push.shard.clone()), ..PushEntriesRequest::default() };
                requests.push((request, push.bytes as usize));
                let Some((request, _)) = requests.last_mut() else { continue };
                request
            }
        };
        request.manifest_version = request.manifest_version.max(push.manifest_version);
        if let Some((seq, entry)) = push.entry {
            if request.entries.is_empty() {
                request.first_seq = seq;
            }
            request.entries.push(Arc::unwrap_or_clone(entry));
        }
    }
    requests.into_iter().map(|(request, _)| request).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn push(shard: u32, seq: u64, manifest_version: u64) -> Push {
        let entry = (seq > 0).then(|| (seq, Arc::new(LogEntry { nonce: vec![seq as u8], ..LogEntry::default() })));
        let shard = ShardRef { collection_uid: "u".into(), shard, schema_version: 0 };
        Push { shard, entry, manifest_version, bytes: 1 }
    }

    #[test]
    fn entries_that_follow_each_other_go_together_and_gaps_do_not() {
        let waiting = AtomicU64::new(7);
        let mut batch = vec![
            push(0, 4, 1),
            push(1, 9, 1),
            push(0, 5, 1),
            push(0, 0, 2),
            push(0, 7, 2),
            push(1, 0, 3),
            push(0, 8, 2),
        ];
        let requests = join(&mut batch, &waiting);
        let shapes: Vec<_> = requests
            .iter()
            .map(|request| {
                let nonces: Vec<u8> = request.entries.iter().map(|entry| entry.nonce[0]).collect();
                (request.shard.as_ref().unwrap().shard, request.first_seq, nonces, request.manifest_version)
            })
            .collect();
        assert_eq!(shapes, [(0, 4, vec![4, 5], 2), (1, 9, vec![9], 3), (0, 7, vec![7, 8], 2)]);
        assert_eq!(waiting.load(Ordering::Relaxed), 0);
    }
}
