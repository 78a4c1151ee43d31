//! Filters over gRPC: counts, exports and deletions against a model, in every state of the data; faults; small matches.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::filter::Condition;
use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::*;
use antiphon_store::Store;
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

/// The rows that a filter finds are kept for the next search: they must be those of its view, not of the last one's.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_asked_again_sees_what_changed_meanwhile_and_a_snapshot_what_was() {
    for (cache, seals) in [(32 << 20, false), (32 << 20, true), (0, true)] {
        let mut random = Random::seeded(11);
        let server = LocalBuilder::new()
            .node_config(|config| {
                config.graph_min_rows = 8;
                config.filter_cache_bytes = cache;
                config.sealing.rows = if seals { 1_500 } else { 100_000 };
                config.sealing.age = Duration::from_secs(3_600);
            })
            .start()
            .await;
        server.client.create(collection("again", 1, filtered_schema())).await.unwrap();
        let mut model = Model::new(filtered_schema());
        let numbered = |random: &mut Random, n: i64| {
            let mut document = document(&format!("d{n}"), &random.vector(DIMS, Metric::Euclidean), "red apple");
            document.fields.insert("size".into(), value(Kind::Int64(n % 3)));
            document
        };
        let documents: Vec<_> = (0..3_000).map(|n| numbered(&mut random, n)).collect();
        for batch in documents.chunks(1_500) {
            server.client.upsert("again", batch.to_vec()).await.unwrap();
            model.upsert(batch);
        }
        if seals {
            server.settle(|replica| replica.num_live_rows == 0).await;
        }
        let asked = [equal("size", Kind::Int64(1)), not(equal("size", Kind::Int64(1)))];
        let query = random.vector(DIMS, Metric::Euclidean);
        let mut earlier: Vec<(SearchOptions, SearchResponse)> = Vec::new();
        for round in 0..5 {
            for filter in &asked {
                let narrowed = model.narrowed(Some(filter), None);
                let all = narrowed.vector_list(&query);
                let best: Vec<&str> = all.iter().take(20).map(|entry| narrowed.key(&entry.folded)).collect();
                for exact in [true, true, false] {
                    let options = SearchOptions { filter: Some(filter.clone()), exact, ..options("again", 1, 20) };
                    let found = server.client.search_vector(vector_search(&query, options.clone())).await.unwrap();
                    let hits = found.matches.iter().filter(|found| found.score >= all[19].score - 1e-6).count();
                    assert!(if exact { keys(&found) == best } else { hits >= 18 }, "{round} {exact} {filter:?}");
                    if exact {
                        earlier.push((SearchOptions { snapshot: found.snapshot.clone(), ..options }, found));
                    }
                }
                let count = server.client.count_matching("again", filter).await.unwrap();
                assert_eq!(count, all.len() as u64, "{round} {filter:?}");
            }
            // The best of one filter is deleted, the best of the other meets the first one from now on.
            let best = |filter: &Filter| {
                let narrowed = model.narrowed(Some(filter), None);
                narrowed.key(&narrowed.vector_list(&query)[0].folded).to_owned()
            };
            let (gone, changed) = (best(&asked[0]), best(&asked[1]));
            let mut document = model.documents()[&model.fold(&changed)].document.clone();
            document.fields.insert("size".into(), value(Kind::Int64(1)));
            server.client.delete("again", &[&gone]).await.unwrap();
            server.client.upsert("again", vec![document.clone()]).await.unwrap();
            model.delete(std::slice::from_ref(&gone));
            model.upsert(&[document]);
        }
        for (options, before) in earlier {
            let found = server.client.search_vector(vector_search(&query, options)).await.unwrap();
            assert_eq!(comparable(found), comparable(before));
        }
        server.stop().await;
    }
}

