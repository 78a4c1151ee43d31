//! Traces as a collector gets them: one search over two nodes and three shards is one tree of spans.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use antiphon_proto::v1::*;
use antiphon_tests::cluster::{Cluster, ClusterBuilder};
use antiphon_tests::collector::{Collector, Span};
use antiphon_tests::local::wait_until;
use antiphon_tests::raw::Raw;
use antiphon_tests::sample::*;
use prost::Message;
use tonic::Code;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
const SEARCH: &str = "antiphon.v1.HybridSearchService/SearchHybrid";
const NODE: &str = "antiphon.internal.v1.NodeService";

fn parent(trace: &str, is_sampled: bool) -> String {
    format!("00-{trace}-{CALLER}-0{}", u8::from(is_sampled))
}

async fn start(url: &str, sample_share: f64) -> (Cluster, Raw) {
    let builder = ClusterBuilder::roles(2, 1).set("traces.endpoint", url).set("traces.sample_share", sample_share);
    let cluster = builder.set("sealing.seal_rows", 100).start().await;
    let client = cluster.client(0);
    client.create(collection("c", 3, schema(2, Metric::Cosine))).await.unwrap();
    let documents = (0..400).map(|n| document(&format!("k{n}"), &[1.0, n as f32], "some words")).collect();
    client.upsert("c", documents).await.unwrap();
    let raw = Raw::connect(cluster.coordinators[0].url()).await;
    (cluster, raw)
}

