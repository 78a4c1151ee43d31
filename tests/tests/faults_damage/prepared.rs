//! The store that is damaged: collection `two` with two shards, `one` with one; several segments a shard, with graphs and
//! tombstones, and log entries beyond.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use antiphon_node::{Node, NodeConfig, NodeError};
use antiphon_proto::v1::{Metric, Partial};
use antiphon_store::{CatalogStore, Store, StoreErrorKind};
use antiphon_tests::client::Client;
use antiphon_tests::cluster::{DIMENSIONS, document_of};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::sample::*;
use tempfile::TempDir;

use crate::answers::{Answer, Answers, ask};

pub(crate) const KEYS: u64 = 60;
/// Segments of each shard.
pub(crate) const ROUNDS: u64 = 3;
/// Log entries of each shard beyond its segments.
pub(crate) const TAIL: u64 = 3;

pub(crate) struct Prepared {
    pub(crate) folder: TempDir,
    /// The collections as they should be.
    pub(crate) right: BTreeMap<&'static str, Answers>,
    /// `one` before its last write.
    pub(crate) before_last: Answers,
}

pub(crate) fn config(seal: bool) -> impl FnOnce(&mut NodeConfig) {
    move |config| {
        config.sealing.rows = if seal { 1 } else { 1_000_000 };
        config.sealing.age = Duration::from_secs(3600);
        config.merging.fan_in = 1000;
        config.merging.dead_share = 1.0;
        config.merging.idle = Duration::from_secs(3600);
        config.graph_min_rows = 4;
    }
}

/// Opens a store and serves it without changing it, or says why not.
pub(crate) async fn open(folder: &Path) -> Result<Local, StoreErrorKind> {
    let store = Store::open_dir(folder.to_owned()).unwrap();
    if let Err(error) = CatalogStore::new(store.clone()).refresh().await {
        let refused = Node::start(NodeConfig::default(), store).await.err().expect("a node over a damaged catalog");
        assert!(matches!(refused, NodeError::Corruption(_)), "{refused}");
        return Err(error.kind());
    }
    Ok(LocalBuilder::new().store(store).node_config(config(false)).start().await)
}

pub(crate) async fn prepare() -> Prepared {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_dir(folder.path().to_owned()).unwrap();
    let server = LocalBuilder::new().store(store).node_config(config(true)).start().await;
    for (name, shards) in [("two", 2), ("one", 1)] {
        server.client.create(collection(name, shards, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
        for round in 0..ROUNDS {
            write(&server.client, name, round, KEYS / 2).await;
            server.settle(|replica| replica.num_live_rows == 0 && replica.num_segments > round).await;
        }
    }
    server.stop().await;
    let server = open(folder.path()).await.unwrap();
    let mut before_last = None;
    for name in ["two", "one"] {
        for round in ROUNDS..ROUNDS + TAIL {
            before_last = Some(ask(&server.client, name, Partial::Refuse).await);
            write(&server.client, name, round, 8).await;
        }
    }
    server.stop().await;
    let server = open(folder.path()).await.unwrap();
    let mut right = BTreeMap::new();
    for name in ["two", "one"] {
        let answers = ask(&server.client, name, Partial::Refuse).await;
        assert!(answers.iter().all(|(_, answer)| matches!(answer, Answer::Whole(..))), "{answers:?}");
        right.insert(name, answers);
    }
    server.stop().await;
    Prepared { folder, right, before_last: before_last.unwrap() }
}

/// Writes some keys, anew or over older ones, and deletes a few, as one request each.
pub(crate) async fn write(client: &Client, name: &str, round: u64, num_keys: u64) {
    let keys = (0..num_keys).map(|n| (n * 7 + round * 11) % KEYS);
    let documents = keys.clone().map(|key| document_of(&format!("k{key}"), round * 1000 + key)).collect();
    client.upsert(name, documents).await.unwrap();
    if round >= ROUNDS {
        return;
    }
    let doomed: Vec<String> = keys.take(3).map(|key| format!("k{key}")).collect();
    client.delete(name, &doomed.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
}

/// By links, for a store never changes a file under its name.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false if entry.file_name() == ".antiphon.lock" => {}
            false => std::fs::hard_link(entry.path(), to).unwrap(),
        }
    }
}