/// Attributes that are declared when documents have them already are built from those; merging writes them down; and at
/// each of these steps rows have other numbers than those that the searches before it left behind.
#[tokio::test(flavor = "multi_thread")]
async fn attributes_added_later_find_what_was_written_before_and_merges_change_nothing() {
    let mut random = Random::seeded(17);
    let store = Store::open("memory://").unwrap();
    // Segments that are large enough for their filters to be kept.
    let builder = |merges: bool| {
        LocalBuilder::new().store(store.clone()).small_segments(1_100).node_config(|config| {
            config.merging.fan_in = if merges { 2 } else { 1_000 };
            config.merging.dead_share = if merges { 0.0 } else { 1.0 };
            config.merging.idle = if merges { Duration::ZERO } else { Duration::from_secs(3_600) };
        })
    };
    let (mut declared, mut later) = (filtered_schema(), filtered_schema());
    let size = later.attributes.iter().position(|attribute| attribute.name == "size").unwrap();
    declared.attributes = vec![later.attributes.remove(size)];
    let mut model = Model::new(filtered_schema());
    let numbered = |random: &mut Random, n: usize| {
        let mut document = document(&format!("d{n}"), &random.vector(DIMS, Metric::Euclidean), "red apple");
        random.attributes(&mut document);
        document
    };
    let server = builder(false).start().await;
    let mut made = server.client.create(collection("later", 1, declared)).await.unwrap();
    for batch in 0..3 {
        let documents: Vec<_> = (batch * 1_200..(batch + 1) * 1_200).map(|n| numbered(&mut random, n)).collect();
        server.client.upsert("later", documents.clone()).await.unwrap();
        model.upsert(&documents);
        if batch < 2 {
            server.settle(|replica| replica.num_live_rows == 0).await;
        }
    }
    let filters: Vec<Filter> = std::iter::once(equal("size", Kind::Int64(1)))
        .chain((0..12).map(|_| random.filter(3)))
        .chain([not(equal("tag", Kind::String("a".into())))])
        .collect();
    let query = random.vector(DIMS, Metric::Euclidean);
    same_as_model(&server.client, &model, &filters[..1], &query).await;
    let refused = server.client.count_matching("later", filters.last().unwrap()).await.unwrap_err();
    assert_eq!(kind_of(&refused), ErrorKind::FieldUnknown);

    made.schema.as_mut().unwrap().attributes.append(&mut later.attributes);
    let request = UpdateCollectionRequest { collection: Some(made) };
    server.client.collections.clone().update_collection(request).await.unwrap();
    same_as_model(&server.client, &model, &filters, &query).await;
    // Some go, some come with other attributes, some are new.
    let gone: Vec<String> = (0..3_600).step_by(13).map(|n| format!("d{n}")).collect();
    server.client.delete("later", &gone.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
    model.delete(&gone);
    let documents: Vec<_> = (1_000..4_000).step_by(7).map(|n| numbered(&mut random, n)).collect();
    server.client.upsert("later", documents.clone()).await.unwrap();
    model.upsert(&documents);
    same_as_model(&server.client, &model, &filters, &query).await;
    server.stop().await;

    // Opened again, columns are built from the documents of the older segments.
    let server = builder(false).start().await;
    same_as_model(&server.client, &model, &filters, &query).await;
    server.stop().await;
    // While merging goes on, and when it is done.
    let server = builder(true).start().await;
    same_as_model(&server.client, &model, &filters, &query).await;
    server.settle(|replica| replica.num_segments <= 1 && replica.num_deleted == 0 && replica.num_live_rows == 0).await;
    same_as_model(&server.client, &model, &filters, &query).await;
    let asked = equal("tag", Kind::String("a".into()));
    let met: Vec<String> = model
        .documents()
        .values()
        .filter(|held| meets(&asked, &held.document))
        .map(|held| held.document.key.clone())
        .collect();
    let deleted = server.client.delete_matching("later", &asked).await.unwrap();
    assert!(!met.is_empty() && deleted.num_deleted == met.len() as u64);
    model.delete(&met);
    same_as_model(&server.client, &model, &filters, &query).await;
    server.stop().await;
}

/// Counts and best matches, each asked twice: the second time of what the first one left behind.
async fn same_as_model(client: &Client, model: &Model, filters: &[Filter], query: &[f32]) {
    for filter in filters.iter().chain(filters) {
        let narrowed = model.narrowed(Some(filter), None);
        let met = model.documents().values().filter(|held| meets(filter, &held.document)).count();
        assert_eq!(client.count_matching("later", filter).await.unwrap(), met as u64, "{filter:?}");
        let all = narrowed.vector_list(query);
        let best: Vec<&str> = all.iter().take(20).map(|entry| narrowed.key(&entry.folded)).collect();
        let ask = |exact| {
            let options = SearchOptions { filter: Some(filter.clone()), exact, ..options("later", 1, 20) };
            client.search_vector(vector_search(query, options))
        };
        assert_eq!(keys(&ask(true).await.unwrap()), best, "{filter:?}");
        let by_graph = ask(false).await.unwrap();
        assert_eq!(by_graph.matches.len(), best.len(), "{filter:?}");
        let least = all.get(best.len().saturating_sub(1)).map_or(0.0, |entry| entry.score);
        let hits = by_graph.matches.iter().filter(|found| found.score >= least - 1e-6).count();
        assert!(hits * 10 >= best.len() * 9, "{hits} of {}: {filter:?}", best.len());
    }
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
