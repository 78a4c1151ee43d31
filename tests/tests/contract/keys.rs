//! What one key is, as callers meet it: duplicates, letter case, generated keys, keys of every strange kind.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use antiphon_proto::error::ErrorKind as Kind;
use antiphon_proto::v1::*;
use antiphon_store::Store;
use antiphon_tests::client::Client;
use antiphon_tests::contract::{prepare, refused_for, still_serves};
use antiphon_tests::local::LocalBuilder;
use antiphon_tests::sample::*;

/// All keys that a search for `apple` finds, in order of rank.
async fn found(client: &Client, collection: &str) -> Vec<String> {
    let answer = client.search_keyword(keyword_search("apple", options(collection, 1, 1000))).await.unwrap();
    answer.matches.into_iter().map(|found| found.key).collect()
}

fn apple(key: &str, words: &str) -> Document {
    document(key, &[1.0, 0.0], &format!("apple {words}"))
}

async fn text_of(client: &Client, collection: &str, key: &str) -> String {
    let mut got = client.get(collection, &[key]).await.unwrap();
    match got.documents.remove(0).fields.remove("t").unwrap().kind {
        Some(value::Kind::String(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_key_the_last_one_wins() {
    let server = LocalBuilder::new().small_segments(10).start().await;
    let client = &server.client;
    for shards in [1, 3] {
        let name = &format!("c{shards}");
        client.create(collection(name, shards, schema(2, Metric::Cosine))).await.unwrap();
        let documents = vec![apple("Doc", "one"), apple("other", "x"), apple("DOC", "two"), apple("doc", "three")];
        let answer = client.upsert(name, documents).await.unwrap();
        assert_eq!(answer.keys, ["Doc", "other", "DOC", "doc"]);
        for _ in 0..2 {
            assert_eq!(client.count(name).await.unwrap(), 2);
            assert_eq!(found(client, name).await, ["doc", "other"]);
            assert_eq!(text_of(client, name, "dOC").await, "apple three");
            server.settle(|replica| replica.num_live_rows == 0).await;
        }
        client.upsert(name, vec![apple("dOc", "four")]).await.unwrap();
        assert_eq!(client.count(name).await.unwrap(), 2);
        assert_eq!(text_of(client, name, "doc").await, "apple four");
        let got = client.get(name, &["DOC", "doc", "nobody", "Nobody"]).await.unwrap();
        assert_eq!(got.documents.iter().map(|document| document.key.as_str()).collect::<Vec<_>>(), ["dOc"]);
        assert_eq!(got.missing_keys, ["nobody"]);
        assert_eq!(client.delete(name, &["doc", "DOC", "Doc"]).await.unwrap().num_deleted, 1);
        assert_eq!(client.delete(name, &["doc"]).await.unwrap().num_deleted, 0);
        assert_eq!(found(client, name).await, ["other"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn letter_case_tells_keys_apart_only_where_the_schema_says_so() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    let sensitive = Schema { key_case: KeyCase::CaseSensitive as i32, ..schema(2, Metric::Cosine) };
    client.create(collection("sensitive", 2, sensitive)).await.unwrap();
    client.create(collection("insensitive", 2, schema(2, Metric::Cosine))).await.unwrap();
    let spellings =
        ["straße", "STRASSE", "STRAßE", "ı", "I", "i", "İ", "ſ", "s", "\u{212a}", "k", "ς", "σ", "Σ", "ά", "Ά"];
    for spelling in spellings {
        for name in ["sensitive", "insensitive"] {
            client.upsert(name, vec![apple(spelling, "x")]).await.unwrap();
        }
    }
    assert_eq!(client.count("sensitive").await.unwrap(), spellings.len() as u64);
    let kept: BTreeSet<String> = found(client, "insensitive").await.into_iter().collect();
    let expected = ["STRASSE", "STRAßE", "ı", "i", "İ", "ſ", "s", "\u{212a}", "k", "Σ", "Ά"];
    assert_eq!(kept, expected.map(str::to_owned).into());
    assert_eq!(client.delete("sensitive", &["Straße", "i"]).await.unwrap().num_deleted, 1);
    assert_eq!(client.get("sensitive", &["I", "i"]).await.unwrap().missing_keys, ["i"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_without_a_key_are_given_one_that_is_told() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    client.create(collection("c", 3, schema(2, Metric::Cosine))).await.unwrap();
    let documents = vec![apple("", "one"), apple("mine", "two"), apple("", "three")];
    let keys = client.upsert("c", documents.clone()).await.unwrap().keys;
    assert_eq!((keys.len(), keys[1].as_str()), (3, "mine"));
    let more = client.upsert("c", vec![Document::default(); 500]).await.unwrap().keys;
    let distinct: BTreeSet<&String> = keys.iter().chain(&more).collect();
    assert_eq!(distinct.len(), 503);
    assert!(distinct.iter().all(|key| !key.is_empty()));
    assert_eq!(client.count("c").await.unwrap(), 503);
    assert_eq!(text_of(client, "c", &keys[2]).await, "apple three");
    // Sent again they are other documents.
    client.upsert("c", documents).await.unwrap();
    assert_eq!(client.count("c").await.unwrap(), 505);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_key_that_is_not_blank_names_its_document() {
    let store = Store::open("memory://").unwrap();
    let server = LocalBuilder::new().store(store.clone()).small_segments(4).start().await;
    prepare(&server).await;
    let client = &server.client;
    client.create(collection("c", 2, schema(2, Metric::Cosine))).await.unwrap();
    let longest = ["k".repeat(1024), "🦀".repeat(256), format!("{}a", "ä".repeat(511)), "ɐ".repeat(512)];
    let strange = [
        "\u{0}",
        "a\u{0}",
        "a\u{0}b",
        "a\nb",
        " a ",
        "../../etc/passwd",
        "a/b",
        "\u{200b}",
        "\u{feff}",
        "\u{202e}",
        ".",
        "..",
        "%2e",
        "\"",
        "'; DROP TABLE documents; --",
        "e\u{301}",
        "é",
        "\u{10ffff}",
        "🦀",
        "key:1",
        "-1",
        "null",
        "{}",
    ];
    let keys: Vec<&str> = longest.iter().map(String::as_str).chain(strange).collect();
    let documents: Vec<Document> = keys.iter().map(|key| apple(key, "x")).collect();
    let answer = client.upsert("c", documents).await.unwrap();
    assert_eq!(answer.keys, keys);
    let check = |client: Client| {
        let keys = keys.clone();
        async move {
            let got = client.get("c", &keys).await.unwrap();
            assert_eq!(got.documents.iter().map(|document| document.key.as_str()).collect::<Vec<_>>(), keys);
            let mut expected: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            // All have the same score, so their order is that of their folded keys.
            expected.sort_by_cached_key(|key| antiphon_proto::key::fold(key).into_owned());
            assert_eq!(found(&client, "c").await, expected);
        }
    };
    check(client.clone()).await;
    server.settle(|replica| replica.num_live_rows == 0).await;
    check(client.clone()).await;
    server.stop().await;
    let server = LocalBuilder::new().store(store).start().await;
    let client = &server.client;
    check(client.clone()).await;
    let too_long = "k".repeat(64 << 10);
    for bad in [&too_long[..1025], &too_long, "\u{2028}", "\r\n", "\u{3000}"] {
        refused_for(client.upsert("c", vec![apple(bad, "x")]).await, Kind::KeyInvalid, "documents[0].key");
    }
    let deleted = client.delete("c", &keys).await.unwrap();
    assert_eq!(deleted.num_deleted, keys.len() as u64);
    assert_eq!(client.count("c").await.unwrap(), 0);
    still_serves(client).await;
}
