//! Collections that change: aliases that move, fields that are added, settings, and conflicts that are refused.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use antiphon_proto::error::ErrorKind as Kind;
use antiphon_proto::v1::*;
use antiphon_store::Store;
use antiphon_tests::client::Client;
use antiphon_tests::contract::{metadata, refused, refused_for};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::sample::*;

async fn set_alias(client: &Client, name: &str, collection: &str) -> Result<Alias, tonic::Status> {
    let request = SetAliasRequest { name: name.into(), collection: collection.into() };
    Ok(client.collections.clone().set_alias(request).await?.into_inner().alias.unwrap())
}

async fn delete_alias(client: &Client, name: &str) -> Result<(), tonic::Status> {
    client.collections.clone().delete_alias(DeleteAliasRequest { name: name.into() }).await.map(drop)
}

async fn aliases(client: &Client, collection: &str) -> Vec<String> {
    let request = ListAliasesRequest { collection: collection.into() };
    let listed = client.collections.clone().list_aliases(request).await.unwrap().into_inner().aliases;
    listed.into_iter().map(|alias| format!("{}={}", alias.name, alias.collection)).collect()
}

async fn delete_collection(client: &Client, name: &str) -> Result<(), tonic::Status> {
    client.collections.clone().delete_collection(DeleteCollectionRequest { name: name.into() }).await.map(drop)
}

async fn update(client: &Client, collection: Collection) -> Result<Collection, tonic::Status> {
    let request = UpdateCollectionRequest { collection: Some(collection) };
    Ok(client.collections.clone().update_collection(request).await?.into_inner().collection.unwrap())
}

