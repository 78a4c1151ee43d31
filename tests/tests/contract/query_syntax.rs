//! SYNTAX_QUERY over gRPC: what operators find, with the scores of plain queries, however documents are spread.

#![allow(clippy::unwrap_used)]

use antiphon_proto::error::ErrorKind as Kind;
use antiphon_proto::v1::*;
use antiphon_tests::contract::{refused, refused_for};
use antiphon_tests::local::LocalBuilder;
use antiphon_tests::model::{Model, Words};
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;

fn syntax(text: &str, operator: Operator, fields: &[&str], options: SearchOptions) -> SearchKeywordRequest {
    SearchKeywordRequest {
        text_fields: fields.iter().map(|name| (*name).to_owned()).collect(),
        keyword: Some(Keyword { operator: operator as i32, syntax: Syntax::Query as i32, ..Keyword::default() }),
        ..keyword_search(text, options)
    }
}

/// A query with syntax, the plain words that score, and which documents meet it by the words of their field t.
type Case = (&'static str, &'static str, fn(&dyn Fn(&str) -> bool) -> bool);

const CASES: [Case; 8] = [
    ("red apple", "red apple", |has| has("red") || has("apple")),
    ("+red apple", "red apple", |has| has("red")),
    ("+red +apple sky", "red apple sky", |has| has("red") && has("apple")),
    ("red apple -sky", "red apple", |has| (has("red") || has("apple")) && !has("sky")),
    ("(red OR blue) AND t:apple", "red blue apple", |has| (has("red") || has("blue")) && has("apple")),
    ("apple AND NOT (red OR sky)", "apple", |has| has("apple") && !has("red") && !has("sky")),
    ("owl OR (fox AND sea)", "owl fox sea", |has| has("owl") || has("fox") && has("sea")),
    ("apple \"red\" apple", "apple red", |has| has("red") || has("apple")),
];

