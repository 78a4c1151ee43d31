//! What two callers need, as they call: a searcher of notes (keywords, vectors or both, by reciprocal ranks), and a
//! vector search interface with a kind of query for each kind of search. Vectors are the callers' own here.

#![allow(clippy::unwrap_used)]

use antiphon_proto::v1::*;
use antiphon_tests::client::Client;
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::sample::*;

/// How the notes' searcher searches.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Hybrid,
    Keywords,
    Vectors,
}

/// Notes with a path, a heading, a text and a vector whose axes are three subjects: servers, books, releases.
struct Notes(Local);

impl Notes {
    async fn open(notes: &[(&str, &str, [f32; 3])]) -> Self {
        let server = LocalBuilder::new().start().await;
        let mut schema = schema(3, Metric::Cosine);
        schema.texts = vec![
            TextField { name: "text".into(), analyzer: "ru".into(), boost: 1.0 },
            TextField { name: "heading".into(), analyzer: "ru".into(), boost: 1.0 },
        ];
        server.client.create(collection("notes", 2, schema)).await.unwrap();
        let documents: Vec<_> = notes
            .iter()
            .map(|(heading, body, vector)| {
                let mut note = document("", vector, "");
                note.fields.insert("heading".into(), text(heading));
                note.fields.insert("text".into(), text(body));
                note
            })
            .collect();
        if !documents.is_empty() {
            server.client.upsert("notes", documents).await.unwrap();
        }
        Self(server)
    }

    /// The texts found: at most 8 words of letters and digits, two characters or more, joined by OR; lists of 32; texts of
    /// at most 1,200 characters; every write so far is seen.
    async fn search(&self, words: &str, vector: [f32; 3], k: u32, mode: Mode) -> Vec<String> {
        let client: &Client = &self.0.client;
        let options = SearchOptions {
            text_limit: 1_200,
            consistency: Consistency::Refresh as i32,
            fields: vec!["heading".into(), "text".into()],
            ..options("notes", 1, k)
        };
        let keyword = Some(Keyword { max_terms: 8, min_term_chars: 2, ..Keyword::default() });
        let answer = match mode {
            Mode::Keywords => {
                client.search_keyword(SearchKeywordRequest { keyword, ..keyword_search(words, options) }).await
            }
            Mode::Vectors => client.search_vector(vector_search(&vector, options)).await,
            Mode::Hybrid => {
                let fusion = Some(Fusion { method: FusionMethod::ReciprocalRank as i32, ..Fusion::default() });
                let request = SearchHybridRequest { keyword, fusion, ..hybrid_search(&vector, words, options) };
                client.search_hybrid(request).await
            }
        };
        let string = |document: Option<Document>| match document.unwrap().fields.remove("text").unwrap().kind {
            Some(value::Kind::String(text)) => text,
            other => panic!("{other:?}"),
        };
        answer.unwrap().matches.into_iter().map(|found| string(found.document)).collect()
    }
}

const SERVER: (&str, &str, [f32; 3]) = ("Сеть", "Прокси корпоративных доменов на 76.132", [1.0, 0.1, 0.1]);
const BOOK: (&str, &str, [f32; 3]) = ("Чтение", "Глава о поэзии и её переводах", [0.1, 1.0, 0.0]);
const CI: (&str, &str, [f32; 3]) = ("CI", "Конвейер собирает и публикует сборки", [0.1, 0.0, 1.0]);

