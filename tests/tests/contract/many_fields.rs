//! Collections with several vector fields, each under its own metric, and documents that lack some of what others have.

#![allow(clippy::unwrap_used)]

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::*;
use antiphon_proto::vector;
use antiphon_tests::contract::refused_for;
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::model::{Model, vector_score};
use antiphon_tests::models;
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;

/// Name, dimensions, metric and what the graph holds.
const FIELDS: [(&str, u32, Metric, ElementType); 6] = [
    ("angle", 2, Metric::Cosine, ElementType::Bfloat16),
    ("inner", 3, Metric::Dot, ElementType::Float32),
    ("far", 2, Metric::Euclidean, ElementType::Float16),
    ("inner-2", 3, Metric::Dot, ElementType::Bfloat16),
    ("steps", 2, Metric::Cosine, ElementType::Int8),
    ("signs", 9, Metric::Hamming, ElementType::Bit),
];

fn field(place: usize) -> VectorField {
    let (name, dimensions, metric, element_type) = FIELDS[place];
    VectorField {
        name: name.into(),
        dimensions,
        metric: metric as i32,
        element_type: element_type as i32,
        ..VectorField::default()
    }
}

/// Some vectors of the fields, sent in either form, and what they are.
fn random_document(random: &mut Random, key: usize) -> Document {
    let mut document = document(&format!("k{key}"), &[], &random.words(4));
    for (name, dimensions, metric, _) in FIELDS {
        if random.chance(0.7) {
            let values = random.vector(dimensions as usize, metric);
            let sent = if random.chance(0.5) {
                vector::to_proto(&values)
            } else {
                Vector { kind: Some(antiphon_proto::v1::vector::Kind::Floats(Floats { values })) }
            };
            document.vectors.insert(name.into(), sent);
        }
    }
    document
}

