//! Filters over gRPC: counts, exports and deletions against a model, in every state of the data; faults; small matches.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::filter::Condition;
use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::*;
use antiphon_tests::client::{Client, kind_of};
use antiphon_tests::filters::{attributes, equal, filter, meets, not, value};
use antiphon_tests::local::LocalBuilder;
use antiphon_tests::model::Model;
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;

const DIMS: usize = 4;

fn filtered_schema() -> Schema {
    Schema { attributes: attributes(), ..schema(DIMS as u32, Metric::Euclidean) }
}

fn random_documents(random: &mut Random, count: usize) -> Vec<Document> {
    let mut documents: Vec<_> = (0..count).map(|_| random.document(300, DIMS, Metric::Euclidean)).collect();
    documents.iter_mut().for_each(|document| random.attributes(document));
    documents
}

async fn agree(random: &mut Random, client: &Client, name: &str, model: &Model, shards: u32) {
    for _ in 0..12 {
        let asked = random.filter(3);
        let mut expected: Vec<String> = model
            .documents()
            .iter()
            .filter(|(_, held)| meets(&asked, &held.document))
            .map(|(folded, _)| model.key(folded).to_owned())
            .collect();
        assert_eq!(client.count_matching(name, &asked).await.unwrap(), expected.len() as u64, "{asked:?}");
        let exported = client.export(name, Some(&asked)).await.unwrap();
        assert!(exported.iter().all(|document| meets(&asked, document)));
        let mut found: Vec<String> = exported.into_iter().map(|document| document.key).collect();
        if shards > 1 {
            expected.sort_unstable();
            found.sort_unstable();
        }
        assert_eq!(found, expected, "{asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_exports_and_deletions_are_those_of_the_model() {
    let mut random = Random::seeded(31);
    let server = LocalBuilder::new().small_segments(40).start().await;
    for shards in [1, 3] {
        let name = format!("filtered-{shards}");
        server.client.create(collection(&name, shards, filtered_schema())).await.unwrap();
        let mut model = Model::new(filtered_schema());
        for round in 0..4 {
            let documents = random_documents(&mut random, 90);
            server.client.upsert(&name, documents.clone()).await.unwrap();
            model.upsert(&documents);
            if round % 2 == 1 {
                server.settle(|replica| replica.num_live_rows == 0).await;
            }
            agree(&mut random, &server.client, &name, &model, shards).await;
            let asked = random.filter(2);
            let keys: Vec<String> = model
                .documents()
                .values()
                .filter(|held| meets(&asked, &held.document))
                .map(|held| held.document.key.clone())
                .collect();
            let deleted = server.client.delete_matching(&name, &asked).await.unwrap();
            assert_eq!(deleted.num_deleted, keys.len() as u64, "{asked:?}");
            model.delete(&keys);
            assert_eq!(server.client.count_matching(&name, &asked).await.unwrap(), 0);
            agree(&mut random, &server.client, &name, &model, shards).await;
        }
        let whole = server.client.export(&name, None).await.unwrap();
        assert_eq!(whole.len(), model.len());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn few_that_match_among_many_are_all_found() {
    let mut random = Random::seeded(5);
    let server = LocalBuilder::new().node_config(|config| config.graph_min_rows = 8).start().await;
    server.client.create(collection("many", 1, filtered_schema())).await.unwrap();
    let documents: Vec<_> = (0..3_000i64)
        .map(|n| {
            let mut document = document(&format!("d{n}"), &random.vector(DIMS, Metric::Euclidean), "red apple");
            document.fields.insert("size".into(), value(Kind::Int64(n)));
            document
        })
        .collect();
    for batch in documents.chunks(1_000) {
        server.client.upsert("many", batch.to_vec()).await.unwrap();
    }
    for matching in [1i64, 9, 10, 300, 2_999] {
        let bound = Some(value(Kind::Int64(matching)));
        let range = Range { field: "size".into(), lt: bound, ..Range::default() };
        let options = SearchOptions { filter: Some(filter(Condition::Range(range))), ..options("many", 1, 10) };
        let query = random.vector(DIMS, Metric::Euclidean);
        let by_vector = server.client.search_vector(vector_search(&query, options.clone())).await.unwrap();
        let by_words = server.client.search_keyword(keyword_search("apple", options)).await.unwrap();
        for found in [by_vector, by_words] {
            assert_eq!(found.matches.len() as i64, matching.min(10));
            let number = |key: &str| key[1..].parse::<i64>().unwrap();
            assert!(found.matches.iter().all(|found| number(&found.key) < matching), "{matching}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_told_by_kind_and_place() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    client.create(collection("faults", 1, filtered_schema())).await.unwrap();
    let ask = |filter: Filter| {
        let options = SearchOptions { filter: Some(filter), ..options("faults", 1, 10) };
        client.search_keyword(keyword_search("apple", options))
    };
    let cases = [
        (equal("colour", Kind::Int64(1)), ErrorKind::FieldUnknown),
        // A text field is no attribute.
        (equal("t", Kind::String("x".into())), ErrorKind::FieldUnknown),
        (not(equal("size", Kind::Double(1.0))), ErrorKind::FieldType),
        (equal("rate", Kind::Int64(1)), ErrorKind::FieldType),
        (equal("rate", Kind::Double(f64::NAN)), ErrorKind::NotFinite),
        (Filter { condition: None }, ErrorKind::ArgumentInvalid),
    ];
    for (sent, kind) in cases {
        assert_eq!(kind_of(&ask(sent.clone()).await.unwrap_err()), kind, "{sent:?}");
        assert_eq!(kind_of(&client.count_matching("faults", &sent).await.unwrap_err()), kind);
        assert_eq!(kind_of(&client.delete_matching("faults", &sent).await.unwrap_err()), kind);
        assert_eq!(kind_of(&client.export("faults", Some(&sent)).await.unwrap_err()), kind);
    }
    let mut wrong = document("k", &[], "");
    wrong.fields.insert("size".into(), value(Kind::String("big".into())));
    assert_eq!(kind_of(&client.upsert("faults", vec![wrong]).await.unwrap_err()), ErrorKind::FieldType);
    let options = SearchOptions { min_score: Some(f64::NAN), ..options("faults", 1, 10) };
    let status = client.search_keyword(keyword_search("apple", options)).await.unwrap_err();
    assert_eq!(kind_of(&status), ErrorKind::NotFinite);
    let both = DeleteDocumentsRequest {
        collection: "faults".into(),
        keys: vec!["k".into()],
        filter: Some(equal("size", Kind::Int64(1))),
    };
    let status = client.documents.clone().delete_documents(both).await.unwrap_err();
    assert_eq!(kind_of(&status), ErrorKind::ArgumentInvalid);
    server.stop().await;
}