async fn found(client: &Client, collection: &str, words: &str) -> Vec<String> {
    let answer = client.search_keyword(keyword_search(words, options(collection, 1, 100))).await.unwrap();
    keys(&answer).into_iter().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_is_taken_wherever_a_collection_is() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    for name in ["blue", "green"] {
        client.create(collection(name, 2, schema(2, Metric::Cosine))).await.unwrap();
        client.upsert(name, vec![document(name, &[1.0, 0.0], "apple")]).await.unwrap();
    }
    assert_eq!(set_alias(client, "live", "blue").await.unwrap().collection, "blue");
    assert_eq!(client.get_collection("live").await.unwrap().name, "blue");
    assert_eq!(found(client, "live", "apple").await, ["blue"]);
    let version = client.upsert("live", vec![document("new", &[0.0, 1.0], "apple")]).await.unwrap().version;
    let seen = SearchOptions { at_least: version, ..options("blue", 1, 10) };
    let both = client.search_hybrid(hybrid_search(&[1.0, 0.0], "apple", seen)).await.unwrap();
    assert_eq!(both.matches.len(), 2);
    assert_eq!(client.count("live").await.unwrap(), 2);
    assert_eq!(client.get("live", &["new"]).await.unwrap().documents.len(), 1);
    assert_eq!(client.delete("live", &["new"]).await.unwrap().num_deleted, 1);

    // It moves; tokens stay with the collection that they are of.
    let answer = client.search_keyword(keyword_search("apple", options("live", 1, 10))).await.unwrap();
    assert_eq!(set_alias(client, "live", "green").await.unwrap().collection, "green");
    assert_eq!(found(client, "live", "apple").await, ["green"]);
    let with = |snapshot: String, name| SearchOptions { snapshot, ..options(name, 1, 10) };
    let old = client.search_keyword(keyword_search("apple", with(answer.snapshot.clone(), "live"))).await;
    refused(old, Kind::SnapshotExpired);
    let own = client.search_keyword(keyword_search("apple", with(answer.snapshot, "blue"))).await.unwrap();
    assert_eq!(keys(&own), ["blue"]);

    // An alias of an alias means what that means now.
    set_alias(client, "next", "live").await.unwrap();
    set_alias(client, "live", "blue").await.unwrap();
    assert_eq!(aliases(client, "").await, ["live=blue", "next=green"]);
    assert_eq!(aliases(client, "live").await, ["live=blue"]);

    refused(set_alias(client, "blue", "green").await, Kind::CollectionExists);
    refused(client.create(collection("live", 1, Schema::default())).await, Kind::CollectionExists);
    refused(set_alias(client, "live", "nobody").await, Kind::CollectionNotFound);
    refused_for(set_alias(client, "No Name", "blue").await, Kind::SchemaInvalid, "name");
    refused(delete_alias(client, "blue").await, Kind::CollectionNotFound);
    refused(delete_alias(client, "nobody").await, Kind::CollectionNotFound);
    let status = refused(delete_collection(client, "live").await, Kind::CollectionNotFound);
    assert!(status.message().contains("alias"), "{}", status.message());
    assert_eq!(found(client, "blue", "apple").await, ["blue"]);

    delete_alias(client, "next").await.unwrap();
    refused(client.count("next").await, Kind::CollectionNotFound);
    delete_collection(client, "blue").await.unwrap();
    assert!(aliases(client, "").await.is_empty(), "aliases go with their collection");
    refused(client.count("live").await, Kind::CollectionNotFound);
    client.create(collection("live", 1, Schema::default())).await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_that_moves_always_means_one_of_two_collections() {
    let store = Store::open("memory://").unwrap();
    let (one, other) =
        (LocalBuilder::new().store(store.clone()).start().await, LocalBuilder::new().store(store).start().await);
    for name in ["blue", "green"] {
        one.client.create(collection(name, 1, schema(2, Metric::Cosine))).await.unwrap();
        one.client.upsert(name, vec![document(name, &[], "apple")]).await.unwrap();
    }
    set_alias(&one.client, "live", "blue").await.unwrap();
    let mover = {
        let client = one.client.clone();
        tokio::spawn(async move {
            for round in 0..30 {
                set_alias(&client, "live", ["green", "blue"][round % 2]).await.unwrap();
            }
        })
    };
    let mut num_searches = 0;
    while !mover.is_finished() {
        for client in [&one.client, &other.client] {
            let keys = found(client, "live", "apple").await;
            assert!(keys == ["blue"] || keys == ["green"], "{keys:?}");
            num_searches += 1;
        }
    }
    mover.await.unwrap();
    assert!(num_searches > 0);
    // A write goes where the alias points, though the other coordinator has not heard of it yet.
    set_alias(&one.client, "live", "green").await.unwrap();
    other.client.upsert("live", vec![document("late", &[], "pear")]).await.unwrap();
    assert_eq!(one.client.get("green", &["late"]).await.unwrap().documents.len(), 1);
    one.stop().await;
    other.stop().await;
}

/// Documents whose field `note` is stored and not yet indexed.
fn noted(from: usize, to: usize) -> Vec<Document> {
    (from..to)
        .map(|n| {
            let mut noted = document(&format!("d{n}"), &[1.0, n as f32], "apple");
            noted.fields.insert("note".into(), text(if n % 2 == 0 { "even number" } else { "odd number, odd" }));
            noted
        })
        .collect()
}

fn with_note(mut wanted: Collection) -> Collection {
    let schema = wanted.schema.as_mut().unwrap();
    schema.texts.push(TextField { name: "note".into(), ..TextField::default() });
    schema.vectors.push(VectorField { name: "w".into(), dimensions: 3, ..VectorField::default() });
    wanted
}

/// Key and score bits of a search.
async fn scores(client: &Client, name: &str, words: &str, fields: &[&str]) -> Vec<(String, u64)> {
    let request = SearchKeywordRequest {
        text_fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        ..keyword_search(words, options(name, 1, 1_000))
    };
    let answer = client.search_keyword(request).await.unwrap();
    answer.matches.into_iter().map(|found| (found.key, found.score.to_bits())).collect()
}

async fn compare(server: &Local, state: &str) {
    for (words, fields) in [("odd", &["note"][..]), ("even apple number", &[]), ("apple", &["t"])] {
        let (changed, fresh) = (
            scores(&server.client, "changed", words, fields).await,
            scores(&server.client, "fresh", words, fields).await,
        );
        assert!(!fresh.is_empty());
        assert_eq!(changed, fresh, "{words}: {state}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_text_field_finds_all_documents_as_though_it_had_always_been_there() {
    let store = Store::open("memory://").unwrap();
    let builder = |store: &Store| {
        LocalBuilder::new().store(store.clone()).small_segments(20).node_config(|config| {
            config.merging.fan_in = 1_000;
            config.merging.dead_share = 1.0;
        })
    };
    let server = builder(&store).start().await;
    let client = &server.client;
    let old = client.create(collection("changed", 2, schema(2, Metric::Cosine))).await.unwrap();
    client.create(with_note(collection("fresh", 2, schema(2, Metric::Cosine)))).await.unwrap();
    let write = |from: usize, to: usize| async move {
        for name in ["changed", "fresh"] {
            client.upsert(name, noted(from, to)).await.unwrap();
        }
    };
    write(0, 50).await;
    server.settle(|replica| replica.num_live_rows == 0).await;
    write(50, 60).await;
    client.delete("changed", &["d3", "d4"]).await.unwrap();
    client.delete("fresh", &["d3", "d4"]).await.unwrap();
    let before = client.search_keyword(keyword_search("apple", options("changed", 1, 5))).await.unwrap().snapshot;

    let updated = update(client, with_note(old.clone())).await.unwrap();
    assert_eq!((updated.uid.as_str(), updated.schema.as_ref().unwrap().texts.len()), (old.uid.as_str(), 2));
    compare(&server, "updated").await;
    let expired = SearchOptions { snapshot: before, ..options("changed", 1, 5) };
    refused(client.search_keyword(keyword_search("apple", expired)).await, Kind::SnapshotExpired);
    assert_eq!(update(client, with_note(old)).await.unwrap(), updated, "the same update again changes nothing");

    // Vectors of the new field: only of documents written since.
    let mut late = noted(60, 70);
    for document in &mut late {
        document.vectors.insert("w".into(), antiphon_proto::vector::to_proto(&[0.0, 1.0, 0.0]));
    }
    for name in ["changed", "fresh"] {
        client.upsert(name, late.clone()).await.unwrap();
    }
    compare(&server, "written since").await;
    let by_new =
        SearchVectorRequest { vector_field: "w".into(), ..vector_search(&[0.0, 1.0, 0.0], options("changed", 1, 50)) };
    assert_eq!(client.search_vector(by_new.clone()).await.unwrap().matches.len(), 10);
    server.settle(|replica| replica.num_live_rows == 0).await;
    compare(&server, "sealed").await;
    server.stop().await;

    // Opened again, old segments are read with the new schema; then they are built anew and merged.
    let server = builder(&store).start().await;
    compare(&server, "opened again").await;
    server.stop().await;
    let server = builder(&store).node_config(|config| {
        config.merging.fan_in = 2;
        config.merging.dead_share = 0.0;
        config.merging.idle = Duration::ZERO;
    });
    let server = server.start().await;
    server.settle(|replica| replica.num_segments <= 1 && replica.num_deleted == 0).await;
    compare(&server, "merged").await;
    assert_eq!(server.client.search_vector(by_new).await.unwrap().matches.len(), 10);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_coordinators_and_nodes_learn_of_new_fields_when_they_meet_them() {
    let store = Store::open("memory://").unwrap();
    // Catalogs that are not looked at again of themselves.
    let builder = || {
        LocalBuilder::new()
            .store(store.clone())
            .coordinator_config(|config| config.catalog_interval = Duration::from_secs(3_600))
            .node_config(|config| config.poll_interval = Duration::from_millis(50))
    };
    let (one, other) = (builder().start().await, builder().start().await);
    let old = one.client.create(collection("c", 1, schema(2, Metric::Cosine))).await.unwrap();
    one.client.upsert("c", noted(0, 4)).await.unwrap();
    let refreshed = SearchOptions { consistency: Consistency::Refresh as i32, ..options("c", 1, 10) };
    let answer = other.client.search_keyword(keyword_search("apple", refreshed.clone())).await.unwrap();
    assert_eq!(answer.matches.len(), 4);

    update(&one.client, with_note(old)).await.unwrap();
    let mut late = document("late", &[1.0, 0.0], "apple");
    late.vectors.insert("w".into(), antiphon_proto::vector::to_proto(&[1.0, 0.0, 0.0]));
    one.client.upsert("c", vec![late.clone()]).await.unwrap();
    // The other node reads an entry whose vector its schema does not have: it must not be lost there.
    let by_new = SearchVectorRequest { vector_field: "w".into(), ..vector_search(&[1.0, 0.0, 0.0], refreshed.clone()) };
    let answer = other.client.search_vector(by_new).await.unwrap();
    assert_eq!(keys(&answer), ["late"]);
    let by_note = SearchKeywordRequest { text_fields: vec!["note".into()], ..keyword_search("odd", refreshed) };
    assert_eq!(other.client.search_keyword(by_note).await.unwrap().matches.len(), 2);
    late.key = "later".into();
    other.client.upsert("c", vec![late]).await.unwrap();
    assert_eq!(one.client.get("c", &["later"]).await.unwrap().documents[0].vectors.len(), 2);
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_change_in_place_and_conflicts_are_refused_with_their_reasons() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    let mut two = schema(2, Metric::Cosine);
    two.texts.push(TextField { name: "u".into(), ..TextField::default() });
    let made = client.create(collection("c", 2, two)).await.unwrap();
    let mut other = document("u", &[], "");
    other.fields.insert("u".into(), text("apple"));
    client.upsert("c", vec![document("t", &[], "apple"), other]).await.unwrap();
    let change = |change: fn(&mut Collection, &mut Schema)| {
        let mut wanted = made.clone();
        let mut schema = wanted.schema.take().unwrap();
        change(&mut wanted, &mut schema);
        Collection { schema: Some(schema), ..wanted }
    };
    let snapshot = client.search_keyword(keyword_search("apple", options("c", 1, 5))).await.unwrap().snapshot;
    for (boost, first) in [(3.0, "u"), (0.5, "t")] {
        let mut wanted = made.clone();
        wanted.schema.as_mut().unwrap().texts[1].boost = boost;
        update(client, wanted).await.unwrap();
        assert_eq!(found(client, "c", "apple").await[0], first);
    }
    // Settings end no snapshots.
    let options = SearchOptions { snapshot, ..options("c", 1, 5) };
    client.search_keyword(keyword_search("apple", options)).await.unwrap();

    type Change = fn(&mut Collection, &mut Schema);
    let conflicts: [(Change, &str); 7] = [
        (|_, schema| drop(schema.texts.pop()), "collection.schema.texts[\"u\"]"),
        (|_, schema| schema.vectors[0].dimensions = 3, "collection.schema.vectors[\"v\"].dimensions"),
        (|_, schema| schema.vectors[0].metric = Metric::Dot as i32, "collection.schema.vectors[\"v\"].metric"),
        (|_, schema| schema.texts[0].analyzer = "en".into(), "collection.schema.texts[\"t\"].analyzer"),
        (|_, schema| schema.key_case = KeyCase::CaseSensitive as i32, "collection.schema.key_case"),
        (|wanted, _| wanted.shard_count = 3, "collection.shard_count"),
        (|wanted, _| wanted.uid = "other".into(), "collection.uid"),
    ];
    for (conflict, field) in conflicts {
        let status = refused(update(client, change(conflict)).await, Kind::SchemaConflict);
        assert!(metadata(&status, field).is_some_and(|reason| !reason.is_empty()), "{field}: {status:?}");
    }
    let bad = change(|_, schema| schema.texts.push(TextField { name: "t".into(), ..TextField::default() }));
    refused(update(client, bad).await, Kind::SchemaInvalid);
    refused(update(client, Collection { name: "nobody".into(), ..made.clone() }).await, Kind::CollectionNotFound);
    assert_eq!(client.get_collection("c").await.unwrap().schema.unwrap().texts.len(), 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_while_fields_are_added() {
    let server = LocalBuilder::new().small_segments(50).start().await;
    let client = &server.client;
    let mut wanted = client.create(collection("c", 2, schema(2, Metric::Cosine))).await.unwrap();
    client.upsert("c", noted(0, 20)).await.unwrap();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_done = std::sync::Arc::clone(&done);
    // Enough of them that some write whenever a shard is opened anew.
    let write = |first| {
        let (client, is_done) = (client.clone(), std::sync::Arc::clone(&is_done));
        tokio::spawn(async move {
            let mut next = first;
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                client.upsert("c", noted(next, next + 3)).await.unwrap();
                next += 3;
            }
            next - first
        })
    };
    let writers: Vec<_> = (1..=8).map(|writer| write(writer * 10_000)).collect();
    let searcher = {
        let client = client.clone();
        tokio::spawn(async move {
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                let search = hybrid_search(&[1.0, 1.0], "apple", options("c", 1, 20));
                assert_eq!(client.search_hybrid(search).await.unwrap().matches.len(), 20);
            }
        })
    };
    for n in 0..8 {
        let name = format!("field-{n}");
        wanted.schema.as_mut().unwrap().texts.push(TextField { name, ..TextField::default() });
        wanted = update(client, wanted).await.unwrap();
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    searcher.await.unwrap();
    let mut num_written = 20;
    for writer in writers {
        num_written += writer.await.unwrap();
    }
    assert_eq!(client.count("c").await.unwrap(), num_written as u64, "a write was lost");
    server.stop().await;
}
