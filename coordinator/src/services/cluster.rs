//! ClusterService.

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::ApiError;
use antiphon_proto::internal::{DescribeShardRequest, ShardRef};
use antiphon_proto::v1::cluster_service_server::ClusterService;
use antiphon_proto::v1::{DescribeClusterRequest, DescribeClusterResponse, Embedder, Node, Replica, Shard};
use futures::future::join_all;
use tonic::{Request, Response, Status};

use super::Service;
use crate::cluster::NodeHandle;
use crate::coordinator::within;

#[tonic::async_trait]
impl ClusterService for Service {
    async fn describe_cluster(
        &self,
        request: Request<DescribeClusterRequest>,
    ) -> Result<Response<DescribeClusterResponse>, Status> {
        let deadline = self.0.deadline(&request);
        // What does not answer is described too, so leave time for that.
        let patience = Deadline::after(deadline.left().mul_f64(0.8));
        let work = async {
            let nodes = join_all(self.0.cluster.nodes().iter().map(|node| describe_node(node, patience))).await;
            let mut shards = Vec::new();
            for collection in self.0.collections.list().await? {
                for shard in 0..collection.num_shards() {
                    shards.push((collection.collection.name.clone(), collection.uid().to_owned(), shard));
                }
            }
            let described = shards.iter().map(|(name, uid, shard)| async {
                let node = self.0.cluster.node_of(uid, *shard)?;
                let replica = describe_replica(node, uid, *shard, patience).await;
                Ok::<_, ApiError>(Shard { collection: name.clone(), shard: *shard, replicas: vec![replica] })
            });
            let shards = join_all(described).await.into_iter().collect::<Result<_, _>>()?;
            let embedders = self.0.config.embedders.iter().map(|model| Embedder {
                name: model.name.clone(),
                kind: model.kind.to_owned(),
                model: model.model.clone(),
                dimensions: model.dimensions() as u32,
            });
            let embedders = embedders.collect();
            Ok(DescribeClusterResponse { nodes, shards, version: env!("CARGO_PKG_VERSION").into(), embedders })
        };
        Ok(Response::new(within(deadline, work).await?))
    }
}

async fn describe_node(node: &NodeHandle, deadline: Deadline) -> Node {
    let address = node.address.clone();
    match node.client.describe_node(deadline).await {
        Ok(response) => {
            Node { id: response.id, address, reachable: true, problem: String::new(), version: response.version }
        }
        Err(error) => Node { address, problem: error.message().to_owned(), ..Node::default() },
    }
}

async fn describe_replica(node: &NodeHandle, uid: &str, shard: u32, deadline: Deadline) -> Replica {
    let node_address = node.address.clone();
    let message = DescribeShardRequest {
        shard: Some(ShardRef { collection_uid: uid.to_owned(), shard, schema_version: 0 }),
        refresh: false,
    };
    match node.client.describe_shard(message, deadline).await {
        Ok(shard) => Replica {
            node_address,
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
        },
        Err(error) => Replica { node_address, problem: error.to_string(), ..Replica::default() },
    }
}