/// The children of a span, by name.
fn children<'a>(spans: &'a [Span], of: &Span) -> BTreeMap<&'a str, Vec<&'a Span>> {
    let mut by_name: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.parent == of.id) {
        assert!(span.begin_ns >= of.begin_ns, "{} begins before its parent {}", span.name, of.name);
        by_name.entry(&span.name).or_default().push(span);
    }
    by_name
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hybrid_search_over_three_shards_is_one_tree() {
    let (collector, url) = Collector::start().await;
    let (_cluster, raw) = start(&url, 0.0).await;
    let request = hybrid_search(&[1.0, 2.0], "some words", options("c", 1, 5));
    // One that the caller does not want to be traced, one without a word of it, and one whose word makes no sense.
    let unsampled = parent("11111111111111111111111111111111", false);
    for traceparent in [Some(unsampled.as_str()), None, Some("00-zz-1-01")] {
        let headers: Vec<(&str, &str)> = traceparent.iter().map(|value| ("traceparent", *value)).collect();
        assert_eq!(raw.call_with(SEARCH, &headers, &request).await.status.code(), Code::Ok);
    }
    let traceparent = parent(TRACE, true);
    let answer = raw.call_with(SEARCH, &[("traceparent", &traceparent)], &request).await;
    assert_eq!(answer.status.code(), Code::Ok);
    let num_matches = SearchResponse::decode(&answer.body[5..]).unwrap().matches.len();
    assert_eq!(num_matches, 5);

    let count = |spans: &[Span], name: &str, kind: i32| {
        let is_it = |span: &&Span| span.kind == kind && (span.name == name || span.name == format!("{NODE}/{name}"));
        spans.iter().filter(is_it).count()
    };
    // The root ends last, but each process sends by itself.
    let (root_name, collector_ref) = (SEARCH, &collector);
    wait_until(Duration::from_secs(20), || async move {
        let spans = collector_ref.of_trace(TRACE);
        spans.iter().any(|span| span.name == root_name)
            && count(&spans, "window", 1) == 6
            && count(&spans, "FetchDocuments", 2) >= 1
    })
    .await;
    let spans = collector.of_trace(TRACE);
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent == CALLER).collect();
    let [root] = roots.as_slice() else { panic!("{roots:?}") };
    assert_eq!((root.name.as_str(), root.kind, root.process.as_str()), (SEARCH, 2, "coordinator-0"));
    for (key, value) in [
        ("rpc.system", "grpc"),
        ("rpc.service", "antiphon.v1.HybridSearchService"),
        ("rpc.method", "SearchHybrid"),
        ("rpc.grpc.status_code", "0"),
        ("client.address", "127.0.0.1"),
    ] {
        assert_eq!(root.attributes.get(key).map(String::as_str), Some(value), "{key} in {root:?}");
    }
    let phases = children(&spans, root);
    let names: Vec<&str> = phases.keys().copied().collect();
    assert_eq!(names, ["fetch", "merge", "statistics", "turn", "validate", "windows"]);
    // Each shard is asked once for its statistics and once for its windows, by a call that a node knows as its parent.
    for (phase, method) in [("statistics", "OpenView"), ("windows", "SearchWindows")] {
        let calls = &children(&spans, phases[phase][0])[format!("{NODE}/{method}").as_str()];
        let mut shards: Vec<&str> = calls.iter().map(|call| call.attributes["antiphon.shard"].as_str()).collect();
        shards.sort_unstable();
        assert_eq!(shards, ["0", "1", "2"], "{phase}");
        for call in calls {
            assert_eq!((call.kind, call.process.as_str()), (3, "coordinator-0"));
            let served = &children(&spans, call)[format!("{NODE}/{method}").as_str()];
            let [served] = served.as_slice() else { panic!("{served:?}") };
            assert_eq!(served.kind, 2);
            assert!(served.process.starts_with("node-") && call.attributes["server.address"] == "127.0.0.1");
            if phase == "windows" {
                let windows = &children(&spans, served)["window"];
                let mut channels: Vec<&str> =
                    windows.iter().map(|window| window.attributes["antiphon.channel"].as_str()).collect();
                channels.sort_unstable();
                assert_eq!(channels, ["keyword", "vector"]);
                assert!(windows.iter().all(|window| window.attributes.contains_key("antiphon.wait_ms")));
            }
        }
    }
    assert!(spans.iter().all(|span| span.status != 2), "nothing failed");
    // Nothing of what was asked or found is told.
    assert!(!format!("{spans:?}").contains("words"));
    let others: Vec<Span> = collector.spans().into_iter().filter(|span| span.trace != TRACE).collect();
    assert!(others.iter().all(|span| span.name == "seal" || span.name == "merge segments"), "{others:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_failures_and_background_work_are_traced() {
    let (collector, url) = Collector::start().await;
    let (mut cluster, raw) = start(&url, 1.0).await;
    let answer = raw.call_with(SEARCH, &[], &hybrid_search(&[1.0], "some words", options("c", 1, 5))).await;
    assert_eq!(answer.status.code(), Code::InvalidArgument);
    let collector_ref = &collector;
    wait_until(Duration::from_secs(20), || async move {
        ["append", "apply"].iter().all(|name| collector_ref.spans().iter().any(|span| span.name == *name))
    })
    .await;
    cluster.nodes[0].kill();
    cluster.nodes[1].kill();
    let request = hybrid_search(&[1.0, 2.0], "some words", options("c", 1, 5));
    let late = raw.call_with(SEARCH, &[("grpc-timeout", "700m")], &request).await;
    assert!(matches!(late.status.code(), Code::Unavailable | Code::DeadlineExceeded), "{:?}", late.status);
    let spans = || collector.spans();
    let has = |name: &str, more: &dyn Fn(&Span) -> bool| spans().iter().any(|span| span.name == name && more(span));
    wait_until(Duration::from_secs(20), || async {
        has(SEARCH, &|span| span.status == 2)
            && has(SEARCH, &|span| span.attributes.get("rpc.grpc.status_code").is_some_and(|code| code == "3"))
            && has("antiphon.v1.DocumentService/UpsertDocuments", &|_| true)
    })
    .await;
    let all = spans();
    let bad =
        all.iter().find(|span| span.attributes.get("rpc.grpc.status_code").is_some_and(|code| code == "3")).unwrap();
    assert_eq!(bad.status, 0, "the caller's fault is none of the server's");
    assert!(all.iter().any(|span| span.kind == 3 && span.status == 2), "a call to a node that is gone");
    let upsert = all.iter().find(|span| span.name == "antiphon.v1.DocumentService/UpsertDocuments").unwrap();
    let of_write = collector.of_trace(&upsert.trace);
    for name in ["append", "apply"] {
        let span =
            of_write.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {of_write:?}"));
        let parent = of_write.iter().find(|parent| parent.id == span.parent).unwrap();
        assert_eq!((parent.name.clone(), parent.kind), (format!("{NODE}/Write"), 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there_harms_nobody_and_is_told_once() {
    let builder = ClusterBuilder::serve(1).set("traces.endpoint", "http://127.0.0.1:1").set("traces.sample_share", 1);
    let mut cluster = builder.start().await;
    let client = cluster.client(0);
    client.create(collection("c", 1, schema(2, Metric::Cosine))).await.unwrap();
    for round in 0..4 {
        client.upsert("c", vec![document(&format!("k{round}"), &[1.0, 0.0], "words")]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    assert_eq!(client.count("c").await.unwrap(), 4);
    cluster.serves[0].terminate();
    assert!(cluster.serves[0].ended(Duration::from_secs(30)).await.success());
    let log = cluster.serves[0].log_tail();
    assert_eq!(log.matches("spans are lost").count(), 1, "{log}");
}
