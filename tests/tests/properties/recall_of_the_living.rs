//! After many deletes and upserts every live record is found by its own vector and its own word, and no dead one is, in any
//! channel: while the changes are in the log alone, once they are sealed, and once dead rows are merged away.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use antiphon_proto::v1::*;
use antiphon_proto::vector;
use antiphon_store::Store;
use antiphon_tests::ask::{Answer, Ask, Stretch};
use antiphon_tests::client::Client;
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::model::{Model, Words, fold, vector_score};
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;
use futures::{StreamExt, stream};

const DIMS: usize = 24;
const PAGE_SIZE: usize = 10;
/// The servers' max_result_window.
const WINDOW: u32 = 15;
/// Searches under way at once.
const AT_ONCE: usize = 6;

/// A record: its key as last spelled, its vector, and a word that no other record and no earlier state of it has.
#[derive(Debug, Clone)]
struct Record {
    key: String,
    vector: Vec<f32>,
    word: String,
}

impl Record {
    fn document(&self) -> Document {
        document(&self.key, &self.vector, &format!("{} common", self.word))
    }
}

/// A collection, what lives in it, and what is dead: deleted, or an earlier state of what lives.
struct Collected {
    name: &'static str,
    metric: Metric,
    living: BTreeMap<String, Record>,
    dead: Vec<Record>,
}

impl Collected {
    /// Writes records, of which a tenth are duplicates of others, up to 25 of one vector.
    async fn write(
        server: &Local,
        random: &mut Random,
        name: &'static str,
        shards: u32,
        metric: Metric,
        count: usize,
    ) -> Self {
        let mut schema = schema(DIMS as u32, metric);
        schema.vectors[0].hnsw = Some(Hnsw { expansion_search: 16, ..Hnsw::default() });
        server.client.create(collection(name, shards, schema)).await.unwrap();
        let mut living = BTreeMap::new();
        let shared: Vec<Vec<f32>> = (0..=count / 250).map(|_| own_vector(random)).collect();
        for n in 0..count {
            let vector = if n % 10 == 1 { shared[n / 250].clone() } else { own_vector(random) };
            let key = random.respelled(&format!("Record-{n}"));
            living.insert(fold(&key), Record { key, vector, word: format!("w{n}v0") });
        }
        let collected = Self { name, metric, living, dead: Vec::new() };
        collected.upsert(&server.client, collected.living.values()).await;
        collected
    }

