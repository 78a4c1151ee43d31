//! What goes in comes out: values keep their types, vectors their bits, keys their spelling; from memory, from segments,
//! after a restart, and over the network between coordinator and node.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::*;
use antiphon_proto::{error::ErrorKind, store, vector};
use antiphon_store::Store;
use antiphon_tests::contract::{prepare, refused_for, still_serves};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::sample::*;
use prost::Message;
use prost_types::Timestamp;

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn list(values: Vec<Value>) -> Value {
    value(Kind::List(ValueList { values }))
}

fn map(fields: impl IntoIterator<Item = (String, Value)>) -> Value {
    value(Kind::Map(ValueMap { fields: fields.into_iter().collect() }))
}

fn nested(levels: usize, innermost: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(innermost, |inner, _| wrap(inner))
}

fn in_map(inner: Value) -> Value {
    map([("m".to_owned(), inner)])
}

/// One field for each thing a value can be, extremes included.
fn fields() -> BTreeMap<String, Value> {
    let time = |seconds, nanos| value(Kind::Timestamp(Timestamp { seconds, nanos }));
    let strings = ["", " ", "\0", "a\u{301}", "🦀", "\u{202e}abc", "\u{10ffff}", "\r\n\t", "<script>"];
    let mut values = vec![
        Value { kind: None },
        value(Kind::Null(0)),
        value(Kind::Bool(false)),
        value(Kind::Bool(true)),
        time(0, 0),
        time(-62_135_596_800, 0),
        time(253_402_300_799, 999_999_999),
        time(i64::MAX, i32::MAX),
        time(i64::MIN, i32::MIN),
        list(vec![]),
        map([]),
        list(vec![value(Kind::Int64(1)), value(Kind::Double(1.0)), list(vec![text("x")]), Value { kind: None }]),
        map([(String::new(), text("no name")), ("ключ".into(), in_map(value(Kind::Null(0))))]),
        nested(31, time(1, 2), in_map),
        nested(32, value(Kind::Int64(7)), in_map),
        nested(32, text("deep"), |inner| list(vec![inner])),
    ];
    values.extend([0, 1, -1, i64::MAX, i64::MIN, 1 << 53, (1 << 53) + 1].map(|number| value(Kind::Int64(number))));
    let doubles =
        [0.0, -0.0, 1.0, 0.1, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, f64::NEG_INFINITY];
    values.extend(doubles.map(|number| value(Kind::Double(number))));
    values.extend(strings.map(text));
    values.into_iter().enumerate().map(|(index, value)| (format!("f{index}"), value)).collect()
}

async fn filled(server: &Local) -> Document {
    let mut schema = schema(3, Metric::Dot);
    schema.vectors[0].element_type = ElementType::Float16 as i32;
    server.client.create(collection("c", 2, schema)).await.unwrap();
    let mut document = document("All of it", &[1e-45, -0.0, f32::MIN_POSITIVE], "apple");
    document.fields.extend(fields());
    let others = (0..8).map(|n| self::document(&format!("k{n}"), &[n as f32, 1.0, 1.0], "pear"));
    server.client.upsert("c", [document.clone()].into_iter().chain(others).collect()).await.unwrap();
    document
}