async fn agree(random: &mut Random, server: &Local, name: &str, models: &[Model], sent: &[Document]) {
    let client = &server.client;
    for (place, model) in models.iter().enumerate() {
        let (field, dimensions, metric, _) = FIELDS[place];
        let query = random.vector(dimensions as usize, metric);
        let expected = model.vector_list(&query);
        let expected: Vec<_> = expected.iter().map(|entry| (model.key(&entry.folded), entry.score.to_bits())).collect();
        let options = SearchOptions { exact: true, include_vectors: true, ..options(name, 1, 1_000) };
        let request = SearchVectorRequest { vector_field: field.into(), ..vector_search(&query, options) };
        let answer = client.search_vector(request).await.unwrap();
        let found: Vec<_> = answer.matches.iter().map(|found| (found.key.as_str(), found.score.to_bits())).collect();
        assert_eq!(found, expected, "{name}, {field}");
        // Vectors come back as bytes, component by component what was sent, whichever form that was.
        for found in &answer.matches {
            let sent = sent.iter().find(|document| document.key == found.key).unwrap();
            let back = &found.document.as_ref().unwrap().vectors;
            assert!(sent.vectors.keys().eq(back.keys()), "{name}, {}", found.key);
            for (field, sent) in &sent.vectors {
                let le: Vec<u8> =
                    vector::components(sent).unwrap().iter().flat_map(|value| value.to_le_bytes()).collect();
                let kind = Some(antiphon_proto::v1::vector::Kind::Float32Le(le.into()));
                assert_eq!(back[field].kind, kind, "{name}, {}, {field}", found.key);
            }
        }
    }
    let exported = client.export(name, None).await.unwrap();
    assert_eq!(exported.len(), sent.len());
    let num_vectors = |documents: &[Document]| documents.iter().map(|document| document.vectors.len()).sum::<usize>();
    assert_eq!(num_vectors(&exported), num_vectors(sent));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_vector_field_is_searched_by_its_own_metric() {
    let mut random = Random::seeded(71);
    let server = LocalBuilder::new().small_segments(30).start().await;
    let client = &server.client;
    let whole = Schema { vectors: (0..FIELDS.len()).map(field).collect(), ..schema(2, Metric::Cosine) };
    let mut models: Vec<Model> =
        (0..FIELDS.len()).map(|place| Model::new(Schema { vectors: vec![field(place)], ..whole.clone() })).collect();
    let sent: Vec<Document> = (0..100).map(|key| random_document(&mut random, key)).collect();
    models.iter_mut().for_each(|model| model.upsert(&sent));
    for shards in [1, 3] {
        let name = format!("shards-{shards}");
        client.create(collection(&name, shards, whole.clone())).await.unwrap();
        client.upsert(&name, sent.clone()).await.unwrap();
        agree(&mut random, &server, &name, &models, &sent).await;
    }
    server.settle(|replica| replica.num_live_rows == 0).await;
    for shards in [1, 3] {
        agree(&mut random, &server, &format!("shards-{shards}"), &models, &sent).await;
    }

    // Several fields in one search: each list is that of its field, and the fusion is of them all.
    let queries = [0, 2, 1].map(|place| {
        let (name, dimensions, metric, _) = FIELDS[place];
        (place, name, random.vector(dimensions as usize, metric))
    });
    let request = SearchVectorRequest {
        queries: queries
            .iter()
            .map(|(_, name, query)| VectorQuery {
                vector: Some(vector::to_proto(query)),
                vector_field: (*name).to_owned(),
            })
            .collect(),
        fusion: Some(Fusion { method: FusionMethod::ReciprocalRank as i32, ..Fusion::default() }),
        options: Some(SearchOptions { exact: true, ..options("shards-3", 1, 100) }),
        ..SearchVectorRequest::default()
    };
    let answer = client.search_vector(request).await.unwrap();
    let in_some = |document: &&Document| [0, 1, 2].iter().any(|place| document.vectors.contains_key(FIELDS[*place].0));
    assert_eq!(answer.matches.len(), sent.iter().filter(in_some).count());
    for found in &answer.matches {
        let document = sent.iter().find(|document| document.key == found.key).unwrap();
        let fused: f64 = found.places.iter().map(|place| 1.0 / f64::from(60 + place.rank)).sum();
        assert!((found.score - fused).abs() < 1e-12, "{found:?}");
        for place in &found.places {
            let (field, name, query) = &queries[place.query as usize];
            let row = vector::components(&document.vectors[*name]).unwrap();
            assert_eq!(place.score.to_bits(), vector_score(FIELDS[*field].2, query, &row).to_bits(), "{found:?}");
        }
        assert_eq!(
            found.places.len(),
            queries.iter().filter(|(_, name, _)| document.vectors.contains_key(*name)).count()
        );
    }
    // Which field is meant has to be said.
    let unnamed = vector_search(&[1.0, 0.0], options("shards-1", 1, 10));
    let status = refused_for(client.search_vector(unnamed).await, ErrorKind::FieldAmbiguous, "vector_field");
    assert!(FIELDS.iter().all(|(name, ..)| status.message().contains(name)), "{status:?}");
    let other = vector_search(&[1.0, 0.0], options("shards-1", 1, 10));
    let other = SearchVectorRequest { vector_field: "inner".into(), ..other };
    refused_for(client.search_vector(other).await, ErrorKind::DimensionMismatch, "vector");
}

fn sorted(answer: &SearchResponse) -> Vec<&str> {
    let mut found = keys(answer);
    found.sort_unstable();
    found
}

/// What each search finds of documents with both, one or none of a vector and a text.
async fn finds_what_there_is(server: &Local, embedded: &[f32], state: &str) {
    let client = &server.client;
    let at = || options("lacking", 1, 10);
    let by_vector = client.search_vector(vector_search(embedded, at())).await.unwrap();
    assert_eq!(sorted(&by_vector), ["both", "vector"], "{state}");
    let by_words = client.search_keyword(keyword_search("bicycle", at())).await.unwrap();
    assert_eq!(sorted(&by_words), ["both", "text"], "{state}");
    let by_meaning = client.search_text(text_search("bicycle", at())).await.unwrap();
    assert_eq!(comparable(by_meaning), comparable(by_vector.clone()), "{state}");
    let methods = [
        FusionMethod::TurnTaking,
        FusionMethod::ReciprocalRank,
        FusionMethod::MaxScore,
        FusionMethod::RelativeScore,
        FusionMethod::DistributionScore,
    ];
    for method in methods {
        let fusion = Some(Fusion { method: method as i32, ..Fusion::default() });
        let request = SearchHybridRequest { fusion: fusion.clone(), ..hybrid_search(embedded, "bicycle", at()) };
        let by_both = client.search_hybrid(request).await.unwrap();
        assert_eq!(sorted(&by_both), ["both", "text", "vector"], "{state}, {method:?}");
        for found in &by_both.matches {
            let channels: Vec<Channel> = found.places.iter().map(Place::channel).collect();
            let expected: &[Channel] = match found.key.as_str() {
                "both" => &[Channel::Vector, Channel::Keyword],
                "vector" => &[Channel::Vector],
                _ => &[Channel::Keyword],
            };
            assert_eq!(channels, expected, "{state}, {method:?}, {}", found.key);
            assert!(found.score.is_finite(), "{state}, {method:?}, {found:?}");
        }
        let request = SearchHybridTextRequest { fusion: fusion.clone(), ..hybrid_text_search("bicycle", at()) };
        let by_text = client.search_hybrid_text(request).await.unwrap();
        assert_eq!(comparable(by_text), comparable(by_both.clone()), "{state}, {method:?}");
        let vector = Some(vector::to_proto(embedded));
        let by_vector = HybridQuery { vector, ..HybridQuery::default() };
        let by_words = HybridQuery { text: Some("bicycle".into()), ..HybridQuery::default() };
        let request = SearchHybridRequest {
            queries: vec![by_vector, by_words],
            fusion,
            options: Some(at()),
            ..SearchHybridRequest::default()
        };
        let by_several = client.search_hybrid(request).await.unwrap();
        assert_eq!(keys(&by_several), keys(&by_both), "{state}, {method:?}");
    }
    assert_eq!(client.count("lacking").await.unwrap(), 5);
    let mut exported: Vec<String> =
        client.export("lacking", None).await.unwrap().into_iter().map(|document| document.key).collect();
    exported.sort();
    assert_eq!(exported, ["blank", "both", "neither", "text", "vector"], "{state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_lacks_a_vector_or_a_text_is_found_by_the_other_in_every_search() {
    let embedders = models::embedders().await;
    let server = LocalBuilder::new()
        .small_segments(5)
        .coordinator_config(|config| config.embedders = embedders.clone())
        .start()
        .await;
    let client = &server.client;
    // The embedder reads another field, so that `text` keeps no vector.
    let schema = Schema { texts: models::schema_with(&[]).texts, ..models::schema_with(&["title"]) };
    client.create(collection("lacking", 1, schema)).await.unwrap();
    let embedded = models::vector_of(&embedders, "made", "bicycle").await;
    let mut both = models::document_of("both", "", "a bicycle");
    both.vectors.insert("v".into(), vector::to_proto(&embedded));
    let mut only_vector = models::document_of("vector", "", "");
    only_vector.vectors.insert("v".into(), vector::to_proto(&embedded));
    let documents = vec![
        both,
        only_vector,
        models::document_of("text", "", "the bicycle of another"),
        models::document_of("neither", "", ""),
        models::document_of("blank", " ", "..."),
    ];
    client.upsert("lacking", documents.clone()).await.unwrap();
    finds_what_there_is(&server, &embedded, "in memory or sealed").await;
    server.settle(|replica| replica.num_live_rows == 0).await;
    finds_what_there_is(&server, &embedded, "sealed").await;
    // Each replaced by one that has nothing, and back: what a document no longer has no longer finds it.
    let bare = documents.iter().map(|document| Document { key: document.key.clone(), ..Document::default() });
    client.upsert("lacking", bare.collect()).await.unwrap();
    let nothing = client.search_hybrid(hybrid_search(&embedded, "bicycle", options("lacking", 1, 10))).await.unwrap();
    assert_eq!(keys(&nothing), [""; 0]);
    client.upsert("lacking", documents).await.unwrap();
    finds_what_there_is(&server, &embedded, "written again").await;
}
