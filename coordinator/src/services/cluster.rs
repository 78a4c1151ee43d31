//! ClusterService.

use std::sync::Arc;

use antiphon_access::Caller;
use antiphon_membership::{Member, Members, Phase, Stage};
use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::ApiError;
use antiphon_proto::internal::{DescribeShardRequest, ShardRef};
use antiphon_proto::v1::cluster_service_server::ClusterService;
use antiphon_proto::v1::{DescribeClusterRequest, DescribeClusterResponse, Embedder, Node, Replica, Shard};
use futures::StreamExt;
use futures::future::join_all;
use futures::stream;
use tonic::{Request, Response, Status};

use super::Service;
use crate::cluster::NodeHandle;
use crate::collections::Resolved;
use crate::coordinator::within;

/// Shards that are asked after at once.
const SHARDS_AT_ONCE: usize = 32;

#[tonic::async_trait]
impl ClusterService for Service {
    async fn describe_cluster(
        &self,
        request: Request<DescribeClusterRequest>,
    ) -> Result<Response<DescribeClusterResponse>, Status> {
        Caller::of(&request)?.may_know_all()?;
        let deadline = self.0.deadline(&request);
        // What does not answer is described too, so leave time for that.
        let patience = Deadline::after(deadline.left().mul_f64(0.8));
        let work = async {
            let members = self.0.cluster.members();
            let handles = self.0.cluster.nodes();
            let mut nodes = join_all(handles.iter().map(|node| describe_node(node, patience))).await;
            if let Some(members) = &members {
                add_members(&mut nodes, members);
            }
            let collections = self.0.collections.list().await?;
            let mut calls = Vec::new();
            for collection in &collections {
                for shard in 0..collection.num_shards() {
                    calls.push(self.describe_shard(collection, shard, members.as_deref(), patience));
                }
            }
            let shards = stream::iter(calls).buffered(SHARDS_AT_ONCE).collect().await;
            let embedders = self.0.config.embedders.iter().map(|model| Embedder {
                name: model.name.clone(),
                kind: model.kind.to_owned(),
                model: model.model.clone(),
                dimensions: model.dimensions() as u32,
            });
            let embedders = embedders.collect();
            Ok::<_, ApiError>(DescribeClusterResponse {
                nodes,
                shards,
                version: env!("CARGO_PKG_VERSION").into(),
                embedders,
            })
        };
        Ok(Response::new(within(deadline, work).await?))
    }
}

impl Service {
    async fn describe_shard(
        &self,
        collection: &Resolved,
        shard: u32,
        members: Option<&Members>,
        deadline: Deadline,
    ) -> Shard {
        let reference = collection.shard_ref(shard);
        let replicas = self.0.cluster.replicas(collection.target(shard)).unwrap_or_default();
        let described = replicas.iter().map(|node| describe_replica(node, &reference, deadline));
        let mut replicas = join_all(described).await;
        if let Some(owner) = replicas.first_mut() {
            owner.owner = owner.serving;
        }
        let furthest = replicas.iter().map(|replica| replica.seq).max().unwrap_or(0);
        for replica in replicas.iter_mut().filter(|replica| replica.serving) {
            replica.lag = furthest - replica.seq;
        }
        let key = (reference.collection_uid, shard);
        for member in members.iter().flat_map(|members| members.nodes()) {
            if let Some(report) = member.shards.get(&key)
                && report.stage == Stage::Opening
                && replicas.iter().all(|replica| replica.node_id != member.id)
            {
                let problem = match report.problem.as_str() {
                    "" => "it is being opened".to_owned(),
                    problem => format!("it cannot be opened, and is tried again: {problem}"),
                };
                replicas.push(Replica {
                    node_id: member.id.clone(),
                    node_address: member.address.clone(),
                    problem,
                    ..Replica::default()
                });
            }
        }
        let replica_count = collection.collection.replica_count.max(1);
        let problem = shard_problem(&replicas, replica_count, members);
        Shard { collection: collection.collection.name.clone(), shard, replicas, replica_count, problem }
    }
}

