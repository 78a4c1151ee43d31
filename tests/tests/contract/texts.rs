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

/// What a searcher over SQLite's FTS5 asks for: the first 8 tokens of letters and digits, at least 2 long, joined by OR.
fn first_eight_tokens(text: &str) -> Vec<String> {
    let tokens = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    tokens.filter(|token| token.chars().count() >= 2).take(8).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_eight_tokens_of_two_letters_and_more_can_be_asked_for() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    client.create(collection("tokens", 2, schema(2, Metric::Cosine))).await.unwrap();
    let text = "C++ и 76.132: сервер, a книга (CI) foo_bar b-2 c2 last beyond more";
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(str::to_lowercase).collect();
    words.sort();
    words.dedup();
    let documents = words.iter().map(|word| document(word, &[], word)).collect();
    client.upsert("tokens", documents).await.unwrap();
    let keyword = Keyword { max_terms: 8, min_term_chars: 2, ..Keyword::default() };
    let request = SearchKeywordRequest { keyword: Some(keyword), ..keyword_search(text, options("tokens", 1, 50)) };
    let answer = client.search_keyword(request).await.unwrap();
    let mut found = keys(&answer);
    found.sort_unstable();
    let mut expected = first_eight_tokens(text);
    expected.sort();
    assert_eq!(found, expected);
    assert!(answer.warnings.is_empty(), "who asks for 8 terms knows: {:?}", answer.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_more_than_64_terms_is_answered_with_a_warning() {
    let server = server().await;
    let client = &server.client;
    let words = |count: usize| (0..count).map(|n| format!("w{n} w{n} ")).collect::<String>();
    assert!(search(client, &words(64)).await.warnings.is_empty());
    let answer = search(client, &words(65)).await;
    assert_eq!(answer.warnings, ["only the first 64 terms of the query text were searched for"]);
    let answer = client.search_hybrid(hybrid_search(&[1.0, 0.0], &words(65), options("texts", 1, 3))).await.unwrap();
    assert_eq!(answer.warnings.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_write_is_found_in_every_analyzer() {
    let server = LocalBuilder::new().small_segments(8).start().await;
    let client = &server.client;
    let texts = [
        "76.132",
        "C++",
        "Rust's",
        "naïve",
        "Straße",
        "北京大学",
        "выпуск приложения",
        "🦀",
        "достопримечательностями",
        "中华人民共和国国务院办公厅北京市",
        "ＦＵＬＬ",
        "foo-bar",
        "https://example.org/a?b=1",
    ];
    for analyzer in ["standard", "en", "ru", "de", "fr", "es", "sv", "zh", "exact"] {
        let mut schema = schema(2, Metric::Cosine);
        schema.texts[0].analyzer = analyzer.into();
        client.create(collection(analyzer, 2, schema)).await.unwrap();
        client.upsert(analyzer, texts.iter().map(|text| document(text, &[], text)).collect()).await.unwrap();
    }
    server.settle(|replica| replica.num_live_rows <= 8).await;
    for analyzer in ["standard", "en", "ru", "de", "fr", "es", "sv", "zh", "exact"] {
        for text in texts {
            let answer = client.search_keyword(keyword_search(text, options(analyzer, 1, 10))).await.unwrap();
            assert_eq!(keys(&answer).first(), Some(&text), "{analyzer}");
        }
        for (text, expected) in [("c++", "C++"), ("rust", "Rust's"), ("naive", "naïve"), ("full", "ＦＵＬＬ")] {
            let answer = client.search_keyword(keyword_search(text, options(analyzer, 1, 10))).await.unwrap();
            let expected = if analyzer == "exact" { None } else { Some(&expected) };
            assert_eq!(keys(&answer).first(), expected, "{analyzer}");
        }
    }
}

/// An analyzer, a text, what people type when they mean it, and a text that they do not mean.
type Meant = (&'static str, &'static str, &'static [&'static str], &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn what_people_type_finds_what_they_mean_and_not_its_neighbour() {
    let cases: [Meant; 12] = [
        ("standard", "GPL driver 76.132 released", &["76.132", "76-132", "driver 76.132", "132.76"], "driver 76.133"),
        ("standard", "written in C++", &["C++", "c++", "(C++)", "written C++"], "written in C or C#"),
        ("en", "a C# compiler", &["C#", "c# compilers"], "a C++ compiler"),
        ("en", "Rust's borrow checker", &["Rust's", "Rust’s", "RUST'S", "rust", "rust borrowing"], "they trust others"),
        ("fr", "une idée naïve", &["naïve", "naive", "NAÏVE", "nai\u{308}ve", "naïves idées"], "une idée vive"),
        ("de", "in der langen Straße", &["Straße", "strasse", "STRASSE", "Straßen", "STRAẞE"], "der lange Strauß"),
        ("standard", "naïve Straße", &["naive strasse", "NAÏVE STRASSE"], "native Strasbourg"),
        ("zh", "我在北京大学读书", &["北京大学", "北京", "大学", "北京 大学"], "我在东京读书"),
        ("standard", "我在北京大学读书", &["北京大学", "北京", "读书"], "大学在东京"),
        (
            "ru",
            "Вышел новый выпуск приложения",
            &["выпуск приложения", "выпуски приложений", "ВЫПУСК ПРИЛОЖЕНИЯ", "новые выпу\u{301}ски"],
            "Вышло новое дополнение",
        ),
        ("standard", "thanks 👍🏽 all", &["👍", "👍🏿", "thanks 👍"], "thanks 👎 all"),
        ("en", "a crab🦀 party", &["🦀", "crab 🦀", "parties 🦀"], "a lobster 🦞 party"),
    ];
    let server = LocalBuilder::new().small_segments(2).start().await;
    let client = &server.client;
    for (n, (analyzer, meant, _, other)) in cases.iter().enumerate() {
        let mut schema = schema(2, Metric::Cosine);
        schema.texts[0].analyzer = (*analyzer).into();
        client.create(collection(&format!("c{n}"), 2, schema)).await.unwrap();
        let documents = vec![document("meant", &[], meant), document("other", &[], other)];
        client.upsert(&format!("c{n}"), documents).await.unwrap();
    }
    for state in ["as written", "sealed"] {
        for (n, (analyzer, meant, typed, _)) in cases.iter().enumerate() {
            for text in *typed {
                let keyword = Keyword { operator: Operator::And as i32, ..Keyword::default() };
                let request = keyword_search(text, options(&format!("c{n}"), 1, 10));
                let answer =
                    client.search_keyword(SearchKeywordRequest { keyword: Some(keyword), ..request }).await.unwrap();
                assert_eq!(keys(&answer), ["meant"], "{state}, {analyzer}: {text:?} for {meant:?}");
                assert!(answer.warnings.is_empty(), "{state}, {analyzer}: {text:?}: {:?}", answer.warnings);
            }
        }
        server.settle(|replica| replica.num_live_rows == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boost_weighs_a_field_and_all_words_may_stand_in_any_of_them() {
    let server = LocalBuilder::new().start().await;
    let client = &server.client;
    let field = |name: &str, boost| TextField { name: name.into(), analyzer: "en".into(), boost };
    for (name, title, body) in [("titles", 10.0, 1.0), ("bodies", 0.1, 1.0)] {
        let schema = Schema { texts: vec![field("title", title), field("body", body)], ..Schema::default() };
        client.create(collection(name, 2, schema)).await.unwrap();
        let document = |key: &str, title: &str, body: &str| Document {
            key: key.into(),
            fields: [("title".to_owned(), text(title)), ("body".to_owned(), text(body))].into(),
            ..Document::default()
        };
        let documents = vec![
            document("a", "apples", "of the garden"),
            document("b", "of the garden", "apples"),
            document("c", "x", "y"),
        ];
        client.upsert(name, documents).await.unwrap();
        let answer = client.search_keyword(keyword_search("apple", options(name, 1, 10))).await.unwrap();
        assert_eq!(keys(&answer), if title > body { ["a", "b"] } else { ["b", "a"] });
        let keyword = Keyword { operator: Operator::And as i32, ..Keyword::default() };
        for (words, expected) in [("apples gardens", 2), ("apples gardens x", 0)] {
            let request =
                SearchKeywordRequest { keyword: Some(keyword), ..keyword_search(words, options(name, 1, 10)) };
            assert_eq!(client.search_keyword(request).await.unwrap().matches.len(), expected, "{words}");
        }
    }
}
