//! The HTTP embedder against an endpoint over real sockets that answers with a made model's vectors, and fails as planned.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::{Duration, Instant};

use antiphon_coordinator::embed::{EmbedError, EmbedderConfig, Embedders, OpenAiConfig, Purpose, StartError};
use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::*;
use antiphon_tests::client::kind_of;
use antiphon_tests::endpoint::{Endpoint, Mischief};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::models::{self, DIMENSIONS};
use antiphon_tests::sample::*;

const WORDS: [&str; 11] =
    ["bicycle", "bread", "window", "mend", "the wheel", "oven", "glass", "repair", "flat tyre", "loaf", "putty"];

async fn endpoint() -> (Endpoint, Embedders) {
    let made = models::start([("made", models::local("model2vec"))]).await;
    (Endpoint::start(&made, "made").await, made)
}

async fn remote(endpoint: &Endpoint, change: impl FnOnce(&mut OpenAiConfig)) -> Embedders {
    let remote = models::start([("remote", models::endpoint(&endpoint.url, change))]).await;
    endpoint.take_asked();
    remote
}

fn status(code: u16) -> Mischief {
    Mischief::Status(code, String::new(), r#"{"error":{"message":"as planned"}}"#.into())
}

async fn embed(models: &Embedders, name: &str, texts: &[&str], ms: u64) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
    let deadline = Deadline::after(Duration::from_millis(ms));
    models.find(name).unwrap().embed(texts, Purpose::Document, deadline).await
}

