//! What cluster is wanted, and what was decided from it before anything runs.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::bucket::Bucket;
use super::hosts::{Host, Network};
use super::process::ServerProcess;
use super::running::Cluster;

/// The port that members gossip on, each on its own host.
const GOSSIP_PORT: u16 = 7701;

/// Says what cluster is wanted.
#[derive(Clone)]
pub struct ClusterBuilder {
    num_serves: usize,
    num_nodes: usize,
    num_coordinators: usize,
    gossips: bool,
    store: Option<String>,
    settings: Vec<String>,
    envs: Vec<(String, String)>,
}

impl ClusterBuilder {
    /// So many processes that are coordinator and node in one, all over one data folder.
    pub fn serve(num_serves: usize) -> Self {
        Self {
            num_serves,
            num_nodes: 0,
            num_coordinators: 0,
            gossips: false,
            store: None,
            settings: vec!["logging.filter=info".to_owned()],
            envs: Vec::new(),
        }
    }

    /// So many nodes, and so many coordinators that know them all, over one store.
    pub fn roles(num_nodes: usize, num_coordinators: usize) -> Self {
        Self { num_serves: 0, num_nodes, num_coordinators, ..Self::serve(0) }
    }

    /// So many nodes, and so many coordinators, that find each other by gossip, each on a host of its own.
    pub fn gossip(num_nodes: usize, num_coordinators: usize) -> Self {
        let drain_s = 10;
        Self { gossips: true, ..Self::roles(num_nodes, num_coordinators) }.set("cluster.drain_s", drain_s)
    }

    /// Another store than a folder of the cluster's own, as `file:///srv/antiphon`.
    pub fn store(mut self, url: &str) -> Self {
        self.store = Some(url.to_owned());
        self
    }

    /// A bucket as the store.
    pub fn bucket(mut self, bucket: &Bucket) -> Self {
        self.envs.extend(bucket.envs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.store(&bucket.url)
    }

    /// A setting of every process, as `sealing.seal_rows`.
    pub fn set(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.settings.push(format!("{key}={value}"));
        self
    }

    /// A variable of every process's environment, as AWS_ENDPOINT_URL.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.envs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Decides folders and command lines; nothing is started.
    pub fn resolve(self) -> ResolvedCluster {
        let folder = tempfile::Builder::new().prefix("antiphon-cluster-").tempdir().unwrap();
        let data = folder.path().join("data");
        let own_store = format!("file://{}", data.display());
        let store = self.store.clone().unwrap_or(own_store);
        let settings: Vec<String> = self.settings.iter().flat_map(|pair| ["--set".to_owned(), pair.clone()]).collect();
        let count = if self.gossips { self.num_nodes + self.num_coordinators } else { 0 };
        let hosts = Network::create_if(count);
        let seeds: Vec<String> =
            hosts.iter().take(self.num_nodes).map(|host| format!("{}:{GOSSIP_PORT}", host.address())).collect();
        let process = |role: &str, index: usize, data: &Path| {
            let name = format!("{role}-{index}");
            let mut args = vec![role.to_owned(), "--id".to_owned(), name.clone()];
            args.extend(["--data".to_owned(), data.display().to_string(), "--store".to_owned(), store.clone()]);
            args.extend(settings.iter().cloned());
            let place = if role == "coordinator" { self.num_nodes + index } else { index };
            let host = hosts.get(place).cloned();
            if let Some(host) = &host {
                args.extend(["--gossip-listen".to_owned(), format!("{}:{GOSSIP_PORT}", host.address())]);
                args.extend(["--seeds".to_owned(), seeds.join(",")]);
            }
            ProcessPlan { name, args, host }
        };
        // Only `serve` keeps its cache beside the store; the others have folders of their own, as on their own hosts.
        let own = |role: &str, index: usize| process(role, index, &folder.path().join(format!("{role}-{index}")));
        ResolvedCluster {
            serves: (0..self.num_serves).map(|index| process("serve", index, &data)).collect(),
            nodes: (0..self.num_nodes).map(|index| own("node", index)).collect(),
            coordinators: (0..self.num_coordinators).map(|index| own("coordinator", index)).collect(),
            store,
            data,
            envs: self.envs,
            folder,
        }
    }

    /// Resolves and starts.
    pub async fn start(self) -> Cluster {
        self.resolve().start().await
    }
}

/// A process to be started: its name, and its command line without `--listen`, which is decided at its start.
#[derive(Clone)]
pub struct ProcessPlan {
    pub name: String,
    pub args: Vec<String>,
    pub host: Option<Host>,
}

/// All that was decided about a cluster that does not run yet.
pub struct ResolvedCluster {
    /// The store's URL.
    pub store: String,
    /// The data folder; the store, unless another was asked for.
    pub data: PathBuf,
    pub serves: Vec<ProcessPlan>,
    pub nodes: Vec<ProcessPlan>,
    /// They lack `--nodes`: ports are known when the nodes run.
    pub coordinators: Vec<ProcessPlan>,
    envs: Vec<(String, String)>,
    folder: TempDir,
}

impl ResolvedCluster {
    /// Starts the nodes, then the coordinators, and waits until all serve.
    pub async fn start(self) -> Cluster {
        let process = |plan: ProcessPlan| {
            ServerProcess::new(&plan.name, plan.args, self.envs.clone(), self.folder.path()).on(plan.host)
        };
        let mut serves: Vec<_> = self.serves.into_iter().map(process).collect();
        let mut nodes: Vec<_> = self.nodes.into_iter().map(process).collect();
        start_all(&mut serves).await;
        start_all(&mut nodes).await;
        let urls: Vec<&str> = nodes.iter().map(ServerProcess::url).collect();
        let with_nodes = |mut plan: ProcessPlan| {
            if plan.host.is_none() {
                plan.args.extend(["--nodes".to_owned(), urls.join(",")]);
            }
            process(plan)
        };
        let mut coordinators: Vec<_> = self.coordinators.into_iter().map(with_nodes).collect();
        start_all(&mut coordinators).await;
        Cluster { serves, nodes, coordinators, store: self.store, data: self.data, folder: Some(self.folder) }
    }
}

async fn start_all(processes: &mut [ServerProcess]) {
    processes.iter_mut().for_each(ServerProcess::spawn);
    for process in processes {
        process.ready().await;
    }
}
