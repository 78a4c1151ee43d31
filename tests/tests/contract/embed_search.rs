//! SearchText and SearchHybridText over gRPC, with a static model in the server: they are SearchVector and SearchHybrid with
//! the text's vector, documents are embedded where they come without a vector, and faults are told.

#![allow(clippy::unwrap_used)]

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::*;
use antiphon_proto::vector;
use antiphon_tests::client::kind_of;
use antiphon_tests::local::LocalBuilder;
use antiphon_tests::models::{self, *};
use antiphon_tests::sample::*;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn a_text_search_is_the_vector_search_of_its_embedding() {
    let embedders = embedders().await;
    let local = filled(&embedders).await;
    for words in ["mend a puncture", "bake", "Window, glass", "bread of the bicycle"] {
        let values = vector_of(&embedders, "made", words).await;
        for page in 1..=3 {
            let by_text = local.client.search_text(text_search(words, options("c", page, 2))).await.unwrap();
            let by_vector = local.client.search_vector(vector_search(&values, options("c", page, 2))).await.unwrap();
            assert_eq!(comparable(by_text), comparable(by_vector), "{words} {page}");
            let by_text =
                local.client.search_hybrid_text(hybrid_text_search(words, options("c", page, 2))).await.unwrap();
            let by_both =
                local.client.search_hybrid(hybrid_search(&values, words, options("c", page, 2))).await.unwrap();
            assert_eq!(comparable(by_text), comparable(by_both), "{words} {page}");
        }
    }
    let by_text = local.client.search_text(text_search("cycling", options("c", 1, 2))).await.unwrap();
    assert_eq!(by_text.matches[0].key, "wheel", "no document has the word");
    assert!(by_text.matches.iter().all(|found| found.channel() == Channel::Vector));
    local.stop().await;
}

