//! A cluster that runs.

use std::path::PathBuf;
use std::time::Duration;

use antiphon_proto::v1::Shard;
use tempfile::TempDir;

use super::process::ServerProcess;
use crate::client::Client;
use crate::local::wait_until;

/// A cluster's processes, by role. All are killed when it is dropped.
pub struct Cluster {
    pub serves: Vec<ServerProcess>,
    pub nodes: Vec<ServerProcess>,
    pub coordinators: Vec<ServerProcess>,
    /// The store's URL.
    pub store: String,
    /// The data folder; the store, unless another was asked for.
    pub data: PathBuf,
    pub(super) folder: Option<TempDir>,
}

impl Cluster {
    /// A client of the `index`th process that has the public API: a `serve`, or else a coordinator.
    pub fn client(&self, index: usize) -> Client {
        self.serves.iter().chain(&self.coordinators).nth(index).unwrap().client()
    }

    /// Waits until every copy of every shard is served.
    pub async fn whole(&self, client: &Client) {
        wait_until(Duration::from_secs(60), || async {
            let Ok(cluster) = client.describe_cluster().await else { return false };
            let serves = |shard: &Shard| {
                let serving = shard.replicas.iter().filter(|replica| replica.serving).count();
                serving == shard.replica_count as usize && shard.replicas.iter().all(|replica| replica.lag == 0)
            };
            cluster.shards.iter().all(serves)
        })
        .await;
    }

    /// Removes all that nodes keep on their disks. Only while none runs.
    pub fn lose_disks(&self) {
        let folder = self.folder.as_ref().unwrap().path();
        for node in &self.nodes {
            assert!(!node.is_running());
            // One that wrote nothing has none.
            let _ = std::fs::remove_dir_all(folder.join(node.name()));
        }
    }

    /// The number of the node of a name, as the cluster is told of it.
    pub fn node_named(&self, name: &str) -> usize {
        self.nodes.iter().position(|node| node.name() == name).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.serves.iter_mut().chain(&mut self.coordinators).chain(&mut self.nodes) {
            process.kill();
        }
        if let Some(folder) = self.folder.take()
            && std::thread::panicking()
        {
            eprintln!("--- the cluster's files are kept in {}", folder.keep().display());
        }
    }
}
