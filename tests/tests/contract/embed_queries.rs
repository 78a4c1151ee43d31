//! SearchText and SearchHybridText with several queries: they are SearchVector and SearchHybrid with the texts' vectors, all
//! texts of one embedder are embedded in one call, and faults are told before anything is embedded.

#![allow(clippy::unwrap_used)]

use antiphon_coordinator::embed::Embedders;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::*;
use antiphon_proto::vector;
use antiphon_tests::client::kind_of;
use antiphon_tests::endpoint::Endpoint;
use antiphon_tests::local::Local;
use antiphon_tests::models::{self, *};
use antiphon_tests::sample::*;
use tonic::Status;

const TEXTS: [&str; 3] = ["mend a puncture", "bake bread", "Window, glass"];

fn text_query(text: &str) -> TextQuery {
    TextQuery { text: text.into(), ..TextQuery::default() }
}

fn hybrid_text_query(text: &str) -> HybridTextQuery {
    HybridTextQuery { text: text.into(), ..HybridTextQuery::default() }
}

/// Several texts of one kind of search.
fn text_searches(texts: &[&str], options: SearchOptions) -> SearchTextRequest {
    let queries = texts.iter().map(|text| text_query(text)).collect();
    SearchTextRequest { queries, options: Some(options), ..SearchTextRequest::default() }
}

fn hybrid_text_searches(texts: &[&str], options: SearchOptions) -> SearchHybridTextRequest {
    let queries = texts.iter().map(|text| hybrid_text_query(text)).collect();
    SearchHybridTextRequest { queries, options: Some(options), ..SearchHybridTextRequest::default() }
}

/// Every method, and with weights those that take them.
fn fusions(num_lists: usize) -> Vec<Option<Fusion>> {
    let of = |method: FusionMethod| Fusion { method: method as i32, ..Fusion::default() };
    let weights: Vec<f64> = (0..num_lists).map(|index| 1.0 + index as f64 / 4.0).collect();
    vec![
        None,
        Some(of(FusionMethod::TurnTaking)),
        Some(of(FusionMethod::MaxScore)),
        Some(Fusion { k: Some(3), ..of(FusionMethod::ReciprocalRank) }),
        Some(Fusion { weights: weights.clone(), ..of(FusionMethod::ReciprocalRank) }),
        Some(Fusion { weights: weights.clone(), ..of(FusionMethod::RelativeScore) }),
        Some(Fusion { weights, ..of(FusionMethod::DistributionScore) }),
    ]
}

/// The queries in whose lists of a channel matches have places.
fn queries_of(answer: &SearchResponse, channel: Channel) -> Vec<u32> {
    let places = answer.matches.iter().flat_map(|found| &found.places);
    let mut queries: Vec<u32> = places.filter(|place| place.channel() == channel).map(|place| place.query).collect();
    queries.sort_unstable();
    queries.dedup();
    queries
}

/// What is changed in a request, and the kind and the words of the error that it then gets.
type Case<'a, R> = (&'a dyn Fn(&mut R), ErrorKind, &'a str);

