//! The nodes that a coordinator asks: which of them, in what order, and what it does when one does not answer.
//!
//! - [`Cluster`]: the nodes, fixed at start or as members come and go; who serves a shard.
//! - [`NodeHandle`]: one node, the way to it, and how it answered lately (`health`).
//! - `read`: a read of a shard, from one replica or another. `write`: a write, never twice.

mod health;
mod node_client;
mod node_handle;
mod nodes;
mod read;
mod write;

pub use node_client::NodeClient;
pub use node_handle::NodeHandle;
pub use read::{Answered, First};

use std::sync::Arc;
use std::time::Duration;

use antiphon_membership::{Dialer, Member, Members, Membership, placement};
use antiphon_proto::error::{ApiError, ErrorKind};
use nodes::MemberNodes;

/// How often a call that waits for a node looks again, though the members did not change.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A shard that is to be reached.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its collection's uid.
    pub collection_uid: &'a str,
    /// Its number.
    pub shard: u32,
    /// How many copies there should be.
    pub copies: u32,
    /// Whether to wait a little where no node answers, so that a change of nodes is not seen as a failure.
    pub is_patient: bool,
}

impl Target<'_> {
    fn key(&self) -> (String, u32) {
        (self.collection_uid.to_owned(), self.shard)
    }
}

/// The nodes of a cluster.
pub struct Cluster {
    nodes: Nodes,
}

enum Nodes {
    /// Those given at start.
    Fixed(Vec<Arc<NodeHandle>>),
    /// Those that gossip.
    Members(MemberNodes),
}

impl Cluster {
    /// A cluster of these nodes and no others. Each shard is on one of them.
    pub fn new(nodes: Vec<NodeHandle>) -> Self {
        Self { nodes: Nodes::Fixed(nodes.into_iter().map(Arc::new).collect()) }
    }

    /// The members of a cluster, as they come and go. `local` is this process's own node, if it has one.
    pub fn of_members(membership: &Membership, dialer: Dialer, local: Option<NodeClient>) -> Self {
        let own = local.map(|client| (membership.id().to_owned(), client));
        Self { nodes: Nodes::Members(MemberNodes::new(membership.members(), dialer, own)) }
    }

    /// The members, where they gossip.
    pub fn members(&self) -> Option<Arc<Members>> {
        match &self.nodes {
            Nodes::Fixed(_) => None,
            Nodes::Members(nodes) => Some(nodes.members()),
        }
    }

    /// All nodes that are not known to be lost.
    pub fn nodes(&self) -> Vec<Arc<NodeHandle>> {
        match &self.nodes {
            Nodes::Fixed(nodes) => nodes.clone(),
            Nodes::Members(nodes) => {
                let members = nodes.members();
                members.nodes().filter_map(|member| nodes.handle(member)).collect()
            }
        }
    }

    /// The nodes that serve a shard, its owner first. Where none says that it does, those that are to: they open it when
    /// they are asked.
    ///
    /// # Errors
    /// SHARD_UNAVAILABLE where there are none.
    pub fn replicas(&self, target: Target<'_>) -> Result<Vec<Arc<NodeHandle>>, ApiError> {
        let key = target.key();
        let replicas = match &self.nodes {
            Nodes::Fixed(nodes) => {
                let mut nodes: Vec<&Arc<NodeHandle>> = nodes.iter().collect();
                placement::rank(&key, &mut nodes, |node| &node.address);
                nodes.into_iter().take(1).cloned().collect()
            }
            Nodes::Members(nodes) => {
                let members = nodes.members();
                let mut serving = placement::serving(&members, &key);
                if serving.is_empty() {
                    serving = placement::holders(&members, &key, target.copies.max(1) as usize, nodes::REPLACE_AFTER);
                }
                serving.iter().filter_map(|member: &Arc<Member>| nodes.handle(member)).collect::<Vec<_>>()
            }
        };
        if replicas.is_empty() {
            let words = format!("no node of the cluster serves shard {} now", target.shard);
            return Err(ApiError::new(ErrorKind::ShardUnavailable, words).with_metadata("shard", target.shard));
        }
        Ok(replicas)
    }

    /// Waits for a change of the members, or a moment. Says whether there may be any: fixed nodes don't change.
    async fn change(&self) -> bool {
        let Nodes::Members(nodes) = &self.nodes else { return false };
        let mut changes = nodes.changes();
        changes.mark_unchanged();
        tokio::select! {
            _ = changes.changed() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        true
    }
}
