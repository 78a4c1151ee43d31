//! The nodes that a coordinator knows, and which of them serves a shard.

mod node_client;
mod placement;

pub use node_client::NodeClient;
pub use placement::place;

use antiphon_proto::error::{ApiError, ErrorKind};

/// A node and the way to it.
#[derive(Clone)]
pub struct NodeHandle {
    /// Its address; names it in placement.
    pub address: String,
    /// The way to it.
    pub client: NodeClient,
}

/// The nodes of a cluster, fixed at start.
pub struct Cluster {
    nodes: Vec<NodeHandle>,
}

impl Cluster {
    /// A cluster of these nodes.
    pub fn new(nodes: Vec<NodeHandle>) -> Self {
        Self { nodes }
    }

    /// All nodes.
    pub fn nodes(&self) -> &[NodeHandle] {
        &self.nodes
    }

    /// The node that serves a shard.
    ///
    /// # Errors
    /// SHARD_UNAVAILABLE where there are no nodes.
    pub fn node_of(&self, collection_uid: &str, shard: u32) -> Result<&NodeHandle, ApiError> {
        let addresses = self.nodes.iter().map(|node| node.address.as_str());
        place(collection_uid, shard, addresses)
            .and_then(|index| self.nodes.get(index))
            .ok_or_else(|| ApiError::new(ErrorKind::ShardUnavailable, "no nodes are known"))
    }
}
