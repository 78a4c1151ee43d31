//! Imports as streams: each batch is answered in order, the first fault ends the stream and is told, what was
//! acknowledged stays.

#![allow(clippy::unwrap_used)]

use antiphon_proto::error::ErrorKind as Kind;
use antiphon_proto::v1::*;
use antiphon_tests::client::Client;
use antiphon_tests::contract::{check, prepare, still_serves};
use antiphon_tests::local::{Local, LocalBuilder, wait_until};
use antiphon_tests::raw::{Raw, field, frame};
use antiphon_tests::sample::*;
use prost::Message;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

fn batch(collection: &str, keys: &[&str]) -> ImportDocumentsRequest {
    let documents = keys.iter().map(|key| document(key, &[1.0, 0.5], "apple")).collect();
    ImportDocumentsRequest { collection: collection.into(), documents }
}

/// All answers of a stream, and the status that ends it.
async fn import(client: &Client, requests: Vec<ImportDocumentsRequest>) -> (Vec<u64>, Option<Status>) {
    let stream = tokio_stream::iter(requests);
    let mut answers = client.documents.clone().import_documents(stream).await.unwrap().into_inner();
    let mut counts = Vec::new();
    loop {
        match answers.message().await {
            Ok(Some(answer)) => counts.push(answer.num_imported),
            Ok(None) => return (counts, None),
            Err(status) => return (counts, Some(status)),
        }
    }
}

async fn server() -> Local {
    let server = LocalBuilder::new().coordinator_config(|config| config.max_message_bytes = 1 << 20).start().await;
    prepare(&server).await;
    server.client.create(collection("c", 2, schema(2, Metric::Cosine))).await.unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_answered_in_order_and_may_leave_the_name_out_after_the_first() {
    let server = server().await;
    let client = &server.client;
    let requests = vec![batch("c", &["a", "b"]), batch("", &["c"]), batch("c", &[]), batch("", &["A", "d", "a"])];
    let (counts, end) = import(client, requests).await;
    assert_eq!(counts, [2, 3, 3, 6]);
    assert!(end.is_none(), "{end:?}");
    assert_eq!(client.count("c").await.unwrap(), 4);
    assert_eq!(import(client, vec![]).await.0, [0_u64; 0]);
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_fault_ends_the_stream_and_what_was_acknowledged_stays() {
    let server = server().await;
    let client = &server.client;
    let bad_vector = ImportDocumentsRequest {
        collection: String::new(),
        documents: vec![document("good", &[1.0, 1.0], ""), document("bad", &[1.0], "")],
    };
    let too_large = ImportDocumentsRequest {
        collection: String::new(),
        documents: vec![document("large", &[], &"word ".repeat(300_000))],
    };
    let cases = [
        (batch("probe", &["x"]), Kind::ArgumentInvalid),
        (bad_vector, Kind::DimensionMismatch),
        (too_large, Kind::TooLarge),
        (batch("", &[" "]), Kind::KeyInvalid),
    ];
    for (n, (bad, kind)) in cases.into_iter().enumerate() {
        let key = format!("k{n}");
        let (counts, end) = import(client, vec![batch("c", &[&key]), bad, batch("c", &["never"])]).await;
        assert_eq!(counts, [1], "{kind:?}");
        check(&end.unwrap(), kind);
        assert_eq!(
            client.get("c", &[&key, "good", "bad", "never"]).await.unwrap().missing_keys,
            ["good", "bad", "never"]
        );
    }
    for name in ["", "nobody"] {
        let (counts, end) = import(client, vec![batch(name, &["k"])]).await;
        assert_eq!(counts, [0_u64; 0]);
        check(&end.unwrap(), Kind::CollectionNotFound);
    }
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_message_end_the_stream_with_an_error_of_the_contract() {
    let server = server().await;
    let raw = Raw::connect(&server.url).await;
    let good = frame(&batch("c", &["raw"]).encode_to_vec());
    for bad in [frame(&field(1, b"\xff")), vec![1, 0, 0, 0, 1, 0], vec![0, 0, 0, 0, 9, 1, 2]] {
        let body = [good.clone(), bad].concat();
        let answer = raw.send("antiphon.v1.DocumentService/ImportDocuments", &[], &body, true).await;
        assert_eq!(ImportDocumentsResponse::decode(&answer.body[5..]).unwrap().num_imported, 1);
        check(&answer.status, Kind::MessageMalformed);
    }
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_importer_that_vanishes_loses_nothing_that_was_acknowledged() {
    let server = server().await;
    let client = &server.client;
    let (requests, stream) = tokio::sync::mpsc::channel(1);
    let mut answers =
        client.documents.clone().import_documents(ReceiverStream::new(stream)).await.unwrap().into_inner();
    let mut acknowledged = 0;
    for n in 0..20 {
        requests.send(batch("c", &[&format!("v{n}")])).await.unwrap();
        if n < 10 {
            acknowledged = answers.message().await.unwrap().unwrap().num_imported;
        }
    }
    drop((answers, requests));
    assert_eq!(acknowledged, 10);
    wait_until(std::time::Duration::from_secs(5), || async { client.count("c").await.unwrap() >= 10 }).await;
    assert!(client.count("c").await.unwrap() <= 20);
    still_serves(client).await;
}
