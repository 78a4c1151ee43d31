//! The page law on the real engine: pages put together are the head of the ranking that a brute-force model computes, score
//! bits, places and has_more included; with approximate vector search, pages neither repeat nor skip.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::*;
use antiphon_tests::ask::{Answer, Ask, One, Stretch};
use antiphon_tests::client::{Client, kind_of};
use antiphon_tests::filters::attributes;
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::model::Model;
use antiphon_tests::model::Words;
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;

/// Random collections that the pages are compared over.
const CASES: usize = 8;

fn with_window(max_result_window: u32) -> LocalBuilder {
    LocalBuilder::new().small_segments(12).coordinator_config(|config| config.law.max_result_window = max_result_window)
}

fn two_texts(dims: u32, metric: Metric, key_case: KeyCase) -> Schema {
    let mut schema = schema(dims, metric);
    schema.texts.push(TextField { name: "u".into(), analyzer: "standard".into(), boost: 2.5 });
    schema.attributes = attributes();
    schema.key_case = key_case as i32;
    schema
}

fn exactly(collection: &str) -> SearchOptions {
    SearchOptions { exact: true, ..options(collection, 0, 0) }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_the_head_of_the_ranking_of_the_model() {
    let mut random = Random::seeded(17);
    // A small window brings its edge within reach of few documents; the default one is what callers get.
    let servers = [(14, with_window(14).start().await), (100, with_window(100).start().await)];
    for case in 0..CASES {
        let (window, server) = &servers[usize::from(case % 5 == 4)];
        let dims = 2 + random.below(3);
        let metric = [Metric::Cosine, Metric::Dot, Metric::Euclidean, Metric::Hamming][case % 4];
        let key_case = if random.chance(0.25) { KeyCase::CaseSensitive } else { KeyCase::CaseInsensitive };
        let shards = 1 + random.below(4) as u32;
        let name = format!("case-{case}");
        let mut model = Model::new(two_texts(dims as u32, metric, key_case));
        let created = server.client.create(collection(&name, shards, two_texts(dims as u32, metric, key_case))).await;
        created.unwrap();
        let num_keys = if *window == 14 { 30 + random.below(40) } else { 170 };
        for round in 0..2 {
            write(&mut random, server, &name, &mut model, (num_keys, dims)).await;
            if round == 0 && random.chance(0.5) {
                server.settle(|replica| replica.num_live_rows == 0).await;
            }
            let label = format!("case {case}: {shards} shards, {metric:?}, {} documents, round {round}", model.len());
            compare(&mut random, server, &name, &model, (*window, dims), &label).await;
        }
        server.client.collections.clone().delete_collection(DeleteCollectionRequest { name }).await.unwrap();
    }
    for (_, server) in servers {
        server.stop().await;
    }
}

/// Upserts, some of keys that are there, and deletes, in batches of random size.
async fn write(random: &mut Random, server: &Local, name: &str, model: &mut Model, (num_keys, dims): (usize, usize)) {
    for _ in 0..7 {
        let count = 1 + random.below(num_keys / 3);
        let mut documents: Vec<_> = (0..count).map(|_| random.document(num_keys, dims, model.metric())).collect();
        documents.iter_mut().for_each(|document| random.attributes(document));
        server.client.upsert(name, documents.clone()).await.unwrap();
        model.upsert(&documents);
        if random.chance(0.5) {
            let keys: Vec<String> = (0..1 + random.below(num_keys / 5)).map(|_| random.key(num_keys)).collect();
            let refs: Vec<&str> = keys.iter().map(String::as_str).collect();
            let deleted = server.client.delete(name, &refs).await.unwrap().num_deleted;
            assert_eq!(deleted, model.delete(&keys), "{keys:?}");
        }
        if random.chance(0.15) {
            server.settle(|replica| replica.num_live_rows == 0).await;
        }
    }
    assert_eq!(server.client.count(name).await.unwrap(), model.len() as u64);
}

/// All pages of several sizes, and stretches behind any number of matches, for searches of every kind.
async fn compare(
    random: &mut Random,
    server: &Local,
    name: &str,
    model: &Model,
    (window, dims): (u32, usize),
    label: &str,
) {
    let reach = window as usize - 1;
    for _ in 0..2 {
        for ask in random.asks(dims, model.metric()) {
            let filter = random.chance(0.6).then(|| random.filter(3));
            let min_score = random.chance(0.3).then(|| random.pick(&[-1.0, 0.0, 0.02, 0.5, 2.0]));
            let model = &model.narrowed(filter.as_ref(), min_score);
            let exactly = |name: &str| SearchOptions { filter: filter.clone(), min_score, ..exactly(name) };
            let label = &format!("{label}, {filter:?}, at least {min_score:?}");
            let sizes = [1 + random.below(7), 1 + random.below(reach), random.pick(&[reach, reach + 1, reach + 40])];
            for size in sizes {
                for page in 1..=(reach / size).max(1) {
                    let stretch = Stretch { max_result_window: window as usize, start: (page - 1) * size, size };
                    let expected = ask.answer(model, stretch);
                    let options = SearchOptions { page: page as u32, page_size: size as u32, ..exactly(name) };
                    let answer = ask.send(&server.client, options).await.unwrap();
                    assert_eq!(Answer::from(&answer), expected, "page {page} of {size}, {label}: {ask:?}");
                    if expected.matches.is_empty() {
                        break;
                    }
                }
            }
            let skip = 1 + random.below(reach - 1);
            let stretch =
                Stretch { max_result_window: window as usize, start: skip, size: 1 + random.below(reach - skip) };
            let options = SearchOptions { skip: skip as u32, page_size: stretch.size as u32, ..exactly(name) };
            let answer = ask.send(&server.client, options).await.unwrap();
            assert_eq!(Answer::from(&answer), ask.answer(model, stretch), "{stretch:?}, {label}: {ask:?}");
            refuses_what_is_beyond(&server.client, &ask, name, reach, 1 + random.below(reach)).await;
        }
    }
}

async fn refuses_what_is_beyond(client: &Client, ask: &Ask, name: &str, reach: usize, size: usize) {
    let last_page = (reach / size).max(1) as u32;
    let beyond = SearchOptions { page: last_page + 1, page_size: size as u32, ..exactly(name) };
    let skipping = SearchOptions { skip: (reach - size + 1) as u32, page_size: size as u32, ..exactly(name) };
    for options in [beyond, skipping] {
        let status = ask.send(client, options).await.unwrap_err();
        assert_eq!(kind_of(&status), ErrorKind::PageOutOfRange);
        let error = antiphon_proto::error::ApiError::from_status(&status);
        assert_eq!(error.metadata()["last_page"], last_page.to_string());
    }
}

/// Rows of a shard of the approximate test: enough that its segments ask their graphs.
const ROWS: usize = 2_000;
const DIMS: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_approximate_search_neither_repeat_nor_skip() {
    // Above the schema's expansion_search, so that the window sets the depth.
    const WINDOW: u32 = 40;
    let mut random = Random::seeded(23);
    let server = LocalBuilder::new()
        .node_config(|config| {
            config.graph_min_rows = 8;
            config.sealing.age = std::time::Duration::from_millis(100);
            config.merging.fan_in = 1_000;
            config.merging.dead_share = 1.0;
            // Another set of segments may give another approximate answer: none shall come between two pages.
            config.merging.idle = std::time::Duration::from_secs(7_200);
        })
        .coordinator_config(|config| config.law.max_result_window = WINDOW)
        .start()
        .await;
    let mut num_approximate = 0;
    for (shards, metric, element) in [
        (1, Metric::Cosine, ElementType::Bfloat16),
        (2, Metric::Euclidean, ElementType::Bfloat16),
        (1, Metric::Dot, ElementType::Int8),
        (1, Metric::Cosine, ElementType::Bit),
        (1, Metric::Hamming, ElementType::Bit),
    ] {
        let name = format!("{metric:?}-{element:?}").to_lowercase();
        let mut schema = schema(DIMS as u32, metric);
        schema.vectors[0].element_type = element.into();
        schema.vectors[0].hnsw = Some(Hnsw { expansion_search: 16, connectivity: 4, ..Hnsw::default() });
        server.client.create(collection(&name, shards, schema)).await.unwrap();
        let mut documents: Vec<_> = (0..ROWS * shards as usize)
            .map(|n| document(&format!("d{n}"), &gaussian(&mut random), &random.words(5)))
            .collect();
        // Duplicates stand at one node of the graph.
        for n in (0..documents.len()).step_by(9) {
            documents[n].vectors = documents[n / 2].vectors.clone();
        }
        for batch in documents.chunks(1_000) {
            server.client.upsert(&name, batch.to_vec()).await.unwrap();
        }
        server.settle(|replica| replica.num_live_rows == 0).await;
        // Deleted rows must not hide live ones; rows that are not sealed are searched beside the graph.
        let dead: Vec<String> = (0..documents.len()).step_by(12).map(|n| format!("d{n}")).collect();
        server.client.delete(&name, &dead.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
        let late = (0..20).map(|n| document(&format!("late{n}"), &gaussian(&mut random), "red")).collect();
        server.client.upsert(&name, late).await.unwrap();
        server.settle(|replica| replica.num_live_rows == 0).await;

        for _ in 0..3 {
            let (vector, words) = (gaussian(&mut random), random.words(4));
            let mut asks = vec![Ask::Vector(vector.clone())];
            asks.extend(
                [1, 2, 3, 4, 5].map(|method| Ask::fused(&vector, &words, FusionMethod::try_from(method).unwrap())),
            );
            let more = [gaussian(&mut random), gaussian(&mut random)];
            asks.extend([1, 2, 3, 4, 5].map(|method| Ask::Several {
                queries: vec![
                    One { vector: Some(more[0].clone()), words: Some(Words::any(&words)) },
                    One { vector: Some(more[1].clone()), words: None },
                    One { vector: None, words: Some(Words::any("sea owl")) },
                ],
                fusion: Fusion { method, ..Fusion::default() },
            }));
            for ask in asks {
                num_approximate += usize::from(pages_agree(&server.client, &ask, &name, WINDOW - 1).await);
            }
        }
    }
    assert!(num_approximate > 0, "every answer was exact: no graph was asked, so nothing was shown");
    server.stop().await;
}

/// Compares pages of all sizes with first pages of many matches. Says whether the answer is not the exact one.
async fn pages_agree(client: &Client, ask: &Ask, name: &str, reach: u32) -> bool {
    let whole = Answer::from(&ask.send(client, options(name, 1, reach)).await.unwrap());
    for size in [3, 7, 13] {
        let mut together = Vec::new();
        for page in 1..=reach / size {
            let response = ask.send(client, options(name, page, size)).await.unwrap();
            let skip = SearchOptions { skip: (page - 1) * size, page_size: size, ..options(name, 0, 0) };
            let skipped = ask.send(client, skip).await.unwrap();
            assert_eq!((&response.matches, response.has_more), (&skipped.matches, skipped.has_more), "{ask:?}");
            together.extend(response.matches.into_iter().map(|found| (found.key, found.score.to_bits(), found.rank)));
            let first = ask.send(client, options(name, 1, page * size)).await.unwrap();
            let first: Vec<_> =
                first.matches.into_iter().map(|found| (found.key, found.score.to_bits(), found.rank)).collect();
            assert_eq!(together, first, "{page} pages of {size}: {ask:?}");
        }
        let mut keys: Vec<_> = together.iter().map(|(key, _, _)| key.to_uppercase()).collect();
        assert_eq!(keys, whole.keys()[..keys.len()].iter().map(|key| key.to_uppercase()).collect::<Vec<_>>());
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), together.len(), "a page repeats: {ask:?}");
    }
    let exact = SearchOptions { exact: true, ..options(name, 1, reach) };
    Answer::from(&ask.send(client, exact).await.unwrap()) != whole
}

/// Components of which none is a whole number; the sum of uniform ones is about normal.
fn gaussian(random: &mut Random) -> Vec<f32> {
    (0..DIMS).map(|_| (0..4).map(|_| random.below(1_000) as f32 / 500.0 - 1.0).sum()).collect()
}