#[tokio::test(flavor = "multi_thread")]
async fn several_texts_are_the_vector_search_of_their_embeddings() {
    let embedders = embedders().await;
    let local = filled(&embedders).await;
    let mut vectors = Vec::new();
    for text in TEXTS {
        let vector = Some(vector::to_proto(&vector_of(&embedders, "made", text).await));
        vectors.push(VectorQuery { vector, ..VectorQuery::default() });
    }
    for fusion in fusions(TEXTS.len()) {
        for page in 1..=3 {
            let by_text = SearchTextRequest { fusion: fusion.clone(), ..text_searches(&TEXTS, options("c", page, 2)) };
            let by_vector = SearchVectorRequest {
                queries: vectors.clone(),
                fusion: fusion.clone(),
                options: Some(options("c", page, 2)),
                ..SearchVectorRequest::default()
            };
            let by_text = comparable(local.client.search_text(by_text).await.unwrap());
            assert_eq!(by_text, comparable(local.client.search_vector(by_vector).await.unwrap()), "{page} {fusion:?}");
        }
    }
    let whole = local.client.search_text(text_searches(&TEXTS, options("c", 1, 5))).await.unwrap();
    assert_eq!(queries_of(&whole, Channel::Vector), [0, 1, 2]);
    // The first text has the first turn; its list is that of a search by it alone.
    let alone = local.client.search_text(text_search(TEXTS[0], options("c", 1, 1))).await.unwrap();
    assert_eq!(keys(&alone), [whole.matches[0].key.as_str()]);
    assert!(whole.matches[0].places.iter().any(|place| (place.query, place.rank) == (0, 1)));
    // One of several is the single query.
    let one = comparable(local.client.search_text(text_searches(&TEXTS[..1], options("c", 1, 5))).await.unwrap());
    let single = local.client.search_text(text_search(TEXTS[0], options("c", 1, 5))).await.unwrap();
    assert_eq!(one, comparable(single));
    local.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_hybrid_texts_are_the_hybrid_search_of_their_embeddings() {
    let embedders = embedders().await;
    let local = filled(&embedders).await;
    let mut by_text = hybrid_text_searches(&TEXTS, SearchOptions::default());
    by_text.queries[1].text_fields = vec!["title".into()];
    by_text.queries[2].keyword = Some(Keyword { operator: Operator::And as i32, ..Keyword::default() });
    // Words that the model knows and the analyzer does not find in any document.
    by_text.queries.push(hybrid_text_query("repair"));
    let mut by_both = SearchHybridRequest::default();
    for query in &by_text.queries {
        by_both.queries.push(HybridQuery {
            vector: Some(vector::to_proto(&vector_of(&embedders, "made", &query.text).await)),
            vector_field: String::new(),
            text: Some(query.text.clone()),
            text_fields: query.text_fields.clone(),
            keyword: query.keyword,
        });
    }
    let keywords_first = Fusion { first_channel: Channel::Keyword as i32, ..Fusion::default() };
    for fusion in fusions(2 * by_text.queries.len()).into_iter().chain([Some(keywords_first)]) {
        for page in 1..=3 {
            by_text.options = Some(options("c", page, 2));
            by_both.options = Some(options("c", page, 2));
            (by_text.fusion, by_both.fusion) = (fusion.clone(), fusion.clone());
            let answer = comparable(local.client.search_hybrid_text(by_text.clone()).await.unwrap());
            let wanted = comparable(local.client.search_hybrid(by_both.clone()).await.unwrap());
            assert_eq!(answer, wanted, "{page} {fusion:?}");
        }
    }
    by_text.options = Some(options("c", 1, 5));
    by_text.fusion = None;
    let answer = local.client.search_hybrid_text(by_text).await.unwrap();
    assert_eq!(queries_of(&answer, Channel::Vector), [0, 1, 2, 3]);
    assert_eq!(queries_of(&answer, Channel::Keyword), [0, 1, 2]);
    local.stop().await;
}

/// Fields of two models: `v` by an endpoint, `w` in the process.
async fn with_endpoint() -> (Endpoint, Embedders, Local) {
    let made = embedders().await;
    let endpoint = Endpoint::start(&made, "made").await;
    let remote = models::endpoint(&endpoint.url, |config| config.max_batch_texts = 64);
    let both = models::start([("made", remote), ("pieces", models::local("wordllama"))]).await;
    let local = server(&both).await;
    let mut schema = schema_with(&["title"]);
    let of_pieces = VectorField { name: "w".into(), embedder: "pieces".into(), ..schema.vectors[0].clone() };
    let own = VectorField { name: "own".into(), embedder: String::new(), embed_fields: vec![], ..of_pieces.clone() };
    schema.vectors.extend([of_pieces, own]);
    local.client.create(collection("c", 2, schema)).await.unwrap();
    let documents = DOCUMENTS.iter().map(|(key, title, body)| document_of(key, title, body)).collect();
    local.client.upsert("c", documents).await.unwrap();
    endpoint.take_asked();
    (endpoint, made, local)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_texts_of_one_embedder_travel_in_one_call() {
    let (endpoint, made, local) = with_endpoint().await;
    let texts = ["bicycle", "bread", "window", "repair", "glass"];
    let fields = ["v", "w", "v", "w", "v"];
    let mut by_text = SearchTextRequest { options: Some(options("c", 1, 5)), ..SearchTextRequest::default() };
    let mut by_vector = SearchVectorRequest { options: Some(options("c", 1, 5)), ..SearchVectorRequest::default() };
    let mut by_both =
        SearchHybridTextRequest { options: Some(options("c", 1, 5)), ..SearchHybridTextRequest::default() };
    for (text, field) in texts.into_iter().zip(fields) {
        by_text.queries.push(TextQuery { text: text.into(), vector_field: field.into() });
        by_both.queries.push(HybridTextQuery { vector_field: field.into(), ..hybrid_text_query(text) });
        let values = vector_of(&made, if field == "v" { "made" } else { "pieces" }, text).await;
        by_vector.queries.push(VectorQuery { vector: Some(vector::to_proto(&values)), vector_field: field.into() });
    }
    let answer = comparable(local.client.search_text(by_text).await.unwrap());
    let inputs = || endpoint.take_asked().into_iter().map(|asked| asked.input).collect::<Vec<_>>();
    assert_eq!(inputs(), [["bicycle", "window", "glass"]]);
    assert_eq!(queries_of(&answer, Channel::Vector), [0, 1, 2, 3, 4]);
    assert_eq!(answer, comparable(local.client.search_vector(by_vector).await.unwrap()));
    local.client.search_hybrid_text(by_both).await.unwrap();
    assert_eq!(inputs(), [["bicycle", "window", "glass"]]);
    local.stop().await;
}

/// What was refused, and the field that the error names.
fn fault(status: &Status) -> (ErrorKind, String) {
    let error = ApiError::from_status(status);
    let fields: Vec<_> = error.violations().iter().map(|found| found.field.as_str()).collect();
    (kind_of(status), fields.join(" "))
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_several_texts_are_named_and_nothing_is_embedded() {
    let (endpoint, _, local) = with_endpoint().await;
    let good = TextQuery { text: "bread".into(), vector_field: "v".into() };
    let text_cases: [Case<SearchTextRequest>; 8] = [
        (&|request| request.text = "bread".into(), ErrorKind::ArgumentInvalid, "queries"),
        (&|request| request.vector_field = "v".into(), ErrorKind::ArgumentInvalid, "queries"),
        (&|request| request.queries = vec![good.clone(); 17], ErrorKind::ArgumentInvalid, "queries"),
        (&|request| request.queries[2].text.clear(), ErrorKind::QueryEmpty, "queries[2].text"),
        (&|request| request.queries[1].text = " \u{3000}\n".into(), ErrorKind::QueryEmpty, "queries[1].text"),
        (&|request| request.queries[1].vector_field = "x".into(), ErrorKind::FieldUnknown, "queries[1].vector_field"),
        (&|request| request.queries[1].vector_field.clear(), ErrorKind::FieldAmbiguous, "queries[1].vector_field"),
        (&|request| request.queries[2].vector_field = "own".into(), ErrorKind::FieldType, "queries[2].vector_field"),
    ];
    for (number, (change, kind, field)) in text_cases.into_iter().enumerate() {
        let mut request = SearchTextRequest {
            queries: vec![good.clone(); 3],
            options: Some(options("c", 1, 5)),
            ..SearchTextRequest::default()
        };
        change(&mut request);
        let status = local.client.search_text(request).await.unwrap_err();
        assert_eq!(fault(&status), (kind, field.to_owned()), "{number}: {status:?}");
    }
    let good = HybridTextQuery { vector_field: "v".into(), ..hybrid_text_query("bread") };
    let hybrid_cases: [Case<SearchHybridTextRequest>; 6] = [
        (&|request| request.text = "bread".into(), ErrorKind::ArgumentInvalid, "queries"),
        (&|request| request.vector_field = "v".into(), ErrorKind::ArgumentInvalid, "queries"),
        (&|request| request.text_fields = vec!["title".into()], ErrorKind::ArgumentInvalid, "queries"),
        (&|request| request.keyword = Some(Keyword::default()), ErrorKind::ArgumentInvalid, "queries"),
        (&|request| request.queries = vec![good.clone(); 17], ErrorKind::ArgumentInvalid, "queries"),
        (&|request| request.queries[1].text.clear(), ErrorKind::QueryEmpty, "queries[1].text"),
    ];
    for (number, (change, kind, field)) in hybrid_cases.into_iter().enumerate() {
        let mut request = SearchHybridTextRequest {
            queries: vec![good.clone(); 3],
            options: Some(options("c", 1, 5)),
            ..SearchHybridTextRequest::default()
        };
        change(&mut request);
        let status = local.client.search_hybrid_text(request).await.unwrap_err();
        assert_eq!(fault(&status), (kind, field.to_owned()), "{number}: {status:?}");
    }
    assert_eq!(endpoint.take_asked().len(), 0, "a refused request was embedded");
    local.stop().await;
}

/// What only the embedded texts, the analyzers or the number of lists tell.
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_lists_of_several_texts_are_named() {
    let embedders = embedders().await;
    let local = filled(&embedders).await;
    let unknown =
        local.client.search_text(text_searches(&["bread", "zeppelin"], options("c", 1, 5))).await.unwrap_err();
    assert_eq!(fault(&unknown), (ErrorKind::QueryEmpty, "queries[1].text".into()));
    let mut request = hybrid_text_searches(&TEXTS, options("c", 1, 5));
    request.queries[2].text_fields = vec!["title".into(), "x".into()];
    let status = local.client.search_hybrid_text(request.clone()).await.unwrap_err();
    assert_eq!(fault(&status), (ErrorKind::FieldUnknown, "queries[2].text_fields[1]".into()));
    request.queries[2].text_fields.clear();
    request.queries[1].keyword = Some(Keyword { syntax: Syntax::Query as i32, ..Keyword::default() });
    request.queries[1].text = "bread AND (".into();
    let status = local.client.search_hybrid_text(request).await.unwrap_err();
    assert_eq!(fault(&status), (ErrorKind::QuerySyntax, "queries[1].text".into()));
    // A text has one list here and two there; a weight for each.
    let weighted = |count| {
        let method = FusionMethod::RelativeScore as i32;
        Some(Fusion { method, weights: vec![1.0; count], ..Fusion::default() })
    };
    for count in [1, 2, 3, 4, 5, 6, 7] {
        let by_text = SearchTextRequest { fusion: weighted(count), ..text_searches(&TEXTS, options("c", 1, 5)) };
        let by_text = local.client.search_text(by_text).await;
        assert_eq!(by_text.is_ok(), count == 3, "{count}: {by_text:?}");
        let by_both =
            SearchHybridTextRequest { fusion: weighted(count), ..hybrid_text_searches(&TEXTS, options("c", 1, 5)) };
        let by_both = local.client.search_hybrid_text(by_both).await;
        assert_eq!(by_both.is_ok(), count == 6, "{count}: {by_both:?}");
        for status in [by_text.err(), by_both.err()].into_iter().flatten() {
            assert_eq!(fault(&status), (ErrorKind::ArgumentInvalid, "fusion.weights".into()));
        }
    }
    local.stop().await;
}
