//! `/metrics` of a real process: what it tells agrees with what was done, and with docs/metrics.md.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use antiphon_proto::v1::Metric;
use antiphon_tests::cluster::{ClusterBuilder, DIMENSIONS, document_of, vector_of};
use antiphon_tests::local::wait_until;
use antiphon_tests::sample::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A port that was free a moment ago.
async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// What an HTTP server answers to a GET.
async fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The sum of the series whose lines begin with a text.
fn sum(text: &str, begin: &str) -> f64 {
    let values = text.lines().filter(|line| line.starts_with(begin)).filter_map(|line| line.rsplit_once(' '));
    values.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
}

/// Names of metrics that were told of, without what histograms add to theirs.
fn names_in(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_is_counted() {
    let port = free_port().await;
    let builder =
        ClusterBuilder::serve(1).set("sealing.seal_rows", 50).set("metrics.listen", format!("127.0.0.1:{port}"));
    let cluster = builder.start().await;
    let client = cluster.client(0);
    client.create(collection("c", 2, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    let documents = (1..=400).map(|generation| document_of(&format!("k{generation}"), generation)).collect();
    client.upsert("c", documents).await.unwrap();
    client.delete("c", &["k1", "k2"]).await.unwrap();
    for _ in 0..3 {
        client.search_vector(vector_search(&vector_of("k7", 7), options("c", 1, 10))).await.unwrap();
    }
    client.search_vector(vector_search(&[0.0], options("c", 1, 10))).await.unwrap_err();
    client.search_vector(vector_search(&[1.0], options("absent", 1, 10))).await.unwrap_err();
    assert_eq!(client.export("c", None).await.unwrap().len(), 398);
    let sealed =
        || async { sum(&get(port, "/metrics").await, "antiphon_background_seconds_count{task=\"seal\"") >= 2.0 };
    wait_until(Duration::from_secs(30), sealed).await;

    let text = get(port, "/metrics").await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("text/plain; version=0.0.4"), "{text}");
    let calls = |method: &str, code: &str| {
        let service = if method.starts_with("Search") { "VectorSearchService" } else { "DocumentService" };
        sum(
            &text,
            &format!(
                "antiphon_rpc_duration_seconds_count{{service=\"antiphon.v1.{service}\",method=\"{method}\",code=\"{code}\"}}"
            ),
        )
    };
    assert_eq!(calls("SearchVector", "OK"), 3.0, "{text}");
    assert_eq!(calls("SearchVector", "INVALID_ARGUMENT"), 1.0, "{text}");
    assert_eq!(calls("SearchVector", "NOT_FOUND"), 1.0, "{text}");
    assert_eq!(calls("ExportDocuments", "OK"), 1.0, "{text}");
    assert_eq!(sum(&text, "antiphon_rpc_in_flight "), 0.0, "{text}");
    assert_eq!(sum(&text, "antiphon_shard_documents{collection=\"c\""), 398.0, "{text}");
    assert_eq!(sum(&text, "antiphon_written_operations_total "), 402.0, "{text}");
    assert_eq!(sum(&text, "antiphon_search_phase_seconds_count{phase=\"gather\"}"), 3.0, "{text}");

    // Nobody makes series by making up methods, and nothing else is served here.
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/made.Up/Method");
    let mut caller = tonic::client::Grpc::new(antiphon_tests::secure::connect_lazy(cluster.serves[0].url()));
    caller.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<(), ()>::default();
    caller.unary(tonic::Request::new(()), path, codec).await.unwrap_err();
    let text = get(port, "/metrics").await;
    assert!(!text.contains("made"), "{text}");
    assert!(text.contains("code=\"UNIMPLEMENTED\""), "{text}");
    assert!(get(port, "/").await.starts_with("HTTP/1.1 404"));
    assert!(get(port, "/readyz").await.starts_with("HTTP/1.1 200"));
}

/// Metrics that a server alone, without trouble and without an embedder, has no reason to tell of.
const OF_OTHERS: &[&str] = &[
    "antiphon_search_turn_seconds",
    "antiphon_searches_shed_total",
    "antiphon_spans_total",
    "antiphon_calls_refused_total",
    "antiphon_embed_seconds",
    "antiphon_hedged_reads_total",
    "antiphon_partial_answers_total",
    "antiphon_retried_reads_total",
    "antiphon_search_refused_total",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_document_names_each_metric() {
    let port = free_port().await;
    let builder =
        ClusterBuilder::serve(1).set("sealing.seal_rows", 20).set("metrics.listen", format!("127.0.0.1:{port}"));
    let cluster = builder.start().await;
    let client = cluster.client(0);
    client.create(collection("c", 1, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    let documents = (1..=60).map(|generation| document_of(&format!("k{generation}"), generation)).collect();
    client.upsert("c", documents).await.unwrap();
    client.search_vector(vector_search(&vector_of("k7", 7), options("c", 1, 10))).await.unwrap();
    let sealed = || async { get(port, "/metrics").await.contains("task=\"seal\"") };
    wait_until(Duration::from_secs(30), sealed).await;
    let told = names_in(&get(port, "/metrics").await);
    let document = include_str!("../../../docs/metrics.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut described: BTreeSet<String> = rows.map(|row| row.split('`').next().unwrap().to_owned()).collect();
    for name in OF_OTHERS {
        assert!(described.remove(*name), "{name} is not described");
    }
    assert_eq!(told, described);
}