/// The failure's whole chain of words.
async fn start_failure(config: EmbedderConfig) -> String {
    let (name, error) = Embedders::start(BTreeMap::from([("remote".to_owned(), config)])).await.unwrap_err();
    assert_eq!(name, "remote");
    error.source().map_or(error.to_string(), |source| format!("{error}: {source}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_travel_in_batches_and_vectors_come_back_in_order() {
    let (endpoint, made) = endpoint().await;
    let remote = remote(&endpoint, |_| {}).await;
    let wanted = embed(&made, "made", &WORDS, 10_000).await.unwrap();
    endpoint.plan(&[Mischief::Shuffle, Mischief::Shuffle]);
    endpoint.pause(Duration::from_millis(50));
    assert_eq!(embed(&remote, "remote", &WORDS, 10_000).await.unwrap(), wanted);
    let asked = endpoint.take_asked();
    let mut sizes: Vec<usize> = asked.iter().map(|asked| asked.input.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [3, 4, 4]);
    assert_eq!(endpoint.most_at_once(), 2, "concurrency is 2");
    assert!(asked.iter().all(|asked| asked.path == "/v1/embeddings" && asked.model == "made"));
    assert!(asked.iter().all(|asked| asked.authorization.is_none()));

    // By characters.
    endpoint.pause(Duration::ZERO);
    let narrow =
        models::start([("remote", models::endpoint(&endpoint.url, |config| config.max_batch_chars = 12))]).await;
    endpoint.take_asked();
    assert_eq!(embed(&narrow, "remote", &WORDS, 10_000).await.unwrap(), wanted);
    let asked = endpoint.take_asked();
    assert!(asked.iter().all(|asked| asked.input.len() == 1 || asked.input.concat().len() <= 12), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_pass_is_tried_again_and_what_lasts_is_not() {
    let (endpoint, made) = endpoint().await;
    let remote = remote(&endpoint, |_| {}).await;
    let wanted = embed(&made, "made", &["bread"], 10_000).await;
    let cases: [(Vec<Mischief>, bool, usize); 11] = [
        (vec![], true, 1),
        (vec![status(429)], true, 2),
        (vec![status(503), status(500)], true, 3),
        (vec![status(503), status(500), status(502)], false, 3),
        (vec![Mischief::Torn], true, 2),
        (vec![Mischief::Silence(Duration::from_secs(5))], true, 2),
        (vec![status(400)], false, 1),
        (vec![status(401)], false, 1),
        (vec![Mischief::BrokenJson], false, 1),
        (vec![Mischief::TooFew], false, 1),
        (vec![Mischief::ShortVectors], false, 1),
    ];
    for (plan, succeeds, tries) in cases {
        endpoint.plan(&plan);
        let outcome = embed(&remote, "remote", &["bread"], 20_000).await;
        assert_eq!(endpoint.take_asked().len(), tries, "{plan:?}: {outcome:?}");
        if succeeds {
            assert_eq!(outcome, wanted, "{plan:?}");
        } else {
            let error = outcome.unwrap_err().to_api("remote");
            assert_eq!(error.kind(), ErrorKind::EmbedderUnavailable, "{plan:?}");
            assert!(error.message().contains("remote"));
        }
    }
    endpoint.plan(&[Mischief::NotFinite]);
    assert!(embed(&remote, "remote", &["bread"], 20_000).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_grow_and_retry_after_is_kept() {
    let (endpoint, _) = endpoint().await;
    let remote = remote(&endpoint, |config| config.retries = 3).await;
    let busy = Mischief::Status(429, "retry-after: 1\r\n".into(), "{}".into());
    endpoint.plan(&[status(503), status(503), busy]);
    embed(&remote, "remote", &["bread"], 20_000).await.unwrap();
    let asked = endpoint.take_asked();
    let pauses: Vec<Duration> = asked.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    let least = [125, 250, 1000].map(Duration::from_millis);
    assert!(pauses.iter().zip(least).all(|(pause, least)| *pause >= least), "{pauses:?}");

    // A pause that the deadline does not leave is not waited for.
    let later = Mischief::Status(503, "retry-after: 30\r\n".into(), "{}".into());
    endpoint.plan(&[later]);
    let begun = Instant::now();
    let error = embed(&remote, "remote", &["bread"], 3_000).await.unwrap_err();
    assert!(matches!(error, EmbedError::Unavailable(_)), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_try_outlasts_the_callers_deadline() {
    let (endpoint, _) = endpoint().await;
    let remote = remote(&endpoint, |config| config.timeout = Duration::from_secs(60)).await;
    endpoint.plan(&[Mischief::Silence(Duration::from_secs(60))]);
    let begun = Instant::now();
    embed(&remote, "remote", &["bread"], 300).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_overload() {
    let (endpoint, _) = endpoint().await;
    let remote = remote(&endpoint, |config| (config.concurrency, config.queue) = (1, 1)).await;
    endpoint.pause(Duration::from_millis(300));
    let one = || embed(&remote, "remote", &["bread"], 10_000);
    let (first, second, third) = tokio::join!(one(), one(), one());
    assert!(first.is_ok() && second.is_ok());
    assert!(matches!(third, Err(EmbedError::Overloaded(_))), "{third:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_sent_and_never_told() {
    let (endpoint, _) = endpoint().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "sk-secret\n").unwrap();
    let with_key = |config: &mut OpenAiConfig| config.api_key_file = Some(path.clone());
    let remote = models::start([("remote", models::endpoint(&endpoint.url, with_key))]).await;
    assert_eq!(endpoint.take_asked()[0].authorization.as_deref(), Some("Bearer sk-secret"));
    let quoting = r#"{"error":{"message":"Incorrect API key provided: sk-secret."}}"#;
    endpoint.plan(&[Mischief::Status(401, String::new(), quoting.into())]);
    let error = embed(&remote, "remote", &["bread"], 10_000).await.unwrap_err().to_string();
    assert!(error.contains("401") && error.contains("[key]") && !error.contains("sk-secret"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let (endpoint, _) = endpoint().await;
    let (other, _) = self::endpoint().await;
    let remote = remote(&endpoint, |_| {}).await;
    endpoint.plan(&[Mischief::Status(307, format!("location: {}/embeddings\r\n", other.url), String::new())]);
    embed(&remote, "remote", &["bread"], 10_000).await.unwrap_err();
    assert!(other.take_asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn dimensions_are_checked_at_start() {
    let (endpoint, _) = endpoint().await;
    let told = models::start([("remote", models::endpoint(&endpoint.url, |_| {}))]).await;
    assert_eq!(told.find("remote").unwrap().dimensions(), DIMENSIONS as usize);
    let failure = start_failure(models::endpoint(&endpoint.url, |config| config.dimensions = Some(9))).await;
    assert!(failure.contains('9') && failure.contains('8'), "{failure}");
    endpoint.plan(&[status(401)]);
    assert!(start_failure(models::endpoint(&endpoint.url, |_| {})).await.contains("401"));
    // Out of reach: only with dimensions in the settings, and then the answers decide.
    let url = endpoint.url.clone();
    drop(endpoint);
    let gone = |dimensions| {
        models::endpoint(&url, |config| {
            (config.dimensions, config.retries, config.timeout) = (dimensions, 0, Duration::from_millis(500))
        })
    };
    let _ = start_failure(gone(None)).await;
    let blind = models::start([("remote", gone(Some(8)))]).await;
    assert!(embed(&blind, "remote", &["bread"], 2_000).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_make_no_request_are_refused() {
    for base_url in ["", "ftp://host/v1", "http://user:pass@127.0.0.1:1/v1", "host:80", "/v1"] {
        let config = models::endpoint(base_url, |_| {});
        let outcome = Embedders::start(BTreeMap::from([("remote".to_owned(), config)])).await;
        assert!(matches!(outcome, Err((_, StartError::Settings(_)))), "{base_url}: {outcome:?}");
    }
}

async fn server(endpoint: &Endpoint) -> Local {
    let remote = remote(endpoint, |config| (config.retries, config.max_batch_texts) = (0, 2)).await;
    let local = LocalBuilder::new().coordinator_config(|config| config.embedders = remote).start().await;
    let mut schema = schema(DIMENSIONS, Metric::Cosine);
    schema.vectors[0].embedder = "remote".into();
    local.client.create(collection("c", 2, schema)).await.unwrap();
    local
}

/// Whatever the endpoint does amiss: the call is UNAVAILABLE, nothing of it is written, and none of it is an empty answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_endpoint_makes_calls_unavailable_and_writes_nothing() {
    let (endpoint, _) = endpoint().await;
    let local = server(&endpoint).await;
    let documents = || (0..5).map(|n| document(&format!("d{n}"), &[], WORDS[n])).collect::<Vec<_>>();
    let amiss = [
        status(500),
        status(429),
        status(401),
        Mischief::BrokenJson,
        Mischief::TooFew,
        Mischief::ShortVectors,
        Mischief::NotFinite,
        Mischief::Torn,
        Mischief::Silence(Duration::from_secs(3)),
    ];
    for mischief in amiss {
        // The third batch of three fails, or a search's only one.
        endpoint.plan(&[Mischief::Shuffle, Mischief::Shuffle, mischief.clone(), mischief.clone(), mischief.clone()]);
        let status = local.client.upsert("c", documents()).await.unwrap_err();
        assert_eq!(kind_of(&status), ErrorKind::EmbedderUnavailable, "{mischief:?}");
        let status = local.client.search_text(text_search("bread", options("c", 1, 5))).await.unwrap_err();
        assert_eq!(kind_of(&status), ErrorKind::EmbedderUnavailable, "{mischief:?}");
        let by_both = hybrid_text_search("bread", options("c", 1, 5));
        let status = local.client.search_hybrid_text(by_both).await.unwrap_err();
        assert_eq!(kind_of(&status), ErrorKind::EmbedderUnavailable, "{mischief:?}");
        endpoint.plan(&[mischief.clone(), mischief.clone(), mischief.clone()]);
        let request = ImportDocumentsRequest { collection: "c".into(), documents: documents() };
        let answers = local.client.documents.clone().import_documents(tokio_stream::iter([request])).await;
        let status = answers.unwrap().into_inner().message().await.unwrap_err();
        assert_eq!(kind_of(&status), ErrorKind::EmbedderUnavailable, "{mischief:?}");
        assert_eq!(local.client.count("c").await.unwrap(), 0, "{mischief:?}");
    }
    endpoint.plan(&[]);
    local.client.upsert("c", documents()).await.unwrap();
    let answer = local.client.search_text(text_search("bread", options("c", 1, 1))).await.unwrap();
    assert_eq!(keys(&answer), ["d1"]);
    local.stop().await;
}