async fn check_document(server: &Local, expected: &Document) {
    let client = &server.client;
    let got = client.get("c", &["all OF it"]).await.unwrap();
    assert_eq!(got.documents, std::slice::from_ref(expected));
    let all = SearchOptions { include_vectors: true, ..options("c", 1, 10) };
    let answer = client.search_hybrid(hybrid_search(&[0.0, 1.0, 0.0], "apple", all)).await.unwrap();
    let found = answer.matches.iter().find(|found| found.key == expected.key).unwrap();
    assert_eq!(found.document.as_ref(), Some(expected));
    // assert_eq! takes −0 for 0.
    let bits = |document: &Document| {
        vector::components(&document.vectors["v"]).unwrap().iter().map(|value| value.to_bits()).collect::<Vec<u32>>()
    };
    assert_eq!(bits(&got.documents[0]), [1, 0x8000_0000, 0x0080_0000]);
    for (sent, back) in expected.fields.values().zip(got.documents[0].fields.values()) {
        if let (Some(Kind::Double(sent)), Some(Kind::Double(back))) = (&sent.kind, &back.kind) {
            assert_eq!(sent.to_bits(), back.to_bits());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_back_equal_from_memory_from_segments_and_after_restarts() {
    let store = Store::open("memory://").unwrap();
    let server = LocalBuilder::new().store(store.clone()).start().await;
    let expected = filled(&server).await;
    check_document(&server, &expected).await;
    server.stop().await;
    // From the log.
    let server = LocalBuilder::new().store(store.clone()).small_segments(4).start().await;
    check_document(&server, &expected).await;
    server.settle(|replica| replica.num_live_rows == 0).await;
    check_document(&server, &expected).await;
    server.stop().await;
    // From segments.
    let server = LocalBuilder::new().store(store).start().await;
    check_document(&server, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_back_equal_over_the_network_between_coordinator_and_nodes() {
    let server = LocalBuilder::new().nodes(2).start().await;
    let expected = filled(&server).await;
    check_document(&server, &expected).await;
}

/// 32 maps around a timestamp were accepted, but the log's reader gives up at 100 levels of messages: the entry could never
/// be read again, and the shard never opened.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_too_deep_for_the_log_bricked_its_shard() {
    let store = Store::open("memory://").unwrap();
    let server = LocalBuilder::new().store(store.clone()).start().await;
    prepare(&server).await;
    let client = &server.client;
    let time = value(Kind::Timestamp(Timestamp { seconds: 1, nanos: 0 }));
    let with = |value: Value| {
        vec![Document { key: "k".into(), fields: [("f".to_owned(), value)].into(), ..Document::default() }]
    };
    let deep = nested(32, time.clone(), in_map);
    let op = store::LogOp { op: Some(store::log_op::Op::Upsert(with(deep.clone()).remove(0))) };
    let entry = store::LogEntry { nonce: Vec::new(), ops: vec![op], schema_version: 0 };
    assert!(store::LogEntry::decode(entry.encode_to_vec().as_slice()).is_err(), "readers follow deeper now");
    refused_for(client.upsert("probe", with(deep)).await, ErrorKind::ArgumentInvalid, r#"documents[0].fields["f"]"#);
    let deep = nested(32, time.clone(), |inner| list(vec![inner]));
    refused_for(client.upsert("probe", with(deep)).await, ErrorKind::ArgumentInvalid, r#"documents[0].fields["f"]"#);
    let innermost = [map([]), value(Kind::Map(ValueMap { fields: [("x".to_owned(), Value { kind: None })].into() }))];
    for innermost in innermost {
        client.upsert("probe", with(nested(31, innermost, in_map))).await.unwrap();
    }
    client.delete("probe", &["k"]).await.unwrap();
    server.stop().await;
    let server = LocalBuilder::new().store(store).start().await;
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_forms_of_a_vector_are_the_same_vector() {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    let client = &server.client;
    let floats = |values: &[f32]| Vector { kind: Some(vector::Kind::Floats(Floats { values: values.to_vec() })) };
    use antiphon_proto::v1::vector;
    let with = |key: &str, vector: Vector| Document {
        key: key.into(),
        vectors: [("v".to_owned(), vector)].into(),
        fields: [("n".to_owned(), value(Kind::Int64(1)))].into(),
    };
    let values = [0.1, -2.5e-8];
    let le = antiphon_proto::vector::to_proto(&values);
    client.upsert("probe", vec![with("floats", floats(&values)), with("le", le.clone())]).await.unwrap();
    let got = client.get("probe", &["floats", "le"]).await.unwrap().documents;
    assert_eq!(got[0].vectors, got[1].vectors);
    assert_eq!(got[0].vectors["v"], le);
    let search = |vector| SearchVectorRequest { vector: Some(vector), ..vector_search(&[], options("probe", 1, 10)) };
    let by_floats = client.search_vector(search(floats(&values))).await.unwrap();
    let by_bytes = client.search_vector(search(le)).await.unwrap();
    assert_eq!(by_floats.matches, by_bytes.matches);
    assert_eq!(keys(&by_bytes)[..2], ["floats", "le"]);
    assert_eq!(by_bytes.matches[0].score, by_bytes.matches[1].score);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_vectors_and_text_limit_choose_what_is_returned() {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    let client = &server.client;
    let inner = map([("a".to_owned(), text("北京大学")), ("n".to_owned(), value(Kind::Int64(123_456)))]);
    let mut sent = document("chosen", &[1.0, 1.0], "a\u{301}bc apple");
    sent.fields.extend([("l".to_owned(), list(vec![text("🦀🦀🦀🦀"), inner.clone()])), ("n".to_owned(), inner)]);
    client.upsert("probe", vec![sent.clone()]).await.unwrap();
    let search = |change: &dyn Fn(&mut SearchOptions)| {
        let mut options = options("probe", 1, 10);
        change(&mut options);
        let found = client.search_vector(vector_search(&[1.0, 1.0], options));
        async move { found.await.unwrap().matches.remove(0).document.unwrap() }
    };
    let without_vectors = Document { vectors: BTreeMap::new(), ..sent.clone() };
    assert_eq!(search(&|_| ()).await, without_vectors);
    assert_eq!(search(&|options| options.include_vectors = true).await, sent);
    assert_eq!(search(&|options| options.text_limit = u32::MAX).await, without_vectors);
    let chosen = search(&|options| options.fields = vec!["n".into(), "nobody".into(), "n".into(), String::new()]).await;
    assert_eq!(chosen.fields.keys().collect::<Vec<_>>(), ["n"]);
    let none = search(&|options| options.fields = vec!["nobody".into()]).await;
    assert_eq!((none.key.as_str(), none.fields.len()), ("chosen", 0));
    let cut = search(&|options| options.text_limit = 2).await;
    let inner = map([("a".to_owned(), text("北京")), ("n".to_owned(), value(Kind::Int64(123_456)))]);
    assert_eq!(cut.fields["t"], text("a\u{301}"));
    assert_eq!(cut.fields["l"], list(vec![text("🦀🦀"), inner.clone()]));
    assert_eq!(cut.fields["n"], inner);

    let get = |fields: &[&str], include_vectors| {
        let fields = fields.iter().map(|name| (*name).to_owned()).collect();
        let request =
            GetDocumentsRequest { collection: "probe".into(), keys: vec!["chosen".into()], fields, include_vectors };
        let mut client = client.documents.clone();
        async move { client.get_documents(request).await.unwrap().into_inner().documents.remove(0) }
    };
    assert_eq!(get(&[], true).await, sent);
    assert_eq!(get(&[], false).await, without_vectors);
    assert_eq!(get(&["t"], false).await.fields.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_at_the_edges_of_float32_are_searched_with_finite_scores() {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    let client = &server.client;
    let tiny = f32::from_bits(1);
    for (metric, name) in [(Metric::Dot, "dot"), (Metric::Euclidean, "euclidean"), (Metric::Cosine, "cosine")] {
        client.create(collection(name, 1, schema(2, metric))).await.unwrap();
        let vectors = [[6e18, 0.0], [-6e18, 1.0], [1e-14, 0.0], [tiny, tiny], [0.0, 0.0], [f32::MIN_POSITIVE, -tiny]];
        let mut num_taken = 0;
        for (n, vector) in vectors.iter().enumerate() {
            let outcome = client.upsert(name, vec![document(&format!("d{n}"), vector, "apple")]).await;
            if metric == Metric::Cosine && n >= 3 {
                refused_for(outcome, ErrorKind::ZeroVector, r#"documents[0].vectors["v"]"#);
            } else {
                outcome.unwrap();
                num_taken += 1;
            }
        }
        for vector in &vectors[..3] {
            let answer = client.search_vector(vector_search(vector, options(name, 1, 10))).await.unwrap();
            assert_eq!(answer.matches.len(), num_taken, "{name} {vector:?}");
            assert!(answer.matches.iter().all(|found| found.score.is_finite()), "{name} {vector:?}: {answer:?}");
            assert!(answer.matches.is_sorted_by(|a, b| a.score >= b.score), "{name} {vector:?}");
        }
    }
    still_serves(client).await;
}

/// A segment whose documents have no fields has no block of payloads, and reading them ended in DATA_LOSS.
#[tokio::test(flavor = "multi_thread")]
async fn documents_without_fields_were_taken_for_damage() {
    let server = LocalBuilder::new().small_segments(4).start().await;
    let client = &server.client;
    client.create(collection("c", 1, schema(2, Metric::Cosine))).await.unwrap();
    for keys in [["a", "b", "c", "d"], ["e", "f", "g", "h"]] {
        client.upsert("c", keys.map(|key| document(key, &[1.0, 0.0], "")).to_vec()).await.unwrap();
        assert_eq!(client.get("c", &keys).await.unwrap().documents.len(), 4);
        server.settle(|replica| replica.num_live_rows == 0).await;
        let found = client.search_vector(vector_search(&[1.0, 0.0], options("c", 1, 10))).await.unwrap();
        assert!(found.matches.len() >= 4 && found.matches.iter().all(|found| found.document.is_some()));
    }
}

/// The same behind a block that is full.
#[tokio::test(flavor = "multi_thread")]
async fn documents_without_fields_behind_long_ones_were_taken_for_damage() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    client.create(collection("c", 1, schema(2, Metric::Cosine))).await.unwrap();
    let documents = vec![document("a", &[1.0, 0.0], &"apple ".repeat(2000)), document("b", &[1.0, 0.0], "")];
    client.upsert("c", documents).await.unwrap();
    assert_eq!(client.get("c", &["a", "b"]).await.unwrap().documents.len(), 2);
}
