//! The whole engine over a real S3 server: what was acknowledged is there after every node's disk is gone.

#![allow(clippy::unwrap_used)]

use antiphon_proto::v1::Metric;
use antiphon_tests::local::LocalBuilder;
use antiphon_tests::sample::*;

#[tokio::test(flavor = "multi_thread")]
async fn segments_and_log_survive_the_nodes_in_s3() {
    let Some(bucket) = crate::s3::Bucket::start() else { return };
    let store = bucket.store("engine");
    let server = LocalBuilder::new().store(store.clone()).small_segments(40).start().await;
    let client = &server.client;
    client.create(collection("c", 2, schema(4, Metric::Cosine))).await.unwrap();
    let vector = |n: u32| [1.0, (n % 7) as f32, (n % 11) as f32, n as f32];
    for batch in 0..4 {
        let documents = (batch * 50..batch * 50 + 50)
            .map(|n| document(&format!("d{n}"), &vector(n), if n % 5 == 0 { "red apple pie" } else { "green pear" }))
            .collect();
        client.upsert("c", documents).await.unwrap();
    }
    client.delete("c", &["d0", "d199"]).await.unwrap();
    server.settle(|replica| replica.num_live_rows == 0 && replica.num_segments > 0).await;
    client.upsert("c", vec![document("late", &vector(3), "apple")]).await.unwrap();
    let search = |page| hybrid_search(&vector(100), "apple pie", options("c", page, 10));
    let before = client.search_hybrid(search(1)).await.unwrap();
    server.stop().await;

    let again = LocalBuilder::new().store(store).small_segments(40).nodes(2).start().await;
    assert_eq!(again.client.count("c").await.unwrap(), 199);
    let after = again.client.search_hybrid(search(1)).await.unwrap();
    assert_eq!(after.matches, before.matches);
    assert!(again.client.get("c", &["d0"]).await.unwrap().documents.is_empty());
    assert_eq!(again.client.get("c", &["late"]).await.unwrap().documents.len(), 1);
    again.stop().await;
}