    async fn upsert<'a>(&self, client: &Client, records: impl Iterator<Item = &'a Record>) {
        let documents: Vec<_> = records.map(Record::document).collect();
        for batch in documents.chunks(1_000) {
            client.upsert(self.name, batch.to_vec()).await.unwrap();
        }
    }

    /// Deletes half of the records, and writes a third of the others anew: most with another vector.
    async fn change(&mut self, client: &Client, random: &mut Random) {
        let folded: Vec<String> = self.living.keys().cloned().collect();
        let mut deleted = Vec::new();
        for folded in folded {
            if random.chance(0.5) {
                let record = self.living.remove(&folded).unwrap();
                deleted.push(random.respelled(&record.key));
                self.dead.push(record);
            }
        }
        for keys in deleted.chunks(1_000) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            assert_eq!(client.delete(self.name, &keys).await.unwrap().num_deleted, keys.len() as u64);
        }
        let mut changed = Vec::new();
        for record in self.living.values_mut() {
            if random.chance(0.3) {
                self.dead.push(record.clone());
                record.key = random.respelled(&record.key);
                record.word = format!("{}b", record.word);
                if random.chance(0.8) {
                    record.vector = own_vector(random);
                }
                changed.push(record.clone());
            }
        }
        self.upsert(client, changed.iter()).await;
    }

    /// Panics where a record that is not alive, or not as it was last written, was found.
    fn all_alive(&self, response: &SearchResponse, ask: &Ask) {
        for found in &response.matches {
            let record = self.living.get(&fold(&found.key)).unwrap_or_else(|| panic!("{} is dead: {ask:?}", found.key));
            assert_eq!(record.key, found.key);
            let found = found.document.as_ref().unwrap();
            assert_eq!(found.fields, record.document().fields);
            if let Some(vector) = found.vectors.get("v") {
                assert_eq!(vector::components(vector).unwrap(), record.vector);
            }
        }
    }

    async fn search(&self, client: &Client, ask: &Ask) -> SearchResponse {
        let options = options(self.name, 1, PAGE_SIZE as u32);
        let response = ask.send(client, options).await.unwrap();
        self.all_alive(&response, ask);
        response
    }

    /// Whether so few records stand before a record in the order of its own vector that it must be on the first page.
    fn is_among_the_first(&self, record: &Record) -> bool {
        let own = vector_score(self.metric, &record.vector, &record.vector);
        let before = self.living.iter().filter(|(folded, other)| {
            if other.vector == record.vector {
                return **folded < fold(&record.key);
            }
            // Near ones may stand on either side, by rounding.
            vector_score(self.metric, &record.vector, &other.vector) > own - 1e-6
        });
        before.count() < PAGE_SIZE
    }

    async fn living_are_found(&self, client: &Client, state: &str, step: usize) {
        let searches = self.living.values().step_by(step).enumerate().map(|(n, record)| async move {
            let ask = Ask::Vector(record.vector.clone());
            let by_vector = self.search(client, &ask).await;
            let has = |response: &SearchResponse| keys(response).contains(&record.key.as_str());
            assert!(
                has(&by_vector) || !self.is_among_the_first(record),
                "{state}: {} is lost: {:?}",
                record.key,
                keys(&by_vector)
            );
            assert_eq!(by_vector.matches.len(), PAGE_SIZE.min(self.living.len()));
            if n % 8 != 0 {
                return;
            }
            let by_word = self.search(client, &Ask::Keyword(Words::any(&record.word))).await;
            assert_eq!(keys(&by_word), [record.key.as_str()], "{state}");
            let both = self.search(client, &Ask::fused(&record.vector, &record.word, FusionMethod::TurnTaking)).await;
            assert!(has(&both), "{state}: {} is lost", record.key);
        });
        stream::iter(searches).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        assert_eq!(client.count(self.name).await.unwrap(), self.living.len() as u64, "{state}");
    }

    async fn dead_are_not(&self, client: &Client, state: &str) {
        let searches = self.dead.iter().step_by(8).map(|record| async move {
            self.search(client, &Ask::Vector(record.vector.clone())).await;
            let by_word = self.search(client, &Ask::Keyword(Words::any(&record.word))).await;
            assert!(by_word.matches.is_empty(), "{state}: {} is found", record.key);
            self.search(client, &Ask::fused(&record.vector, "common", FusionMethod::ReciprocalRank)).await;
        });
        stream::iter(searches).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        let everything = SearchOptions { include_vectors: true, ..options(self.name, 1, 1_000) };
        let ask = Ask::Keyword(Words::any("common"));
        let response = ask.send(client, everything).await.unwrap();
        assert!(response.matches.iter().all(|found| found.document.as_ref().unwrap().vectors.len() == 1));
        self.all_alive(&response, &ask);
        assert_eq!(response.matches.len(), self.living.len().min(1_000), "{state}");
    }

    /// Compares with exact answers. Some must differ, or no graph was asked; most of each must be there, or deleted
    /// neighbours hide live ones. (The depth is hardly more than a page here, so recall is that of a shallow search.)
    async fn recall_is_above(&self, least: f64, client: &Client, state: &str) {
        let (mut num_approximate, mut num_found, mut num_exact) = (0, 0, 0);
        for record in self.living.values().step_by(self.living.len() / 150 + 1) {
            let ask = Ask::Vector(record.vector.iter().map(|value| value * 0.4 + 0.3).collect());
            let options = options(self.name, 1, WINDOW - 1);
            let approximate = ask.send(client, options.clone()).await.unwrap();
            let exact = ask.send(client, SearchOptions { exact: true, ..options }).await.unwrap();
            num_approximate += usize::from(approximate.matches != exact.matches);
            num_exact += exact.matches.len();
            num_found += keys(&exact).iter().filter(|key| keys(&approximate).contains(key)).count();
        }
        let recall = num_found as f64 / num_exact as f64;
        assert!(num_approximate > 0, "{state}: every answer is exact: no graph was asked");
        assert!(recall > least, "{state}: {recall}");
    }
}

/// All of one length, so that under the inner product too a vector is nearest to itself.
fn own_vector(random: &mut Random) -> Vec<f32> {
    let values: Vec<f32> = (0..DIMS).map(|_| random.below(2_001) as f32 / 1_000.0 - 1.0).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt().max(0.01);
    values.iter().map(|value| value / length).collect()
}

/// A window so small that segments of a few thousand rows, most of them dead, are cheaper to ask by graph than to scan.
fn server(store: &Store, sealing_rows: u64, age: Duration, merges: bool) -> LocalBuilder {
    LocalBuilder::new()
        .store(store.clone())
        .coordinator_config(|config| config.law.max_result_window = WINDOW)
        .node_config(|config| {
            config.graph_min_rows = 8;
            config.sealing.rows = sealing_rows;
            config.sealing.age = age;
            config.merging.fan_in = if merges { 2 } else { 1_000 };
            config.merging.dead_share = if merges { 0.0 } else { 1.0 };
            config.merging.idle = if merges { Duration::ZERO } else { Duration::from_secs(7_200) };
        })
}

