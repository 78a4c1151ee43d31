//! Servers in this process, over real ports: quick to start, with settings that tests need.

use std::sync::Arc;
use std::time::Duration;

use antiphon_access::tls::ServerTls;
use antiphon_coordinator::status_layer::StatusLayer;
use antiphon_coordinator::{Cluster, Coordinator, CoordinatorConfig, NodeClient, NodeHandle, services};
use antiphon_membership::Dialer;
use antiphon_node::{Node, NodeConfig, NodeServer};
use antiphon_proto::internal::node_service_server::NodeServiceServer;
use antiphon_store::Store;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::{Router, TcpIncoming};

use crate::client::Client;
use crate::secure::{self, Secure, secure};

/// How a local server is made.
pub struct LocalBuilder {
    pub store: Store,
    pub node: NodeConfig,
    pub coordinator: CoordinatorConfig,
    pub num_nodes: usize,
    pub more_addresses: Vec<String>,
}

/// Nodes and a coordinator in this process.
pub struct Local {
    pub client: Client,
    pub url: String,
    pub nodes: Vec<Arc<Node>>,
    pub store: Store,
    tasks: Vec<JoinHandle<()>>,
}

impl LocalBuilder {
    /// One node over a store in memory.
    pub fn new() -> Self {
        Self {
            store: Store::open("memory://").unwrap(),
            node: NodeConfig::default(),
            coordinator: CoordinatorConfig::default(),
            num_nodes: 1,
            more_addresses: Vec::new(),
        }
    }

    pub fn store(mut self, store: Store) -> Self {
        self.store = store;
        self
    }

    /// Several nodes, asked over the network; one is asked in this process.
    pub fn nodes(mut self, num_nodes: usize) -> Self {
        self.num_nodes = num_nodes;
        self
    }

    /// A node that the coordinator is told of, whoever listens there or not.
    pub fn address(mut self, url: &str) -> Self {
        self.more_addresses.push(url.to_owned());
        self
    }

    pub fn node_config(mut self, change: impl FnOnce(&mut NodeConfig)) -> Self {
        change(&mut self.node);
        self
    }

    pub fn coordinator_config(mut self, change: impl FnOnce(&mut CoordinatorConfig)) -> Self {
        change(&mut self.coordinator);
        self
    }

    /// Segments after so few rows, with graphs in all of them: boundaries wherever they can be.
    pub fn small_segments(self, rows: u64) -> Self {
        self.node_config(|config| {
            config.sealing.rows = rows;
            config.sealing.age = Duration::from_millis(300);
            config.merging.idle = Duration::from_secs(3600);
            config.graph_min_rows = 8;
        })
    }

    pub async fn start(self) -> Local {
        let (mut nodes, mut handles, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..self.num_nodes {
            let config = NodeConfig { id: format!("node-{index}"), ..self.node.clone() };
            let node = Node::start(config, self.store.clone()).await.unwrap();
            if self.num_nodes == 1 {
                node.open_all().await;
                let client = NodeClient::Local(Arc::new(NodeServer::new(Arc::clone(&node))));
                handles.push(NodeHandle::new("local", client));
            } else {
                let service = NodeServiceServer::new(NodeServer::new(Arc::clone(&node)));
                let service = service.max_decoding_message_size(256 << 20).max_encoding_message_size(256 << 20);
                let (url, task) = serve(Server::builder().add_service(service), None).await;
                tasks.push(task);
                handles.push(NodeHandle::new(&url, NodeClient::connect(&url, &Dialer::default()).unwrap()));
            }
            nodes.push(node);
        }
        for address in self.more_addresses {
            handles.push(NodeHandle::new(&address, NodeClient::connect(&address, &Dialer::default()).unwrap()));
        }
        let coordinator =
            Coordinator::start(self.coordinator, self.store.clone(), Cluster::new(handles)).await.unwrap();
        let server =
            Server::builder().layer(StatusLayer).layer(secure::layer()).add_routes(services::routes(&coordinator));
        let (url, task) = serve(server, secure().map(Secure::server_tls)).await;
        tasks.push(task);
        Local { client: Client::connect_lazy(&url), url, nodes, store: self.store, tasks }
    }
}

impl Default for LocalBuilder {
    fn default() -> Self {
        Self::new()
    }
}

async fn serve<L>(server: Router<L>, tls: Option<ServerTls>) -> (String, JoinHandle<()>)
where
    L: tower::Layer<tonic::service::Routes> + Clone + Send + 'static,
    L::Service: tower::Service<http::Request<tonic::body::Body>, Response = http::Response<tonic::body::Body>>
        + Clone
        + Send
        + 'static,
    <L::Service as tower::Service<http::Request<tonic::body::Body>>>::Future: Send,
    <L::Service as tower::Service<http::Request<tonic::body::Body>>>::Error:
        Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let task = tokio::spawn(async move {
        match tls {
            Some(tls) => server.serve_with_incoming(tls.incoming(listener)).await.unwrap(),
            None => {
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                server.serve_with_incoming(incoming).await.unwrap();
            }
        }
    });
    (format!("{scheme}://{address}"), task)
}

impl Local {
    /// Stops serving, then the nodes; the store keeps everything.
    pub async fn stop(self) {
        for task in &self.tasks {
            task.abort();
        }
        for node in &self.nodes {
            node.stop().await;
        }
    }

    /// Waits until every shard of a collection is sealed, and merged where `merged`.
    pub async fn settle(&self, wait_for: impl Fn(&antiphon_proto::v1::Replica) -> bool) {
        wait_until(Duration::from_secs(60), || async {
            let cluster = self.client.describe_cluster().await.unwrap();
            cluster.shards.iter().flat_map(|shard| &shard.replicas).all(&wait_for)
        })
        .await;
    }
}

/// Waits until a condition holds; panics at the deadline.
pub async fn wait_until<F: Future<Output = bool>>(timeout: Duration, condition: impl Fn() -> F) {
    let deadline = std::time::Instant::now() + timeout;
    while !condition().await {
        assert!(std::time::Instant::now() < deadline, "not within {timeout:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
