//! Query texts and document texts as people and machines write them: a text never fails on its characters, and means what
//! its words mean.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use antiphon_proto::error::ErrorKind as Kind;
use antiphon_proto::v1::*;
use antiphon_tests::client::Client;
use antiphon_tests::contract::{prepare, refused, still_serves};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::sample::*;

/// A server with the collection `texts` in two shards.
async fn server() -> Local {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    let client = &server.client;
    client.create(collection("texts", 2, schema(2, Metric::Cosine))).await.unwrap();
    let documents = [
        ("plain", "a red apple"),
        ("operators", "this and that or not"),
        ("url", "see https://example.org/a-b?q=1#top for more"),
        ("emoji", "🦀 crab 🦀"),
        ("russian", "красное яблоко"),
        ("chinese", "北京大学的苹果"),
        ("arabic", "تفاحة حمراء"),
        ("nul", "be\u{0}fore after"),
        ("empty", ""),
        ("signs", ">>> \"\" -- ()[]{}"),
    ];
    let documents = documents.map(|(key, words)| document(key, &[1.0, 0.0], words)).to_vec();
    client.upsert("texts", documents).await.unwrap();
    server
}

async fn search(client: &Client, words: &str) -> SearchResponse {
    client.search_keyword(keyword_search(words, options("texts", 1, 10))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_without_words_find_nothing_and_say_so() {
    let server = server().await;
    let client = &server.client;
    let texts = [
        "",
        " ",
        "\n\t\u{a0}",
        ">>>",
        "\"\"",
        "\"",
        "'",
        "-",
        "--",
        "*",
        "?",
        "()[]{}",
        "+-&&||!(){}[]^\"~*?:\\/",
        "\\",
        "\\\"",
        "\u{0}",
        "\u{0}\u{0}\u{0}",
        "\u{200f}\u{202e}\u{2067}",
        "\u{feff}",
        "\u{200b}",
        "....",
        "——",
        "。！？",
        "\u{301}",
        "<>&;",
        "%00",
        "\u{1b}[31m",
    ];
    for text in texts {
        let answer = search(client, text).await;
        let found: Vec<&str> = keys(&answer);
        if answer.warnings.is_empty() {
            // What an analyzer takes for a word may be one; it is in no document.
            assert!(found.is_empty(), "{text:?} found {found:?}");
        } else {
            assert_eq!((found.len(), answer.warnings.len()), (0, 1), "{text:?}: {:?}", answer.warnings);
        }
        let hybrid = hybrid_search(&[1.0, 0.0], text, options("texts", 1, 3));
        let answer = client.search_hybrid(hybrid).await.unwrap();
        assert_eq!(answer.matches.len(), 3, "{text:?}: the other channel goes on");
        let all = Keyword { operator: Operator::And as i32, ..Keyword::default() };
        let request = SearchKeywordRequest { keyword: Some(all), ..keyword_search(text, options("texts", 1, 3)) };
        assert!(client.search_keyword(request).await.unwrap().matches.is_empty(), "{text:?}: no terms match all");
    }
    for text in ["", ">>>", "\"\"", "-", "*", "()[]{}"] {
        assert_eq!(search(client, text).await.warnings.len(), 1, "{text:?}");
    }
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_and_operators_are_no_syntax() {
    let server = server().await;
    let client = &server.client;
    let cases: [(&str, &[&str]); 17] = [
        ("-apple", &["plain"]),
        ("+apple -red", &["plain"]),
        ("\"red apple", &["plain"]),
        ("\"apple red\"", &["plain"]),
        ("(apple", &["plain"]),
        ("apple)", &["plain"]),
        ("appl*", &[]),
        ("t:apple", &["plain"]),
        ("apple^1000", &["plain"]),
        ("apple~2", &["plain"]),
        ("[x TO apple]", &["plain"]),
        (">>>apple<<<", &["plain"]),
        ("AND OR NOT", &["operators"]),
        ("NOT apple", &["operators", "plain"]),
        ("https://example.org/a-b?q=1#top", &["plain", "url"]),
        ("\u{202e}apple\u{202c}", &["plain"]),
        ("ЯБЛОКО", &["russian"]),
    ];
    for (text, expected) in cases {
        let answer = search(client, text).await;
        let mut found = keys(&answer);
        found.sort_unstable();
        assert_eq!(found, expected, "{text:?}");
    }
    assert!(keys(&search(client, "苹果").await).contains(&"chinese"));
    assert_eq!(keys(&search(client, "تفاحة").await), ["arabic"]);
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_emoji_is_a_text_like_any_other() {
    let server = server().await;
    for text in ["🦀", "🦀🦀🦀", "👩‍👩‍👧‍👦 👍🏽 🇩🇪"] {
        let answer = search(&server.client, text).await;
        assert!(!answer.warnings.is_empty() || answer.matches.len() <= 1, "{text}: {answer:?}");
    }
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn query_texts_of_megabytes_are_read_to_a_bound() {
    let server = server().await;
    let client = &server.client;
    let started = Instant::now();
    let texts = [
        "apple ".repeat(1 << 20),
        (0..500_000).map(|n| format!("w{n} ")).collect(),
        "a".repeat(1 << 20),
        "🦀".repeat(1 << 20),
        "北".repeat(1 << 20),
        "\u{0}".repeat(5 << 20),
        format!("apple {}", "é".repeat(1 << 20)),
        "\"".repeat(5 << 20),
        "e\u{301}".repeat(1 << 20),
    ];
    for text in &texts {
        let answer = search(client, text).await;
        assert!(!answer.warnings.is_empty(), "{text:.20}");
        assert!(answer.warnings.iter().all(|words| words.len() < 300), "{:?}", answer.warnings);
        assert_eq!(keys(&answer).contains(&"plain"), text.starts_with("apple"), "{text:.20}");
    }
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_with_texts_of_megabytes_are_found_or_refused() {
    let server = LocalBuilder::new().small_segments(4).start().await;
    prepare(&server).await;
    let client = &server.client;
    client.create(collection("long", 1, schema(2, Metric::Cosine))).await.unwrap();
    let texts = [
        ("token", format!("{} needle", "x".repeat(1 << 20))),
        ("words", format!("{}needle", "word ".repeat(1 << 20))),
        ("chinese", format!("{} needle", "北京大学".repeat(100_000))),
        ("signs", format!("{} needle", ">".repeat(5 << 20))),
        ("marks", format!("needle e{}", "\u{301}".repeat(1 << 20))),
    ];
    for (key, text) in &texts {
        client.upsert("long", vec![document(key, &[1.0, 0.0], text)]).await.unwrap();
    }
    let far_too_long = document("most", &[], &"word ".repeat(2 << 20));
    refused(client.upsert("long", vec![far_too_long]).await, Kind::TooLarge);
    server.settle(|replica| replica.num_live_rows <= 4).await;
    let limited = SearchOptions { text_limit: 10, ..options("long", 1, 10) };
    let answer = client.search_keyword(keyword_search("needle", limited)).await.unwrap();
    let mut found = keys(&answer);
    found.sort_unstable();
    assert_eq!(found, ["chinese", "marks", "signs", "token", "words"]);
    for found in &answer.matches {
        let text = found.document.as_ref().unwrap().fields["t"].clone();
        let Some(value::Kind::String(text)) = text.kind else { panic!("{text:?}") };
        assert_eq!(text.chars().count(), 10);
    }
    still_serves(client).await;
}