/// The fields of a hybrid text search reach the keyword channel and the fusion.
#[tokio::test(flavor = "multi_thread")]
async fn options_of_a_hybrid_text_search_are_honoured() {
    let embedders = embedders().await;
    let local = filled(&embedders).await;
    let request = SearchHybridTextRequest {
        text_fields: vec!["title".into()],
        keyword: Some(Keyword { operator: Operator::And as i32, ..Keyword::default() }),
        fusion: Some(Fusion { method: FusionMethod::ReciprocalRank as i32, k: Some(1), ..Fusion::default() }),
        ..hybrid_text_search("bread", options("c", 1, 5))
    };
    let values = vector_of(&embedders, "made", "bread").await;
    let same = SearchHybridRequest {
        text_fields: request.text_fields.clone(),
        keyword: request.keyword,
        fusion: request.fusion.clone(),
        ..hybrid_search(&values, "bread", options("c", 1, 5))
    };
    let by_text = local.client.search_hybrid_text(request).await.unwrap();
    let in_keywords = |found: &&Match| found.places.iter().any(|place| place.channel() == Channel::Keyword);
    let keys: Vec<_> = by_text.matches.iter().filter(in_keywords).map(|found| found.key.as_str()).collect();
    assert_eq!(keys, ["loaf"], "the word is in the body of another");
    assert_eq!(comparable(by_text), comparable(local.client.search_hybrid(same).await.unwrap()));
    local.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_get_the_vectors_of_their_texts_and_keep_their_own() {
    let embedders = embedders().await;
    let local = server(&embedders).await;
    local.client.create(collection("c", 3, schema_with(&["body", "title"]))).await.unwrap();
    let mut own = document_of("own", "bread", "loaf");
    own.vectors.insert("v".into(), vector::to_proto(&[1.0; DIMENSIONS as usize]));
    let unknown = document_of("unknown", "zeppelin", "");
    let blank = document_of("blank", " \n", "\t");
    let none = Document { key: "none".into(), ..Document::default() };
    let joined = document_of("joined", "bread", "bicycle");
    let documents = vec![own, unknown, blank, none, joined];
    local.client.upsert("c", documents.clone()).await.unwrap();
    let held = |response: GetDocumentsResponse| -> Vec<(String, Option<Vec<f32>>)> {
        let vector = |document: &Document| document.vectors.get("v").map(|held| vector::components(held).unwrap());
        response.documents.iter().map(|document| (document.key.clone(), vector(document))).collect()
    };
    let keys = ["own", "unknown", "blank", "none", "joined"];
    let wanted = [
        ("own".to_owned(), Some(vec![1.0; DIMENSIONS as usize])),
        ("unknown".to_owned(), None),
        ("blank".to_owned(), None),
        ("none".to_owned(), None),
        ("joined".to_owned(), Some(vector_of(&embedders, "made", "bicycle\nbread").await)),
    ];
    assert_eq!(held(local.client.get("c", &keys).await.unwrap()), wanted);
    // Found by the others alone.
    let answer = local.client.search_text(text_search("bicycle", options("c", 1, 10))).await.unwrap();
    assert_eq!(antiphon_tests::sample::keys(&answer), ["joined", "own"]);
    let answer = local.client.search_keyword(keyword_search("zeppelin", options("c", 1, 10))).await.unwrap();
    assert_eq!(antiphon_tests::sample::keys(&answer), ["unknown"]);

    // The same by an import, over more texts than one piece of work takes.
    local.client.create(collection("d", 2, schema_with(&["body", "title"]))).await.unwrap();
    let mut many: Vec<Document> =
        (0..100).map(|n| document_of(&format!("n{n}"), DOCUMENTS[n % 5].1, DOCUMENTS[n % 5].2)).collect();
    many.extend(documents);
    let request = ImportDocumentsRequest { collection: "d".into(), documents: many };
    let mut answers =
        local.client.documents.clone().import_documents(tokio_stream::iter([request])).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().num_imported, 105);
    assert_eq!(held(local.client.get("d", &keys).await.unwrap()), wanted);
    for n in [0, 57, 99] {
        let words = format!("{}\n{}", DOCUMENTS[n % 5].2, DOCUMENTS[n % 5].1);
        let found = held(local.client.get("d", &[&format!("n{n}")]).await.unwrap());
        assert_eq!(found[0].1, Some(vector_of(&embedders, "made", words.trim()).await), "{words}");
    }
    local.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_embed_is_an_empty_query() {
    let embedders = embedders().await;
    let local = filled(&embedders).await;
    for words in ["", " \t\n", "\u{3000}", "zeppelin"] {
        let by_text = local.client.search_text(text_search(words, options("c", 1, 5))).await.unwrap_err();
        assert_eq!(kind_of(&by_text), ErrorKind::QueryEmpty, "{words:?}");
        let by_both = local.client.search_hybrid_text(hybrid_text_search(words, options("c", 1, 5))).await.unwrap_err();
        assert_eq!(kind_of(&by_both), ErrorKind::QueryEmpty, "{words:?}");
        // A keyword text never fails.
        local.client.search_keyword(keyword_search(words, options("c", 1, 5))).await.unwrap();
    }
    local.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_text_searches_are_named() {
    let embedders = embedders().await;
    let local = filled(&embedders).await;
    let refused = async |request: SearchTextRequest| kind_of(&local.client.search_text(request).await.unwrap_err());
    assert_eq!(refused(text_search("bread", options("nobody", 1, 5))).await, ErrorKind::CollectionNotFound);
    assert_eq!(refused(text_search("bread", options("c", 100, 5))).await, ErrorKind::PageOutOfRange);
    let request = text_search("bread", options("c", 1, 5));
    assert_eq!(refused(SearchTextRequest { vector_field: "w".into(), ..request }).await, ErrorKind::FieldUnknown);

    local.client.create(collection("plain", 1, schema(2, Metric::Cosine))).await.unwrap();
    assert_eq!(refused(text_search("bread", options("plain", 1, 5))).await, ErrorKind::FieldType);
    let mut several = schema_with(&[]);
    several.vectors.push(VectorField { name: "w".into(), embedder: "pieces".into(), ..several.vectors[0].clone() });
    local.client.create(collection("several", 1, several)).await.unwrap();
    assert_eq!(refused(text_search("bread", options("several", 1, 5))).await, ErrorKind::FieldAmbiguous);
    local.stop().await;
}

/// Two fields of one collection, each with its own model.
#[tokio::test(flavor = "multi_thread")]
async fn several_models_serve_one_collection() {
    let embedders = embedders().await;
    let local = server(&embedders).await;
    let mut both = schema_with(&["title"]);
    let more = VectorField {
        name: "w".into(),
        embedder: "pieces".into(),
        embed_fields: vec!["body".into()],
        ..both.vectors[0].clone()
    };
    both.vectors.push(more);
    local.client.create(collection("c", 1, both)).await.unwrap();
    local
        .client
        .upsert("c", DOCUMENTS.iter().map(|(key, title, body)| document_of(key, title, body)).collect())
        .await
        .unwrap();
    for (field, model) in [("v", "made"), ("w", "pieces")] {
        let by_text = SearchTextRequest { vector_field: field.into(), ..text_search("glass", options("c", 1, 5)) };
        let values = vector_of(&embedders, model, "glass").await;
        let by_vector =
            SearchVectorRequest { vector_field: field.into(), ..vector_search(&values, options("c", 1, 5)) };
        let by_text = comparable(local.client.search_text(by_text).await.unwrap());
        assert_eq!(by_text, comparable(local.client.search_vector(by_vector).await.unwrap()));
        // The document without a title is in one channel alone.
        assert_eq!(by_text.matches.len(), if field == "v" { 4 } else { 5 });
    }
    local.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_may_only_name_embedders_that_are_there_and_fit() {
    let embedders = embedders().await;
    let local = server(&embedders).await;
    let violations = async |change: &dyn Fn(&mut VectorField)| -> Vec<String> {
        let mut schema = schema_with(&[]);
        change(&mut schema.vectors[0]);
        let status = local.client.create(collection("c", 1, schema)).await.unwrap_err();
        assert_eq!(kind_of(&status), ErrorKind::SchemaInvalid);
        ApiError::from_status(&status).violations().iter().map(|found| found.field.clone()).collect()
    };
    let path = "collection.schema.vectors[0]";
    assert_eq!(violations(&|field| field.embedder = "other".into()).await, [format!("{path}.embedder")]);
    assert_eq!(violations(&|field| field.dimensions = 9).await, [format!("{path}.dimensions")]);
    assert_eq!(
        violations(&|field| field.embed_fields = vec!["tags".into()]).await,
        [format!("{path}.embed_fields[0]")]
    );
    let created = local.client.create(collection("c", 1, schema_with(&["body"]))).await.unwrap();
    let field = &created.schema.unwrap().vectors[0];
    assert_eq!((field.embedder.as_str(), field.embed_fields.as_slice()), ("made", ["body".to_owned()].as_slice()));
    let described = local.client.describe_cluster().await.unwrap().embedders;
    let described: Vec<_> =
        described.iter().map(|found| (found.name.as_str(), found.kind.as_str(), found.dimensions)).collect();
    assert_eq!(described, [("made", "static", DIMENSIONS), ("pieces", "static", DIMENSIONS)]);
    local.stop().await;
}

/// A server that lost its embedder neither searches nor writes without it; own vectors go on working.
#[tokio::test(flavor = "multi_thread")]
async fn without_its_embedder_a_collection_takes_only_whole_documents() {
    let embedders = embedders().await;
    let local = filled(&embedders).await;
    let other = models::start([("pieces", models::local("wordllama"))]).await;
    let poorer = LocalBuilder::new().store(local.store.clone());
    let poorer = poorer.coordinator_config(|config| config.embedders = other).start().await;
    let status = poorer.client.search_text(text_search("bread", options("c", 1, 5))).await.unwrap_err();
    assert_eq!((kind_of(&status), status.code()), (ErrorKind::EmbedderUnavailable, Code::Unavailable));
    assert!(status.message().contains("made"), "{status:?}");
    let status = poorer.client.upsert("c", vec![document_of("new", "bread", "")]).await.unwrap_err();
    assert_eq!(kind_of(&status), ErrorKind::EmbedderUnavailable);
    assert_eq!(poorer.client.get("c", &["new"]).await.unwrap().missing_keys, ["new"]);
    let mut whole = document_of("whole", "bread", "");
    whole.vectors.insert("v".into(), vector::to_proto(&[1.0; DIMENSIONS as usize]));
    poorer.client.upsert("c", vec![whole]).await.unwrap();
    let values = vector_of(&embedders, "made", "bread").await;
    assert_eq!(poorer.client.search_vector(vector_search(&values, options("c", 1, 9))).await.unwrap().matches.len(), 6);
    poorer.stop().await;
    local.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_embedder_the_services_are_not_there() {
    let local = LocalBuilder::new().start().await;
    local.client.create(collection("c", 1, schema(2, Metric::Cosine))).await.unwrap();
    let by_text = local.client.search_text(text_search("bread", options("c", 1, 5))).await.unwrap_err();
    let by_both = local.client.search_hybrid_text(hybrid_text_search("bread", options("c", 1, 5))).await.unwrap_err();
    assert_eq!([by_text.code(), by_both.code()], [Code::Unimplemented; 2]);
    local.stop().await;
}
