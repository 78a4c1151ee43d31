//! A write to a shard: to its owner, and to another node only where the owner has surely not written it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::{WriteRequest, WriteResponse};

use super::node_client::CallError;
use super::{Cluster, NodeHandle, Target};

/// How long a write waits for a node where none can be reached, so that a change of owner is not seen as a failure.
const WAIT_FOR_NODE: Duration = Duration::from_secs(5);

impl Cluster {
    /// Writes. Where the owner cannot be reached at all, or says that it is stopping, the next replica takes the write:
    /// any node may write to any shard. Once a node may have written, nobody else is asked.
    ///
    /// # Errors
    /// The node's; SHARD_UNAVAILABLE where the node was lost meanwhile, and the write may or may not have happened.
    pub(crate) async fn write(
        &self,
        target: Target<'_>,
        message: WriteRequest,
        deadline: Deadline,
    ) -> Result<WriteResponse, ApiError> {
        let until = Instant::now() + WAIT_FOR_NODE.min(deadline.left() / 2);
        loop {
            let mut replicas = self.replicas(target).unwrap_or_default();
            let now = Instant::now();
            // Stable: the owner stays first among those that answer.
            replicas.sort_by_key(|node| node.health.is_passed_over(now));
            let mut last = None;
            for node in replicas {
                match write_to(&node, message.clone(), deadline).await {
                    Err(failed) if failed.is_unreached || failed.error.kind() == ErrorKind::ShuttingDown => {
                        last = Some(failed.error);
                    }
                    outcome => return Ok(outcome?),
                }
            }
            if Instant::now() >= until || !self.change().await {
                return Err(match last {
                    Some(error) => error,
                    None => self.replicas(target).err().unwrap_or_else(|| {
                        ApiError::new(ErrorKind::ShardUnavailable, "no node could be reached; nothing was written")
                    }),
                });
            }
        }
    }
}

async fn write_to(
    node: &Arc<NodeHandle>,
    message: WriteRequest,
    deadline: Deadline,
) -> Result<WriteResponse, CallError> {
    let began = Instant::now();
    let _call = node.health.begin();
    let outcome = tokio::select! {
        outcome = node.client.write(message, deadline) => outcome,
        () = node.lost() => {
            let words = format!("the node {} was lost meanwhile; the write may or may not have happened", node.id);
            Err(ApiError::new(ErrorKind::ShardUnavailable, words).into())
        }
    };
    match &outcome {
        Ok(_) => node.health.answered(began.elapsed()),
        Err(failed) if failed.error.kind() == ErrorKind::ShardUnavailable => node.health.failed(Instant::now()),
        Err(_) => {}
    }
    outcome
}