/// Writes, changes, seals and merges one collection, and looks for the living and the dead each time.
async fn through_all_states(
    seed: u64,
    shards: u32,
    metric: Metric,
    count: usize,
    sealing_rows: u64,
    asks_graphs: bool,
) {
    let mut random = Random::seeded(seed);
    let store = Store::open("memory://").unwrap();
    let hours = Duration::from_secs(7_200);
    let local = server(&store, sealing_rows, hours, false).start().await;
    let mut collected = Collected::write(&local, &mut random, "records", shards, metric, count).await;
    local.settle(|replica| replica.num_segments > 0).await;
    collected.change(&local.client, &mut random).await;
    collected.living_are_found(&local.client, "in the log", 3).await;
    collected.dead_are_not(&local.client, "in the log").await;
    if asks_graphs {
        collected.recall_is_above(0.85, &local.client, "in the log").await;
    }
    local.stop().await;

    let local = server(&store, sealing_rows, Duration::ZERO, false).start().await;
    local.settle(|replica| replica.num_live_rows == 0).await;
    collected.living_are_found(&local.client, "sealed", 1).await;
    collected.dead_are_not(&local.client, "sealed").await;
    let num_deleted = local.client.get_collection("records").await.unwrap().num_deleted;
    assert!(num_deleted as usize > count / 3, "only {num_deleted} rows are dead");
    local.stop().await;

    let local = server(&store, sealing_rows, Duration::ZERO, true).start().await;
    local.settle(|replica| replica.num_live_rows == 0 && replica.num_deleted == 0).await;
    collected.living_are_found(&local.client, "merged", 1).await;
    collected.dead_are_not(&local.client, "merged").await;
    if asks_graphs {
        collected.recall_is_above(0.7, &local.client, "merged").await;
    }
    local.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_one_large_segment_with_a_graph() {
    through_all_states(41, 1, Metric::Cosine, 4_600, 4_600, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_many_small_segments_of_two_shards() {
    through_all_states(42, 2, Metric::Euclidean, 400, 25, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn under_the_inner_product_in_three_shards() {
    through_all_states(43, 3, Metric::Dot, 300, 40, false).await;
}

/// Segments of some hundred rows with graphs take long enough to build that writes come meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn while_writes_go_on_beside_sealing_and_merging() {
    const NUM_KEYS: usize = 1_500;
    let mut random = Random::seeded(44);
    let store = Store::open("memory://").unwrap();
    let start = || server(&store, 100, Duration::from_millis(50), true).start();
    let mut local = start().await;
    let fields = |mut schema: Schema| {
        schema.texts.push(TextField { name: "u".into(), analyzer: "standard".into(), boost: 1.0 });
        schema
    };
    let schema = fields(schema(DIMS as u32, Metric::Euclidean));
    local.client.create(collection("c", 2, schema.clone())).await.unwrap();
    let mut model = Model::new(schema);
    for round in 0..6 {
        for _ in 0..25 {
            let documents: Vec<_> = (0..40).map(|_| random.document(NUM_KEYS, DIMS, Metric::Euclidean)).collect();
            local.client.upsert("c", documents.clone()).await.unwrap();
            model.upsert(&documents);
            let keys: Vec<String> = (0..10).map(|_| random.key(NUM_KEYS)).collect();
            let deleted = local.client.delete("c", &keys.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
            assert_eq!(deleted.num_deleted, model.delete(&keys), "round {round}");
        }
        if round == 3 {
            local.stop().await;
            local = start().await;
        }
        if round > 3 {
            local.settle(|replica| replica.num_live_rows == 0).await;
        }
        // All that lives, by its vector and by its words, and nothing else.
        assert_eq!(local.client.count("c").await.unwrap(), model.len() as u64, "round {round}");
        for ask in [Ask::Vector(random.vector(DIMS, Metric::Euclidean)), Ask::Keyword(Words::any("red apple yew owl"))]
        {
            let options = SearchOptions { exact: true, ..options("c", 1, 1_000) };
            let answer = Answer::from(&ask.send(&local.client, options).await.unwrap());
            let expected = ask.answer(&model, Stretch { max_result_window: WINDOW as usize, start: 0, size: 1_000 });
            assert_eq!(answer.keys(), expected.keys(), "round {round}: {ask:?}");
            assert!(answer == expected, "round {round}: {ask:?}");
        }
    }
    local.stop().await;
}

/// Nothing is stored of them, which readers of stored fields once took for damage: sealing, merging and searches failed.
#[tokio::test(flavor = "multi_thread")]
async fn documents_of_a_key_and_a_vector_alone() {
    let store = Store::open("memory://").unwrap();
    let local = server(&store, 1, Duration::ZERO, true).start().await;
    local.client.create(collection("c", 1, schema(1, Metric::Dot))).await.unwrap();
    for round in 1..=4 {
        local.client.upsert("c", vec![document(&format!("d{round}"), &[round as f32], "")]).await.unwrap();
        for _ in 0..2 {
            let response = local.client.search_vector(vector_search(&[1.0], options("c", 1, 10))).await.unwrap();
            assert_eq!(keys(&response), (1..=round).rev().map(|n| format!("d{n}")).collect::<Vec<_>>());
            local.settle(|replica| replica.num_live_rows == 0 && replica.num_segments == 1).await;
        }
    }
    local.stop().await;
}
