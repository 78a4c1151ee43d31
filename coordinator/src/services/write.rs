//! Writes: routed to their shards, and acknowledged only for the collection that bears the name at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::WriteRequest;
use antiphon_proto::key::shard_of;
use antiphon_proto::store::{LogOp, log_op::Op};
use futures::future::join_all;

use super::Service;
use crate::collections::Resolved;
use crate::token::{self, Position};

/// A write that every shard acknowledged.
pub(super) struct Written {
    /// The version that shows it.
    pub(super) version: String,
    /// Where it stands in each shard's log.
    pub(super) positions: Vec<Position>,
    /// Keys that were there and are no more.
    pub(super) num_deleted: u64,
}

impl Service {
    /// Writes operations to their shards, then looks whether the name still means the same collection: what was written
    /// to a collection that was deleted meanwhile, or that an alias does not mean any more, is never acknowledged.
    pub(super) async fn write(
        &self,
        collection: &Arc<Resolved>,
        ops: Vec<LogOp>,
        deadline: Deadline,
    ) -> Result<Written, ApiError> {
        let mut by_shard: BTreeMap<u32, Vec<LogOp>> = BTreeMap::new();
        for op in ops {
            let key = match &op.op {
                Some(Op::Upsert(document)) => document.key.as_str(),
                Some(Op::DeleteKey(key)) => key.as_str(),
                None => continue,
            };
            let shard = shard_of(&collection.key_rule.fold(key), collection.num_shards());
            by_shard.entry(shard).or_default().push(op);
        }
        let calls = by_shard.into_iter().map(|(shard, ops)| async move {
            let message = WriteRequest { shard: Some(collection.shard_ref(shard)), ops };
            (shard, self.0.cluster.write(collection.target(shard), message, deadline).await)
        });
        let (mut positions, mut num_deleted, mut failed) = (Vec::new(), 0, None);
        for (shard, outcome) in join_all(calls).await {
            match outcome {
                Ok(response) => {
                    positions.push(Position { shard, seq: response.seq, manifest_version: 0 });
                    num_deleted += response.num_deleted;
                }
                Err(error) => failed = Some((shard, error)),
            }
        }
        if let Some((shard, error)) = failed {
            return Err(match error.kind() {
                ErrorKind::CollectionNotFound => error,
                _ => error.with_metadata("shard", shard),
            });
        }
        let newest = self.0.collections.find_newest(&collection.asked).await?;
        if newest.uid() != collection.uid() {
            let words = format!("{:?} came to mean another collection while it was written to", collection.asked);
            return Err(ApiError::new(ErrorKind::CollectionNotFound, words));
        }
        let version = token::version(collection.uid(), positions.clone());
        Ok(Written { version, positions, num_deleted })
    }
}

/// Keeps the highest position of each shard.
pub(super) fn advance(positions: &mut BTreeMap<u32, Position>, written: &[Position]) {
    for position in written {
        let highest = positions.entry(position.shard).or_insert(*position);
        if position.seq > highest.seq {
            *highest = *position;
        }
    }
}
