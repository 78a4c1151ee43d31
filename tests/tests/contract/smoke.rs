//! The main job in small: a collection, documents, pages in which the channels take turns.

#![allow(clippy::unwrap_used)]

use antiphon_proto::v1::{Channel, Metric};
use antiphon_tests::local::LocalBuilder;
use antiphon_tests::sample::*;

#[tokio::test(flavor = "multi_thread")]
async fn documents_in_one_page_out() {
    let server = LocalBuilder::new().small_segments(10).start().await;
    let client = &server.client;
    for shards in [1, 3] {
        let name = format!("c{shards}");
        client.create(collection(&name, shards, schema(2, Metric::Cosine))).await.unwrap();
        let documents = (0..30)
            .map(|n| document(&format!("d{n}"), &[1.0, n as f32], if n % 3 == 0 { "red apple" } else { "green pear" }))
            .collect();
        client.upsert(&name, documents).await.unwrap();
        for round in 0..2 {
            let response =
                client.search_hybrid(hybrid_search(&[1.0, 0.0], "apple", options(&name, 1, 6))).await.unwrap();
            assert_eq!(keys(&response), ["d0", "d1", "d12", "d2", "d15", "d3"], "{shards} shards, round {round}");
            assert_eq!(response.matches[2].channel(), Channel::Keyword);
            assert!(response.has_more);
            assert_eq!(response.last_page, 16);
            assert_eq!(client.count(&name).await.unwrap(), 30);
            server.settle(|replica| replica.num_live_rows == 0).await;
        }
        assert_eq!(client.delete(&name, &["D0", "d12", "nobody"]).await.unwrap().num_deleted, 2);
        let response = client.search_hybrid(hybrid_search(&[1.0, 0.0], "apple", options(&name, 1, 3))).await.unwrap();
        assert_eq!(keys(&response), ["d1", "d15", "d2"]);
        assert_eq!(client.get(&name, &["d0", "d1"]).await.unwrap().missing_keys, ["d0"]);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_nothing_but_a_vector_are_read_and_sealed() {
    let server = LocalBuilder::new().small_segments(10).start().await;
    let client = &server.client;
    client.create(collection("bare", 1, schema(2, Metric::Dot))).await.unwrap();
    client.upsert("bare", (0..20).map(|n| document(&format!("d{n}"), &[1.0, n as f32], "")).collect()).await.unwrap();
    server.settle(|replica| replica.num_live_rows == 0 && replica.num_segments > 0).await;
    let response = client.search_vector(vector_search(&[0.0, 1.0], options("bare", 1, 2))).await.unwrap();
    assert_eq!(keys(&response), ["d19", "d18"]);
    assert_eq!(client.get("bare", &["d3"]).await.unwrap().documents.len(), 1);
    server.stop().await;
}
