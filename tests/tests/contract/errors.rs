//! Each row of the contract's error table that a request alone can bring about: code, reason, field, what to do.
//!
//! Not for what the servers' state brings about: see failures.rs.

#![allow(clippy::unwrap_used)]

use antiphon_proto::error::ErrorKind as Kind;
use antiphon_proto::v1::*;
use antiphon_proto::vector::to_proto;
use antiphon_tests::contract::{faulty_fields, metadata, prepare, refused, refused_for, still_serves};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::sample::*;

/// A server with the collections `probe`, and `c`: a vector field `v` of two dimensions, a text field `t`.
async fn server() -> Local {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    server.client.create(collection("c", 2, schema(2, Metric::Cosine))).await.unwrap();
    server
}

fn with_value(name: &str, kind: value::Kind) -> Document {
    let fields = [(name.to_owned(), Value { kind: Some(kind) })].into();
    Document { key: "k".into(), fields, ..Document::default() }
}

fn with_vector(name: &str, vector: Vector) -> Document {
    Document { key: "k".into(), vectors: [(name.to_owned(), vector)].into(), ..Document::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_documents_name_the_document_and_the_field() {
    let server = server().await;
    let good = || document("good", &[1.0, 2.0], "words");
    let ragged = Vector { kind: Some(vector::Kind::Float32Le(vec![0; 7].into())) };
    let cases = [
        (document("k", &[1.0], ""), Kind::DimensionMismatch, r#"documents[1].vectors["v"]"#),
        (document("k", &[1.0, 2.0, 3.0], ""), Kind::DimensionMismatch, r#"documents[1].vectors["v"]"#),
        (with_vector("v", ragged), Kind::DimensionMismatch, r#"documents[1].vectors["v"]"#),
        (with_vector("v", Vector { kind: None }), Kind::DimensionMismatch, r#"documents[1].vectors["v"]"#),
        (document("k", &[1.0, f32::NAN], ""), Kind::NotFinite, r#"documents[1].vectors["v"]"#),
        (document("k", &[f32::NEG_INFINITY, 0.0], ""), Kind::NotFinite, r#"documents[1].vectors["v"]"#),
        (document("k", &[0.0, -0.0], ""), Kind::ZeroVector, r#"documents[1].vectors["v"]"#),
        (
            with_vector("w", antiphon_proto::vector::to_proto(&[1.0])),
            Kind::FieldUnknown,
            r#"documents[1].vectors["w"]"#,
        ),
        (with_value("t", value::Kind::Int64(1)), Kind::FieldType, r#"documents[1].fields["t"]"#),
        (with_value("t", value::Kind::Map(ValueMap::default())), Kind::FieldType, r#"documents[1].fields["t"]"#),
        (with_value("", value::Kind::Bool(true)), Kind::ArgumentInvalid, r#"documents[1].fields[""]"#),
        (document(" \u{2003}\n", &[], ""), Kind::KeyInvalid, "documents[1].key"),
        (document(&"k".repeat(1025), &[], ""), Kind::KeyInvalid, "documents[1].key"),
    ];
    for (bad, kind, field) in cases {
        let outcome = server.client.upsert("c", vec![good(), bad]).await;
        refused_for(outcome, kind, field);
    }
    let bad = vec![document("\t", &[f32::NAN, 0.0], ""), good(), document("k", &[1.0], "")];
    let status = refused(server.client.upsert("c", bad).await, Kind::KeyInvalid);
    let fields = [r#"documents[0].key"#, r#"documents[0].vectors["v"]"#, r#"documents[2].vectors["v"]"#];
    assert_eq!(faulty_fields(&status), fields);
    assert_eq!(server.client.count("c").await.unwrap(), 0, "a refused request wrote something");
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_queries_name_their_part() {
    let server = server().await;
    let client = &server.client;
    let vector = |values: &[f32]| vector_search(values, options("c", 1, 10));
    refused_for(client.search_vector(vector(&[1.0])).await, Kind::DimensionMismatch, "vector");
    refused_for(client.search_vector(vector(&[])).await, Kind::DimensionMismatch, "vector");
    refused_for(client.search_vector(vector(&[1.0, f32::INFINITY])).await, Kind::NotFinite, "vector");
    refused_for(client.search_vector(vector(&[3e38, 3e38])).await, Kind::NotFinite, "vector");
    refused_for(client.search_vector(vector(&[0.0, 0.0])).await, Kind::ZeroVector, "vector");
    let unnamed = SearchVectorRequest { vector: None, ..vector(&[1.0, 0.0]) };
    refused_for(client.search_vector(unnamed).await, Kind::QueryEmpty, "vector");
    let empty = SearchVectorRequest { vector: Some(Vector { kind: None }), ..vector(&[1.0, 0.0]) };
    refused_for(client.search_vector(empty).await, Kind::QueryEmpty, "vector");
    let unknown = SearchVectorRequest { vector_field: "w".into(), ..vector(&[1.0, 0.0]) };
    refused_for(client.search_vector(unknown).await, Kind::FieldUnknown, "vector_field");

    let text_fields = vec!["t".into(), "nobody".into()];
    let unknown = SearchKeywordRequest { text_fields: text_fields.clone(), ..keyword_search("a", options("c", 1, 1)) };
    refused_for(client.search_keyword(unknown).await, Kind::FieldUnknown, "text_fields[1]");
    let hybrid = || hybrid_search(&[1.0, 0.0], "apple", options("c", 1, 10));
    let unknown = SearchHybridRequest { text_fields, ..hybrid() };
    refused_for(client.search_hybrid(unknown).await, Kind::FieldUnknown, "text_fields[1]");
    let empty = SearchHybridRequest { vector: None, ..hybrid() };
    refused_for(client.search_hybrid(empty).await, Kind::QueryEmpty, "vector");
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_left_out_must_be_the_only_one() {
    let server = server().await;
    let client = &server.client;
    let mut several = schema(2, Metric::Cosine);
    several.vectors.push(VectorField { name: "w".into(), dimensions: 3, ..VectorField::default() });
    client.create(collection("several", 1, several)).await.unwrap();
    client.create(collection("none", 1, Schema::default())).await.unwrap();
    let search = |name: &str| vector_search(&[1.0, 0.0], options(name, 1, 10));
    let status = refused_for(client.search_vector(search("several")).await, Kind::FieldAmbiguous, "vector_field");
    assert!(status.message().contains("v, w"), "{}", status.message());
    refused_for(client.search_vector(search("none")).await, Kind::FieldAmbiguous, "vector_field");
    let keyword = keyword_search("apple", options("none", 1, 10));
    refused_for(client.search_keyword(keyword).await, Kind::FieldAmbiguous, "text_fields");
    let named = SearchVectorRequest { vector_field: "v".into(), ..search("several") };
    client.search_vector(named).await.unwrap();
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_name_nothing_are_refused_wherever_keys_are_taken() {
    let server = server().await;
    let client = &server.client;
    let long = "ä".repeat(600);
    for key in ["", " ", "\u{a0}\t", long.as_str()] {
        refused_for(client.get("c", &["fine", key]).await, Kind::KeyInvalid, "keys[1]");
        refused_for(client.delete("c", &["fine", key]).await, Kind::KeyInvalid, "keys[1]");
    }
    refused_for(client.get("c", &[]).await, Kind::ArgumentInvalid, "keys");
    refused_for(client.delete("c", &[]).await, Kind::ArgumentInvalid, "keys");
    refused_for(client.get("c", &["k"; 1001]).await, Kind::ArgumentInvalid, "keys");
    refused_for(client.delete("c", &["k"; 10_001]).await, Kind::ArgumentInvalid, "keys");
    assert_eq!(client.get("c", &["k"; 1000]).await.unwrap().missing_keys, ["k"]);
    refused_for(client.upsert("c", vec![]).await, Kind::ArgumentInvalid, "documents");
    let many = vec![document("k", &[], ""); 10_001];
    refused_for(client.upsert("c", many).await, Kind::ArgumentInvalid, "documents");
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_a_collection_is_named() {
    let server = server().await;
    let client = &server.client;
    let bad = Collection {
        name: "Ärger".into(),
        shard_count: u32::MAX,
        replica_count: 9,
        schema: Some(Schema {
            vectors: vec![VectorField {
                name: "v".into(),
                dimensions: 65_537,
                metric: 77,
                element_type: 6,
                hnsw: Some(Hnsw { connectivity: 3, expansion_add: u32::MAX, expansion_search: 1 }),
                ..VectorField::default()
            }],
            texts: vec![TextField { name: "v".into(), analyzer: "klingon".into(), boost: f32::NAN }],
            attributes: vec![],
            key_case: -1,
        }),
        ..Collection::default()
    };
    let status = refused(client.create(bad).await, Kind::SchemaInvalid);
    let vector = "collection.schema.vectors[0]";
    let text = "collection.schema.texts[0]";
    let expected = [
        "collection.name".to_owned(),
        "collection.shard_count".to_owned(),
        "collection.replica_count".to_owned(),
        "collection.schema.key_case".to_owned(),
        format!("{vector}.dimensions"),
        format!("{vector}.metric"),
        format!("{vector}.element_type"),
        format!("{vector}.hnsw.connectivity"),
        format!("{vector}.hnsw.expansion_add"),
        format!("{vector}.hnsw.expansion_search"),
        format!("{text}.name"),
        format!("{text}.analyzer"),
        format!("{text}.boost"),
    ];
    assert_eq!(faulty_fields(&status), expected);
    for boost in [-1.0, f32::INFINITY, 1000.5, -f32::MIN_POSITIVE] {
        let texts = vec![TextField { name: "t".into(), boost, ..TextField::default() }];
        let bad = collection("boosted", 1, Schema { texts, ..Schema::default() });
        refused_for(client.create(bad).await, Kind::SchemaInvalid, "collection.schema.texts[0].boost");
    }
    let field = |n| TextField { name: format!("t{n}"), ..TextField::default() };
    let many = Schema { texts: (0..65).map(field).collect(), ..Schema::default() };
    refused_for(client.create(collection("many", 1, many)).await, Kind::SchemaInvalid, "collection.schema.texts");
    refused_for(client.create(Collection::default()).await, Kind::SchemaInvalid, "collection.name");
    refused_for(
        client.create(collection(&"n".repeat(65), 1, Schema::default())).await,
        Kind::SchemaInvalid,
        "collection.name",
    );
    client.create(collection(&"n".repeat(64), 1, Schema::default())).await.unwrap();
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_out_of_bounds_or_unknown_are_refused() {
    let server = server().await;
    let client = &server.client;
    type Change = fn(&mut SearchOptions);
    let cases: [(&str, Change); 5] = [
        ("options.page_size", |options| options.page_size = 1001),
        ("options.skip", |options| (options.page, options.skip) = (2, 1)),
        ("options.consistency", |options| options.consistency = 3),
        ("options.partial", |options| options.partial = -1),
        ("options.fields", |options| options.fields = vec!["f".into(); 1001]),
    ];
    for (field, change) in cases {
        let mut options = options("c", 1, 10);
        change(&mut options);
        refused_for(client.search_keyword(keyword_search("a", options)).await, Kind::ArgumentInvalid, field);
    }
    let keyword =
        |keyword: Keyword| SearchKeywordRequest { keyword: Some(keyword), ..keyword_search("a", options("c", 1, 10)) };
    let unknown = keyword(Keyword { operator: 9, ..Keyword::default() });
    refused_for(client.search_keyword(unknown).await, Kind::ArgumentInvalid, "keyword.operator");
    let many = keyword(Keyword { max_terms: 65, ..Keyword::default() });
    refused_for(client.search_keyword(many).await, Kind::ArgumentInvalid, "keyword.max_terms");
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fusions_are_honoured_or_refused() {
    let server = server().await;
    let client = &server.client;
    let method = |method: FusionMethod| Fusion { method: method as i32, ..Fusion::default() };
    let weights = |weights: &[f64]| Fusion { weights: weights.to_vec(), ..method(FusionMethod::RelativeScore) };
    let cases = [
        (Fusion { method: 99, ..Fusion::default() }, "fusion.method"),
        (Fusion { first_channel: 3, ..Fusion::default() }, "fusion.first_channel"),
        (Fusion { first_channel: 2, ..method(FusionMethod::MaxScore) }, "fusion.first_channel"),
        (Fusion { weights: vec![1.0, 1.0], ..Fusion::default() }, "fusion.weights"),
        (Fusion { k: Some(60), ..Fusion::default() }, "fusion.k"),
        (Fusion { k: Some(0), ..method(FusionMethod::ReciprocalRank) }, "fusion.k"),
        (Fusion { k: Some(u32::MAX), ..method(FusionMethod::ReciprocalRank) }, "fusion.k"),
        (weights(&[1.0]), "fusion.weights"),
        (weights(&[1.0, f64::NAN]), "fusion.weights"),
        (weights(&[f64::INFINITY, 1.0]), "fusion.weights"),
        (weights(&[-1.0, 1.0]), "fusion.weights"),
        (weights(&[0.0, 0.0]), "fusion.weights"),
        (weights(&[f64::MAX, f64::MAX]), "fusion.weights"),
    ];
    for (fusion, field) in cases {
        let request =
            SearchHybridRequest { fusion: Some(fusion), ..hybrid_search(&[1.0, 0.0], "a", options("c", 1, 5)) };
        refused_for(client.search_hybrid(request).await, Kind::ArgumentInvalid, field);
    }
    for method in 0..=5 {
        let fusion = Some(Fusion { method, ..Fusion::default() });
        let request = SearchHybridRequest { fusion, ..hybrid_search(&[1.0, 0.0], "apple", options("probe", 1, 5)) };
        assert_eq!(client.search_hybrid(request).await.unwrap().matches.len(), 2, "{method}");
    }
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_queries_are_honoured_or_refused_each_by_its_place() {
    let server = server().await;
    let client = &server.client;
    let vector = |values: &[f32]| VectorQuery { vector: Some(to_proto(values)), ..VectorQuery::default() };
    let near = || vector(&[1.0, 0.0]);
    let by_vectors = |queries: Vec<VectorQuery>| SearchVectorRequest {
        queries,
        options: Some(options("probe", 1, 10)),
        ..SearchVectorRequest::default()
    };
    let faults = [
        (vec![near(), vector(&[1.0])], Kind::DimensionMismatch, "queries[1].vector"),
        (vec![vector(&[0.0, 0.0]), near()], Kind::ZeroVector, "queries[0].vector"),
        (vec![near(), VectorQuery::default()], Kind::QueryEmpty, "queries[1].vector"),
        (vec![VectorQuery { vector_field: "w".into(), ..near() }], Kind::FieldUnknown, "queries[0].vector_field"),
        (vec![near(); 17], Kind::ArgumentInvalid, "queries"),
    ];
    for (queries, kind, field) in faults {
        refused_for(client.search_vector(by_vectors(queries)).await, kind, field);
    }
    for single in [
        SearchVectorRequest { vector: Some(to_proto(&[1.0, 0.0])), ..by_vectors(vec![near()]) },
        SearchVectorRequest { vector_field: "v".into(), ..by_vectors(vec![near()]) },
    ] {
        refused_for(client.search_vector(single).await, Kind::ArgumentInvalid, "queries");
    }
    let answer = client.search_vector(by_vectors(vec![near(); 16])).await.unwrap();
    assert_eq!(answer.matches[0].places.iter().map(|place| place.query).collect::<Vec<_>>(), Vec::from_iter(0..16));

    let words = |text: &str| KeywordQuery { text: text.into(), ..KeywordQuery::default() };
    let by_words = |queries: Vec<KeywordQuery>| SearchKeywordRequest {
        queries,
        options: Some(options("probe", 1, 10)),
        ..SearchKeywordRequest::default()
    };
    let many = Some(Keyword { max_terms: 65, ..Keyword::default() });
    let faults = [
        (
            KeywordQuery { text_fields: vec!["t".into(), "x".into()], ..words("a") },
            Kind::FieldUnknown,
            "text_fields[1]",
        ),
        (KeywordQuery { keyword: many, ..words("a") }, Kind::ArgumentInvalid, "keyword.max_terms"),
    ];
    for (query, kind, field) in faults {
        let outcome = client.search_keyword(by_words(vec![words("pear"), query])).await;
        refused_for(outcome, kind, &format!("queries[1].{field}"));
    }
    let both = SearchKeywordRequest { text: "pear".into(), ..by_words(vec![words("apple")]) };
    refused_for(client.search_keyword(both).await, Kind::ArgumentInvalid, "queries");
    let answer = client.search_keyword(by_words(vec![words("pear"), words("?!"), words("apple")])).await.unwrap();
    assert_eq!((keys(&answer), answer.warnings.len()), (vec!["near", "far"], 1));
    assert!(answer.warnings[0].contains("queries[1]"), "{:?}", answer.warnings);

    let by_both = |queries: Vec<HybridQuery>, fusion: Fusion| SearchHybridRequest {
        queries,
        fusion: Some(fusion),
        options: Some(options("probe", 1, 10)),
        ..SearchHybridRequest::default()
    };
    let text = || HybridQuery { text: Some("apple".into()), ..HybridQuery::default() };
    let near = || HybridQuery { vector: Some(to_proto(&[1.0, 0.0])), ..HybridQuery::default() };
    let with = |change: fn(&mut HybridQuery), mut query: HybridQuery| {
        change(&mut query);
        query
    };
    let faults = [
        (HybridQuery::default(), Kind::QueryEmpty, "vector"),
        (with(|query| query.vector_field = "v".into(), text()), Kind::ArgumentInvalid, "vector_field"),
        (with(|query| query.text_fields = vec!["t".into()], near()), Kind::ArgumentInvalid, "text_fields"),
        (with(|query| query.keyword = Some(Keyword::default()), near()), Kind::ArgumentInvalid, "keyword"),
    ];
    for (query, kind, field) in faults {
        let outcome = client.search_hybrid(by_both(vec![near(), query], Fusion::default())).await;
        refused_for(outcome, kind, &format!("queries[1].{field}"));
    }
    let both = SearchHybridRequest { text: "a".into(), ..by_both(vec![near()], Fusion::default()) };
    refused_for(client.search_hybrid(both).await, Kind::ArgumentInvalid, "queries");
    let first = |channel: Channel| Fusion { first_channel: channel as i32, ..Fusion::default() };
    let outcome = client.search_hybrid(by_both(vec![near()], first(Channel::Keyword))).await;
    refused_for(outcome, Kind::ArgumentInvalid, "fusion.first_channel");
    let weights = |weights: &[f64]| Fusion {
        method: FusionMethod::ReciprocalRank as i32,
        weights: weights.to_vec(),
        ..Fusion::default()
    };
    let three = || vec![text(), HybridQuery { vector: near().vector, ..text() }];
    refused_for(
        client.search_hybrid(by_both(three(), weights(&[1.0, 1.0]))).await,
        Kind::ArgumentInvalid,
        "fusion.weights",
    );
    let answer = client.search_hybrid(by_both(three(), weights(&[0.0, 5.0, 0.0]))).await.unwrap();
    assert_eq!(keys(&answer), ["near", "far"], "weights are in the order of the lists");
    let answer = client.search_hybrid(by_both(three(), first(Channel::Keyword))).await.unwrap();
    assert_eq!(keys(&answer), ["far", "near"]);
    let places: Vec<_> = answer.matches[0].places.iter().map(|place| (place.channel(), place.query)).collect();
    assert_eq!(places, [(Channel::Keyword, 0), (Channel::Vector, 1), (Channel::Keyword, 1)]);
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_out_of_range_say_which_is_the_last() {
    let server = server().await;
    let client = &server.client;
    let most = u32::MAX;
    let cases = [
        ((10, 10, 0), "9"),
        ((2, 50, 0), "1"),
        ((2, 1000, 0), "1"),
        ((most, 1, 0), "99"),
        ((most, 0, 0), "9"),
        ((0, 10, 90), "9"),
        ((0, 10, most), "9"),
        ((1, 1000, 1), "1"),
    ];
    for ((page, page_size, skip), last_page) in cases {
        let options = SearchOptions { skip, ..options("probe", page, page_size) };
        let outcomes = [
            client.search_vector(vector_search(&[1.0, 0.0], options.clone())).await,
            client.search_keyword(keyword_search("apple", options.clone())).await,
            client.search_hybrid(hybrid_search(&[1.0, 0.0], "apple", options)).await,
        ];
        for outcome in outcomes {
            let status = refused(outcome, Kind::PageOutOfRange);
            assert_eq!(metadata(&status, "last_page").as_deref(), Some(last_page), "{page} {page_size} {skip}");
        }
    }
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_that_are_not_there_or_there_already() {
    let server = server().await;
    let client = &server.client;
    for name in ["nobody", "", "C", "c ", "c\0"] {
        let options = || options(name, 1, 10);
        refused(client.get_collection(name).await, Kind::CollectionNotFound);
        refused(client.count(name).await, Kind::CollectionNotFound);
        refused(client.get(name, &["k"]).await, Kind::CollectionNotFound);
        refused(client.delete(name, &["k"]).await, Kind::CollectionNotFound);
        refused(client.upsert(name, vec![document("k", &[], "")]).await, Kind::CollectionNotFound);
        refused(client.search_vector(vector_search(&[1.0, 0.0], options())).await, Kind::CollectionNotFound);
        refused(client.search_keyword(keyword_search("a", options())).await, Kind::CollectionNotFound);
        refused(client.search_hybrid(hybrid_search(&[1.0, 0.0], "a", options())).await, Kind::CollectionNotFound);
        let request = DeleteCollectionRequest { name: name.into() };
        refused(client.collections.clone().delete_collection(request).await, Kind::CollectionNotFound);
    }
    refused(client.create(collection("c", 1, Schema::default())).await, Kind::CollectionExists);
    let request = DeleteCollectionRequest { name: "c".into() };
    client.collections.clone().delete_collection(request).await.unwrap();
    refused(client.search_keyword(keyword_search("a", options("c", 1, 10))).await, Kind::CollectionNotFound);
    client.create(collection("c", 1, Schema::default())).await.unwrap();
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_passed_on_as_they_were_given() {
    let server = server().await;
    let client = &server.client;
    let version = client.upsert("c", vec![document("k", &[1.0, 0.0], "apple")]).await.unwrap().version;
    let search = |change: &dyn Fn(&mut SearchOptions)| {
        let mut options = options("c", 1, 10);
        change(&mut options);
        client.search_keyword(keyword_search("apple", options))
    };
    let snapshot = search(&|_| ()).await.unwrap().snapshot;
    assert_eq!(search(&|options| options.snapshot.clone_from(&snapshot)).await.unwrap().matches.len(), 1);
    assert_eq!(search(&|options| options.at_least.clone_from(&version)).await.unwrap().matches.len(), 1);
    let lower = snapshot.to_lowercase();
    for bad in ["x", "####", "ÄÖÜ", "\0", &lower, &version, &"A".repeat(1 << 20)] {
        let outcome = search(&|options| options.snapshot = bad.into()).await;
        refused_for(outcome, Kind::TokenMalformed, "options.snapshot");
    }
    for bad in ["x", "=", &snapshot, &version[1..]] {
        let outcome = search(&|options| options.at_least = bad.into()).await;
        refused_for(outcome, Kind::TokenMalformed, "options.at_least");
    }
    let both = search(&|options| (options.snapshot, options.at_least) = (snapshot.clone(), version.clone())).await;
    refused_for(both, Kind::ArgumentInvalid, "options.snapshot");
    let of_another = SearchOptions { snapshot, ..options("probe", 1, 10) };
    refused(client.search_keyword(keyword_search("apple", of_another)).await, Kind::SnapshotExpired);
    still_serves(client).await;
}