#[tokio::test(flavor = "multi_thread")]
async fn operators_choose_documents_and_scores_stay_those_of_the_words() {
    let mut random = Random::seeded(41);
    let server = LocalBuilder::new().small_segments(40).start().await;
    let client = &server.client;
    let mut schema = schema(2, Metric::Cosine);
    schema.texts.push(TextField { name: "u".into(), analyzer: "standard".into(), boost: 1.0 });
    let mut model = Model::new(schema.clone());
    for shards in [1, 3] {
        client.create(collection(&format!("shards-{shards}"), shards, schema.clone())).await.unwrap();
    }
    for _ in 0..6 {
        let documents: Vec<_> = (0..60).map(|_| random.document(200, 2, Metric::Cosine)).collect();
        for shards in [1, 3] {
            client.upsert(&format!("shards-{shards}"), documents.clone()).await.unwrap();
        }
        model.upsert(&documents);
    }
    server.settle(|replica| replica.num_live_rows == 0).await;
    for (text, plain, meets) in CASES {
        let words = Words { text: plain.into(), fields: vec!["t".into()], operator: Operator::Or };
        let mut expected = model.keyword_list(&words);
        expected.retain(|entry| {
            let alone = |word: &str| Words { text: word.into(), ..words.clone() };
            let has = |word: &str| model.keyword_list(&alone(word)).iter().any(|found| found.folded == entry.folded);
            meets(&has)
        });
        let expected: Vec<_> = expected.iter().map(|entry| (model.key(&entry.folded), entry.score.to_bits())).collect();
        assert!(!expected.is_empty(), "{text}: nothing is shown");
        for shards in [1, 3] {
            let options = options(&format!("shards-{shards}"), 1, 1_000);
            let answer = client.search_keyword(syntax(text, Operator::Or, &["t"], options)).await.unwrap();
            let found: Vec<_> =
                answer.matches.iter().map(|found| (found.key.as_str(), found.score.to_bits())).collect();
            assert_eq!(found, expected, "{text}, {shards} shards");
        }
    }
    // Pages are stretches of one ranking here too.
    let whole = client.search_keyword(syntax("red -sky", Operator::Or, &[], options("shards-3", 1, 99))).await.unwrap();
    let mut together = Vec::new();
    for page in 1..=33 {
        let options = options("shards-3", page, 3);
        together.extend(client.search_keyword(syntax("red -sky", Operator::Or, &[], options)).await.unwrap().matches);
    }
    assert_eq!(together, whole.matches);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_make_no_phrase_and_say_so_where_they_are_read() {
    let server = LocalBuilder::new().small_segments(4).start().await;
    let client = &server.client;
    let mut schema = schema(2, Metric::Cosine);
    schema.texts.push(TextField { name: "tag".into(), analyzer: "exact".into(), boost: 1.0 });
    client.create(collection("c", 2, schema)).await.unwrap();
    let tagged = |key: &str, words: &str, tag: &str| {
        let mut document = document(key, &[], words);
        document.fields.insert("tag".into(), text(tag));
        document
    };
    let documents = vec![
        tagged("phrase", "the North Sea", "north sea"),
        tagged("turned", "a sea of the north", "North Sea"),
        tagged("far", "north, where no more trees grow, there is a sea", "sea (north)"),
        tagged("half", "the Baltic Sea", "sea"),
        tagged("version", "76.132 is out, 132.76 is not", "76.132"),
    ];
    client.upsert("c", documents).await.unwrap();
    for _ in 0..2 {
        // A plain text: quotes part words and are nothing else.
        for (operator, expected) in [(Operator::Or, 4), (Operator::And, 3)] {
            let plain = |words: &str| {
                let keyword = Some(Keyword { operator: operator as i32, ..Keyword::default() });
                let request = keyword_search(words, options("c", 1, 10));
                client.search_keyword(SearchKeywordRequest { keyword, text_fields: vec!["t".into()], ..request })
            };
            let unquoted = plain("north sea").await.unwrap();
            assert_eq!(unquoted.matches.len(), expected);
            for words in ["\"north sea\"", "\"sea north\"", "'sea' \"north", "“north sea”", "«north» sea\""] {
                let mut found = plain(words).await.unwrap();
                // The order of the words is that of the sums of scores, so of their last bits.
                found.matches.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
                assert_eq!(keys(&found), keys(&unquoted), "{words}");
            }
        }
        // With syntax: one word, or the whole value of a field under `exact`, is what quotes can hold.
        let ask = |words: &str, fields: &[&str]| {
            client.search_keyword(syntax(words, Operator::Or, fields, options("c", 1, 10)))
        };
        for phrase in ["\"north sea\"", "t:\"north sea\"", "north AND 'the sea'", "\"76.132\"", "-\"north sea\" sea"] {
            let status = refused_for(ask(phrase, &["t"]).await, Kind::QuerySyntax, "text");
            assert!(status.message().contains("phrases of several words (+word +word"), "{phrase}: {status:?}");
        }
        let found = |answer: SearchResponse| {
            let mut keys: Vec<String> = keys(&answer).into_iter().map(str::to_owned).collect();
            keys.sort();
            keys
        };
        for (words, fields, expected) in [
            ("+north +sea", &["t"][..], &["far", "phrase", "turned"][..]),
            ("north AND \"sea\"", &["t"], &["far", "phrase", "turned"]),
            ("\"north\" 'baltic'", &["t"], &["far", "half", "phrase", "turned"]),
            ("76.132", &["t"], &["version"]),
            ("tag:\"north sea\"", &[], &["phrase"]),
            ("'North Sea' \"76.132\"", &["tag"], &["turned", "version"]),
            ("\"sea (north)\" -sea", &["tag"], &["far"]),
        ] {
            assert_eq!(found(ask(words, fields).await.unwrap()), expected, "{words}");
        }
        // A field that is searched besides and takes the value apart refuses it.
        refused_for(ask("\"north sea\"", &["t", "tag"]).await, Kind::QuerySyntax, "text");
        server.settle(|replica| replica.num_live_rows == 0).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_syntax_is_an_error_only_where_syntax_was_asked_for() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    let mut schema = schema(2, Metric::Cosine);
    schema.texts.push(TextField { name: "tag".into(), analyzer: "exact".into(), boost: 1.0 });
    for (name, shards) in [("c", 1), ("spread", 3)] {
        client.create(collection(name, shards, schema.clone())).await.unwrap();
        let mut tagged = document("tagged", &[], "a red apple");
        tagged.fields.insert("tag".into(), text("New York"));
        client.upsert(name, vec![tagged, document("plain", &[1.0, 0.0], "new york in red")]).await.unwrap();
        let ask = |text: &str| client.search_keyword(syntax(text, Operator::Or, &[], options(name, 1, 10)));
        for bad in ["(red", "t:", "red AND", "\"red", "t:[a TO b]", "r*", "\"red apple\"", "red^2", "-red", "/re.*/"] {
            let status = refused_for(ask(bad).await, Kind::QuerySyntax, "text");
            assert!(!status.message().is_empty());
            let plain = keyword_search(bad, options(name, 1, 10));
            client.search_keyword(plain).await.unwrap();
        }
        assert!(ask("red AND (apple").await.unwrap_err().message().contains("character"));
        refused_for(ask("nowhere:red").await, Kind::FieldUnknown, "text");
        refused_for(
            client.search_keyword(syntax("tag:x", Operator::Or, &["t"], options(name, 1, 10))).await,
            Kind::FieldUnknown,
            "text",
        );
        assert_eq!(keys(&ask("tag:\"New York\"").await.unwrap()), ["tagged"]);
        assert_eq!(keys(&ask("t:york").await.unwrap()), ["plain"]);
        let all =
            client.search_keyword(syntax("red apple", Operator::And, &["t"], options(name, 1, 10))).await.unwrap();
        assert_eq!(keys(&all), ["tagged"]);
        let nothing = ask("  ").await.unwrap();
        assert!(nothing.matches.is_empty() && nothing.warnings.len() == 1, "{nothing:?}");
        refused(ask(&"a ".repeat(3_000)).await, Kind::QuerySyntax);
    }
    let several = SearchKeywordRequest {
        queries: vec![
            KeywordQuery { text: "(red".into(), ..KeywordQuery::default() },
            KeywordQuery {
                text: "(red".into(),
                keyword: Some(Keyword { syntax: Syntax::Query as i32, ..Keyword::default() }),
                ..KeywordQuery::default()
            },
        ],
        options: Some(options("c", 1, 10)),
        ..SearchKeywordRequest::default()
    };
    refused_for(client.search_keyword(several).await, Kind::QuerySyntax, "queries[1].text");
    for (keyword, field) in [
        (Keyword { syntax: 9, ..Keyword::default() }, "keyword.syntax"),
        (Keyword { syntax: 2, max_terms: 3, ..Keyword::default() }, "keyword.max_terms"),
        (Keyword { syntax: 2, min_term_chars: 3, ..Keyword::default() }, "keyword.min_term_chars"),
    ] {
        let request = SearchKeywordRequest { keyword: Some(keyword), ..keyword_search("red", options("c", 1, 10)) };
        refused_for(client.search_keyword(request).await, Kind::ArgumentInvalid, field);
    }
    server.stop().await;
}
