//! Calls of a node while its shards are closed and opened under them.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};

use antiphon_proto::store::{Catalog, CollectionEntry, LogOp};
use antiphon_store::{CatalogStore, Store, StoreError};

use super::*;
use crate::config::NodeConfig;

/// Between finding a shard and queueing in it, a write that meets a closing shard has not happened, and goes on in the shard
/// that is opened next.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_write_that_meets_a_shard_as_it_closes_goes_on_in_the_next() {
    let uid = "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned();
    let store = Store::open("memory://").unwrap();
    let collection = v1::Collection {
        name: "c".into(),
        uid: uid.clone(),
        shard_count: 1,
        schema: Some(v1::Schema::default()),
        ..v1::Collection::default()
    };
    let entry = CollectionEntry { collection: Some(collection), ..CollectionEntry::default() };
    CatalogStore::new(store.clone())
        .update(|_| Ok::<_, StoreError>(Catalog { collections: vec![entry.clone()], ..Catalog::default() }))
        .await
        .unwrap();
    let node = Node::start(NodeConfig::default(), store).await.unwrap();
    let server = NodeServer::new(Arc::clone(&node));
    let reference = ShardRef { collection_uid: uid.clone(), shard: 0, schema_version: 0 };
    let is_done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (server, reference, is_done) = (server.clone(), reference.clone(), Arc::clone(&is_done));
            tokio::spawn(async move {
                let mut number = 0;
                while !is_done.load(Ordering::Relaxed) {
                    let document = v1::Document { key: format!("w{writer}-{number}"), ..v1::Document::default() };
                    let ops = vec![LogOp { op: Some(Op::Upsert(document)) }];
                    let request = WriteRequest { shard: Some(reference.clone()), ops };
                    server.write(Request::new(request)).await.unwrap();
                    number += 1;
                }
                number
            })
        })
        .collect();
    let mut num_closed = 0;
    while num_closed < 200 && writers.iter().all(|writer| !writer.is_finished()) {
        if node.find_open(&reference).await.is_some() {
            node.close(&(uid.clone(), 0)).await;
            num_closed += 1;
        }
        tokio::task::yield_now().await;
    }
    is_done.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    let shard = node.shard(&reference).await.unwrap();
    let all = Freshness { refresh: true, at_least_seq: 0 };
    let view = shard.fresh(all, Deadline::after(std::time::Duration::from_secs(20))).await.unwrap();
    assert_eq!(view.num_docs(), written);
    node.stop().await;
}
