//! Nodes asked as coordinators ask them, each by itself.

use antiphon_membership::NodeClient;
use antiphon_proto::internal::{
    Freshness, ListRowsRequest, Projection, ShardRef, ViewChoice, ViewName, WriteRequest, view_choice::Choice,
};
use antiphon_proto::store::{LogOp, log_op::Op};
use antiphon_proto::v1::Document;
use tonic::Status;

use crate::secure;

/// A client of one node, of a cluster of the default name without a secret.
pub fn node_client(url: &str) -> NodeClient {
    secure::dialer().node(url).unwrap()
}

/// One shard.
pub fn shard_ref(collection_uid: &str, shard: u32) -> ShardRef {
    ShardRef { collection_uid: collection_uid.to_owned(), shard, schema_version: 0 }
}

/// All documents that one node shows of a shard, in order, and the view that it shows them from.
pub async fn all_rows(node: &NodeClient, uid: &str, shard: u32) -> Result<(ViewName, Vec<Document>), Status> {
    let newest = ViewChoice { choice: Some(Choice::Fresh(Freshness { refresh: true, at_least_seq: 0 })) };
    let (mut view, mut documents, mut after) = (newest, Vec::new(), String::new());
    loop {
        let request = ListRowsRequest {
            shard: Some(shard_ref(uid, shard)),
            view: Some(view),
            projection: Some(Projection { include_vectors: true, ..Projection::default() }),
            after_folded: after,
            max_rows: 1000,
            max_bytes: 1 << 20,
            ..ListRowsRequest::default()
        };
        let answer = node.clone().list_rows(request).await?.into_inner();
        let name = answer.view.unwrap();
        view = ViewChoice { choice: Some(Choice::Named(name)) };
        documents.extend(answer.documents);
        after = answer.next_after;
        if after.is_empty() {
            return Ok((name, documents));
        }
    }
}

/// Has a node do, or drop, all writes of a shard that it was sent before: by one of its own, which changes nothing.
pub async fn flush_writes(node: &NodeClient, uid: &str, shard: u32) -> Result<(), Status> {
    let ops = vec![LogOp { op: Some(Op::DeleteKey("no such key".into())) }];
    let request = WriteRequest { shard: Some(shard_ref(uid, shard)), ops };
    node.clone().write(request).await.map(drop)
}