/// What is wrong with a shard as a whole; empty if nothing is.
fn shard_problem(replicas: &[Replica], replica_count: u32, members: Option<&Members>) -> String {
    let serving = replicas.iter().filter(|replica| replica.serving).count();
    if serving == 0 {
        return "no node serves it: searches and writes that need it fail".into();
    }
    if serving >= replica_count as usize {
        return String::new();
    }
    let takers = members.map_or(1, |members| members.nodes().filter(|member| member.takes_shards()).count());
    let why = if takers < replica_count as usize {
        format!("the cluster has {takers} nodes that take shards; start more")
    } else {
        "another copy is made where it is missing for a minute".into()
    };
    format!("{serving} of {replica_count} copies are served: {why}")
}

/// Adds to the nodes what members tell of themselves, the other members, and those that were lost.
fn add_members(nodes: &mut Vec<Node>, members: &Members) {
    for member in &members.live {
        let state = match member.phase {
            Phase::Up => "up",
            Phase::Draining | Phase::Gone => "draining",
        };
        match nodes.iter_mut().find(|node| node.id == member.id || node.address == member.address) {
            Some(node) => {
                node.id.clone_from(&member.id);
                node.role = member.role.as_str().to_owned();
                state.clone_into(&mut node.state);
                node.zone.clone_from(&member.zone);
                if node.problem.is_empty() {
                    node.problem.clone_from(&member.problem);
                }
            }
            None => nodes.push(Node { reachable: true, ..of_member(member, state, &member.problem) }),
        }
    }
    for lost in &members.lost {
        let (was, ago) = (lost.member.phase, lost.since.elapsed().as_secs());
        let what = if was == Phase::Gone { "was stopped" } else { "has not been heard of since" };
        nodes.push(of_member(&lost.member, "lost", &format!("it {what} {ago} s ago")));
    }
}

fn of_member(member: &Arc<Member>, state: &str, problem: &str) -> Node {
    Node {
        id: member.id.clone(),
        address: member.address.clone(),
        reachable: false,
        problem: problem.to_owned(),
        version: member.version.clone(),
        role: member.role.as_str().to_owned(),
        state: state.to_owned(),
        zone: member.zone.clone(),
    }
}

async fn describe_node(node: &NodeHandle, deadline: Deadline) -> Node {
    let address = node.address.clone();
    let node_state = |state: &str| state.to_owned();
    match node.client.describe_node(deadline).await {
        Ok(response) => Node {
            id: response.id,
            address,
            reachable: true,
            problem: response.problem,
            version: response.version,
            role: "node".into(),
            state: node_state("up"),
            ..Node::default()
        },
        Err(error) => Node {
            id: node.id.clone(),
            address,
            problem: error.message().to_owned(),
            role: "node".into(),
            state: node_state("up"),
            ..Node::default()
        },
    }
}

async fn describe_replica(node: &NodeHandle, shard: &ShardRef, deadline: Deadline) -> Replica {
    let (node_address, node_id) = (node.address.clone(), node.id.clone());
    let shard = ShardRef { schema_version: 0, ..shard.clone() };
    let message = DescribeShardRequest { shard: Some(shard), refresh: false };
    match node.client.describe_shard(message, deadline).await {
        Ok(shard) => Replica {
            node_address,
            node_id,
            serving: true,
            problem: match shard.quarantined_segments.len() {
                0 => String::new(),
                count => format!("{count} damaged segments are set aside; searches are refused or partial"),
            },
            seq: shard.seq,
            manifest_version: shard.manifest_version,
            num_docs: shard.num_docs,
            num_deleted: shard.num_deleted,
            num_segments: shard.num_segments,
            size_bytes: shard.size_bytes,
            num_live_rows: shard.num_live_rows,
            live_bytes: shard.live_bytes,
            quarantined_segments: shard.quarantined_segments,
            ..Replica::default()
        },
        Err(error) => Replica { node_address, node_id, problem: error.to_string(), ..Replica::default() },
    }
}