#[tokio::test(flavor = "multi_thread")]
async fn keywords_find_an_exact_value() {
    let notes = Notes::open(&[BOOK, SERVER, CI]).await;
    let found = notes.search("76.132", [0.0, 1.0, 0.0], 8, Mode::Keywords).await;
    assert!(found[0].contains("76.132"), "{found:?}");
    // A word of the text in another form, one too short, and nothing but signs.
    assert!(notes.search("доменам", [0.0, 1.0, 0.0], 8, Mode::Keywords).await[0].contains("76.132"));
    for nothing in ["о", "«?!» — ", ""] {
        assert!(notes.search(nothing, [0.0, 1.0, 0.0], 8, Mode::Keywords).await.is_empty(), "{nothing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_find_what_is_meant() {
    let notes = Notes::open(&[SERVER, BOOK, CI]).await;
    let found = notes.search("настройка выпуска приложения", [0.2, 0.0, 0.9], 8, Mode::Vectors).await;
    assert_eq!(found[0], CI.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn keywords_ignore_what_only_vectors_find() {
    let notes = Notes::open(&[
        ("", "опрос", [1.0, 0.0, 0.0]),
        ("", "случай", [0.0, 1.0, 0.0]),
        ("", "знание", [0.0, 0.0, 1.0]),
    ])
    .await;
    assert!(notes.search("автомобиль", [0.5, 0.5, 0.5], 8, Mode::Keywords).await.is_empty());
    assert_eq!(notes.search("автомобиль", [0.5, 0.5, 0.5], 8, Mode::Vectors).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_together_find_the_value_and_the_meaning() {
    let notes = Notes::open(&[BOOK, SERVER, CI]).await;
    let found = notes.search("выпуск на 76.132", [0.1, 0.0, 0.9], 5, Mode::Hybrid).await;
    assert!(found.contains(&SERVER.1.to_owned()) && found.contains(&CI.1.to_owned()), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_as_asked_for_and_no_longer_than_asked_for() {
    let long = "слово ".repeat(400);
    let notes: Vec<_> = (0..4).map(|n| ("", long.as_str(), [1.0, n as f32, 0.0])).collect();
    let notes = Notes::open(&notes).await;
    for mode in [Mode::Hybrid, Mode::Keywords, Mode::Vectors] {
        let found = notes.search("слово", [1.0, 0.0, 0.0], 2, mode).await;
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|text| text.chars().count() == 1_200), "cut by characters, not bytes");
    }
    let nothing = Notes::open(&[]).await;
    for mode in [Mode::Hybrid, Mode::Keywords, Mode::Vectors] {
        assert!(nothing.search("слово", [1.0, 0.0, 0.0], 2, mode).await.is_empty());
    }
}

/// A glossary with two vector fields and two text fields.
async fn glossary() -> Local {
    let server = LocalBuilder::new().start().await;
    let vectors = ["definition_embedding", "term_embedding"].map(|name| VectorField {
        name: name.into(),
        dimensions: 2,
        ..VectorField::default()
    });
    let texts = ["term", "definition"].map(|name| TextField {
        name: name.into(),
        analyzer: "en".into(),
        ..TextField::default()
    });
    let schema = Schema { vectors: vectors.into(), texts: texts.into(), ..Schema::default() };
    server.client.create(collection("glossary", 1, schema)).await.unwrap();
    let entries = [
        ("1", "kernel", "What runs plugins and functions", [1.0, 0.0], [0.0, 1.0]),
        ("2", "plugin", "Functions that a kernel can call", [0.8, 0.6], [1.0, 0.0]),
        ("3", "memory", "What is kept between calls", [0.0, 1.0], [0.6, 0.8]),
        ("4", "planner", "Makes steps out of a goal", [-1.0, 0.0], [0.7, 0.7]),
    ];
    let documents = entries.map(|(key, term, definition, by_definition, by_term)| {
        let mut entry = document(key, &[], "");
        entry.fields = [("term".into(), text(term)), ("definition".into(), text(definition))].into();
        let vector = |values: [f32; 2]| antiphon_proto::vector::to_proto(&values);
        entry.vectors =
            [("definition_embedding".into(), vector(by_definition)), ("term_embedding".into(), vector(by_term))].into();
        entry
    });
    server.client.upsert("glossary", documents.into()).await.unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_query_has_a_call_of_its_own() {
    let server = glossary().await;
    let client = &server.client;
    let by = |field: &str, options| SearchVectorRequest {
        vector_field: field.into(),
        ..vector_search(&[1.0, 0.0], options)
    };
    // A limit and an offset, as the interface has them, 3 and 0 unless said otherwise.
    let answer = client.search_vector(by("definition_embedding", options("glossary", 1, 3))).await.unwrap();
    assert_eq!(keys(&answer), ["1", "2", "3"]);
    let offset = SearchOptions { skip: 1, ..options("glossary", 0, 3) };
    assert_eq!(keys(&client.search_vector(by("definition_embedding", offset)).await.unwrap()), ["2", "3", "4"]);
    let answer = client.search_vector(by("term_embedding", options("glossary", 1, 1))).await.unwrap();
    assert_eq!((keys(&answer), answer.matches[0].document.as_ref().unwrap().vectors.len()), (vec!["2"], 0));
    let with_vectors = SearchOptions { include_vectors: true, ..options("glossary", 1, 1) };
    let answer = client.search_vector(by("term_embedding", with_vectors)).await.unwrap();
    assert_eq!(answer.matches[0].document.as_ref().unwrap().vectors.len(), 2);

    // A vector with a text for keywords: with the text field, and with both fields named.
    let hybrid = |field: &str, text_field: &str| SearchHybridRequest {
        vector_field: field.into(),
        text_fields: vec![text_field.into()],
        ..hybrid_search(&[1.0, 0.0], "what does kernel mean?", options("glossary", 1, 2))
    };
    let answer = client.search_hybrid(hybrid("definition_embedding", "definition")).await.unwrap();
    assert_eq!(keys(&answer), ["1", "2"]);
    let answer = client.search_hybrid(hybrid("term_embedding", "term")).await.unwrap();
    assert_eq!(keys(&answer), ["2", "1"]);
    let channels: Vec<_> = answer.matches.iter().map(Match::channel).collect();
    assert_eq!(channels, [Channel::Vector, Channel::Keyword]);

    // Both vector fields at once, which the interface leaves to several calls.
    let query = |field: &str| VectorQuery {
        vector: Some(antiphon_proto::vector::to_proto(&[1.0, 0.0])),
        vector_field: field.into(),
    };
    let several = SearchVectorRequest {
        queries: vec![query("definition_embedding"), query("term_embedding")],
        options: Some(options("glossary", 1, 4)),
        ..SearchVectorRequest::default()
    };
    assert_eq!(keys(&client.search_vector(several).await.unwrap()), ["1", "2", "4", "3"]);
    server.stop().await;
}
