//! An export whose reader dawdles: the state of its beginning, whatever is written and merged meanwhile, and little memory.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use antiphon_proto::v1::*;
use antiphon_tests::client::Client;
use antiphon_tests::cluster::ClusterBuilder;
use antiphon_tests::local::wait_until;
use antiphon_tests::sample::*;

const NUM_DOCS: usize = 1_200;
/// Bytes of a document, so that a batch of 100 is below any message limit.
const BYTES: usize = 32 << 10;
/// What exports that stand still may take, all of them together, beside the noise of allocations: 4 of them would take
/// 150 MiB if the server read on.
const ALLOWED: u64 = 48 << 20;

/// Documents of one generation, with a value that is stored and not indexed.
fn generation(number: i64, keys: std::ops::Range<usize>) -> Vec<Document> {
    keys.map(|key| {
        let mut document = document(&format!("k{key:04}"), &[1.0, key as f32], "red apples");
        let number = Value { kind: Some(value::Kind::Int64(number)) };
        document.fields.extend([("generation".to_owned(), number), ("load".to_owned(), text(&"x".repeat(BYTES)))]);
        document
    })
    .collect()
}

async fn write(client: &Client, number: i64) {
    for first in (0..NUM_DOCS).step_by(100) {
        client.upsert("c", generation(number, first..first + 100)).await.unwrap();
    }
}

/// Memory of a process that no file stands behind, in bytes.
fn anonymous_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

async fn open(client: &Client) -> tonic::Streaming<ExportDocumentsResponse> {
    let request = ExportDocumentsRequest { collection: "c".into(), filter: None, include_vectors: true };
    client.documents.clone().export_documents(request).await.unwrap().into_inner()
}

async fn settled(client: &Client, max_segments: u64) {
    wait_until(Duration::from_secs(60), || async {
        let cluster = client.describe_cluster().await.unwrap();
        let mut replicas = cluster.shards.iter().flat_map(|shard| &shard.replicas);
        replicas.all(|replica| replica.num_live_rows == 0 && replica.num_segments <= max_segments)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_dawdles_gets_one_state_and_costs_little_memory() {
    let builder = ClusterBuilder::serve(1).set("sealing.seal_rows", 100).set("sealing.seal_age_s", 1);
    let cluster = builder.set("merging.segments_per_tier", 3).start().await;
    let client = cluster.client(0);
    client.create(collection("c", 2, schema(2, Metric::Cosine))).await.unwrap();
    write(&client, 1).await;
    settled(&client, u64::MAX).await;

    // Each on a connection of its own, for connections bound what is on its way too.
    let pid = cluster.serves[0].pid();
    let before = anonymous_memory(pid);
    let mut readers = Vec::new();
    for _ in 0..4 {
        let client = cluster.client(0);
        let mut stream = open(&client).await;
        let first = stream.message().await.unwrap().unwrap();
        readers.push((client, stream, first.documents));
    }
    // A whole export by another reader: what these could have read ahead in that time, they would have.
    assert_eq!(client.export("c", None).await.unwrap().len(), NUM_DOCS);
    let grown = anonymous_memory(pid).saturating_sub(before);
    assert!(grown < ALLOWED, "{} MiB for exports that stand still", grown >> 20);

    // Everything is replaced, a part deleted, and the segments that were read from are merged away.
    write(&client, 2).await;
    let gone: Vec<String> = (0..NUM_DOCS).step_by(3).map(|key| format!("k{key:04}")).collect();
    client.delete("c", &gone.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
    settled(&client, 4).await;

    for (_client, mut stream, mut documents) in readers {
        while let Some(answer) = stream.message().await.unwrap() {
            documents.extend(answer.documents);
        }
        let found: BTreeSet<&str> = documents.iter().map(|document| document.key.as_str()).collect();
        assert_eq!((found.len(), documents.len()), (NUM_DOCS, NUM_DOCS));
        for document in &documents {
            assert_eq!(document.fields["generation"].kind, Some(value::Kind::Int64(1)), "{}", document.key);
            assert_eq!((document.vectors.len(), document.fields.len()), (1, 3), "{}", document.key);
        }
    }
    let now = client.export("c", None).await.unwrap();
    assert_eq!(now.len(), NUM_DOCS - gone.len());
    assert!(now.iter().all(|document| document.fields["generation"].kind == Some(value::Kind::Int64(2))));
}
