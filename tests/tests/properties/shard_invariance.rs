//! The same documents give the same answers, bit by bit, however they are spread: over shards, over nodes, over live part and
//! segments, before and after sealing and merging. Holds for keywords and for exact vector search, so for both together, and
//! for all of them with filters.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashSet;
use std::time::Duration;

use antiphon_proto::v1::*;
use antiphon_store::Store;
use antiphon_tests::ask::{Answer, Ask, One, Stretch};
use antiphon_tests::corpus::{self, Record};
use antiphon_tests::filters::{attributes, meets};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::model::{Model, Words};
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;

const SHARD_COUNTS: [u32; 4] = [1, 2, 3, 8];
const PAGE_SIZE: u32 = 7;
const NUM_PAGES: u32 = 2;

/// Everything that one state of the documents answers: for each question, the pages with their documents.
type Answers = Vec<(Answer, Vec<Option<Document>>)>;

/// Servers one after the other over one store, with a collection for each number of shards.
struct Stage {
    store: Store,
    server: Local,
    model: Model,
    questions: Vec<Question>,
}

/// A search, over all documents or those that meet a filter.
struct Question {
    ask: Ask,
    filter: Option<Filter>,
}

fn schema() -> Schema {
    Schema { attributes: attributes(), ..corpus::schema() }
}

/// The documents of records, each with attributes of its own.
fn documents(random: &mut Random, records: &[Record]) -> Vec<Document> {
    let mut documents: Vec<Document> = records.iter().map(Record::document).collect();
    documents.iter_mut().for_each(|document| random.attributes(document));
    documents
}

/// Searches of all kinds by some of the corpus' questions, without a filter and with one each that some documents meet.
fn questions(random: &mut Random) -> Vec<Question> {
    let records = corpus::records();
    let sample = documents(random, &records[..200]);
    let mut filter = || loop {
        let filter = random.filter(3);
        let share = sample.iter().filter(|document| meets(&filter, document)).count() * 100 / sample.len();
        if (10..=90).contains(&share) {
            return filter;
        }
    };
    let records = records.iter().filter(|record| record.is_question).step_by(11);
    let asks: Vec<Ask> = records.flat_map(asks).collect();
    let filtered: Vec<Question> =
        asks.iter().map(|ask| Question { ask: ask.clone(), filter: Some(filter()) }).collect();
    asks.into_iter().map(|ask| Question { ask, filter: None }).chain(filtered).collect()
}

fn name(shards: u32) -> String {
    format!("shards-{shards}")
}

impl Stage {
    async fn open(random: &mut Random) -> Self {
        let store = Store::open("memory://").unwrap();
        let server = unsealed(&store).start().await;
        for shards in SHARD_COUNTS {
            server.client.create(collection(&name(shards), shards, schema())).await.unwrap();
        }
        Self { store, server, model: Model::new(schema()), questions: questions(random) }
    }

    /// The same data under another server.
    async fn restart(self, builder: impl FnOnce(&Store) -> LocalBuilder) -> Self {
        self.server.stop().await;
        Self { server: builder(&self.store).start().await, ..self }
    }

    async fn upsert(&mut self, documents: &[Document]) {
        for shards in SHARD_COUNTS {
            self.server.client.upsert(&name(shards), documents.to_vec()).await.unwrap();
        }
        self.model.upsert(documents);
    }

    async fn delete(&mut self, keys: &[String]) {
        let num_deleted = self.model.delete(keys);
        for shards in SHARD_COUNTS {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            assert_eq!(self.server.client.delete(&name(shards), &keys).await.unwrap().num_deleted, num_deleted);
        }
    }

    async fn sealed(&self) {
        self.server.settle(|replica| replica.num_live_rows == 0).await;
    }

    /// What every collection answers, if they agree.
    async fn answers(&self, state: &str) -> Answers {
        let mut all: Option<Answers> = None;
        for shards in SHARD_COUNTS {
            let mut answers = Vec::new();
            for Question { ask, filter } in &self.questions {
                for page in 1..=NUM_PAGES {
                    let filter = filter.clone();
                    let options = options(&name(shards), page, PAGE_SIZE);
                    let options = SearchOptions { exact: true, text_limit: 20, filter, ..options };
                    let response = ask.send(&self.server.client, options).await.unwrap();
                    answers.push((
                        Answer::from(&response),
                        response.matches.into_iter().map(|found| found.document).collect(),
                    ));
                }
            }
            match &all {
                None => all = Some(answers),
                Some(first) => same(first, &answers, &format!("{state}, {shards} shards")),
            }
        }
        all.unwrap()
    }

    /// Compares the answers with the model's: keywords bit by bit, vectors as far as float32 sums allow.
    fn check(&self, answers: &Answers) {
        let mut answers = answers.iter();
        for Question { ask, filter } in &self.questions {
            let narrowed = self.model.narrowed(filter.as_ref(), None);
            for (page, (answer, held)) in (0..NUM_PAGES).zip(&mut answers) {
                let (start, size) = ((page * PAGE_SIZE) as usize, PAGE_SIZE as usize);
                let meets = |document: &Document| filter.as_ref().is_none_or(|filter| meets(filter, document));
                assert!(held.iter().flatten().all(meets), "{filter:?}: {held:?}");
                match ask {
                    Ask::Keyword(_) => {
                        let wanted = ask.answer(&narrowed, Stretch { max_result_window: 100, start, size });
                        assert_eq!(answer, &wanted, "{ask:?} {filter:?}");
                    }
                    Ask::Vector(query) => {
                        let exact: Vec<_> = narrowed.vector_list(query).into_iter().skip(start).take(size).collect();
                        assert_eq!(answer.matches.len(), exact.len(), "{filter:?}");
                        let differences = answer.matches.iter().zip(exact);
                        let differences = differences.map(|(a, b)| (a.score.score() - b.score).abs());
                        assert!(differences.fold(0.0, f64::max) < 1e-6, "{filter:?}: {answer:?}");
                    }
                    Ask::Hybrid { .. } | Ask::Several { .. } => {}
                }
            }
        }
        assert!(answers.next().is_none());
    }
}

fn asks(question: &Record) -> Vec<Ask> {
    let fused = |method| Ask::fused(&question.vector, &question.text, method);
    let half: String = question.text.split_whitespace().step_by(2).collect::<Vec<_>>().join(" ");
    let backwards: Vec<f32> = question.vector.iter().rev().copied().collect();
    let several = |method: FusionMethod| Ask::Several {
        queries: vec![
            One { vector: Some(question.vector.clone()), words: Some(Words::any(&question.text)) },
            One { vector: None, words: Some(Words::any(&half)) },
            One { vector: Some(backwards.clone()), words: None },
        ],
        fusion: Fusion { method: method as i32, ..Fusion::default() },
    };
    vec![
        Ask::Keyword(Words::any(&question.text)),
        Ask::Vector(question.vector.clone()),
        fused(FusionMethod::TurnTaking),
        fused(FusionMethod::ReciprocalRank),
        fused(FusionMethod::RelativeScore),
        several(FusionMethod::TurnTaking),
        several(FusionMethod::ReciprocalRank),
        several(FusionMethod::MaxScore),
        several(FusionMethod::DistributionScore),
    ]
}

/// Nothing is sealed.
fn unsealed(store: &Store) -> LocalBuilder {
    let hours = Duration::from_secs(7_200);
    LocalBuilder::new().store(store.clone()).node_config(|config| config.sealing.age = hours)
}

/// Sealed at once, never merged, on three nodes.
fn sealing(store: &Store) -> LocalBuilder {
    LocalBuilder::new().store(store.clone()).small_segments(30).nodes(3).node_config(|config| {
        config.sealing.age = Duration::from_millis(100);
        config.merging.fan_in = 1_000;
        config.merging.dead_share = 1.0;
    })
}

/// Merged as much as the policy ever does.
fn merging(store: &Store) -> LocalBuilder {
    sealing(store).nodes(1).node_config(|config| {
        config.merging.fan_in = 2;
        config.merging.dead_share = 0.0;
        config.merging.idle = Duration::ZERO;
    })
}

fn same(one: &Answers, other: &Answers, state: &str) {
    assert_eq!(one.len(), other.len());
    for (index, (one, other)) in one.iter().zip(other).enumerate() {
        assert_eq!(one, other, "answer {index}: {state}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_documents_give_the_same_answers_however_they_are_spread() {
    let mut random = Random::seeded(31);
    let mut paragraphs: Vec<Record> =
        corpus::records().into_iter().filter(|record| !record.is_question).step_by(2).collect();
    // Equal vectors and equal texts: ties that only keys decide, in the channels of both.
    for n in (0..paragraphs.len()).step_by(10) {
        let twin = Record { id: format!("Twin-{n}"), ..paragraphs[n].clone() };
        paragraphs.push(twin);
    }
    let (early, late) = paragraphs.split_at(paragraphs.len() * 2 / 3);
    let mut stage = Stage::open(&mut random).await;
    for batch in early.chunks(100) {
        stage.upsert(&documents(&mut random, batch)).await;
    }
    let first = stage.answers("written").await;
    stage.check(&first);
    let (all, filtered) = first.split_at(first.len() / 2);
    let found = filtered.iter().filter(|(answer, _)| !answer.matches.is_empty()).count();
    let narrowed = all.iter().zip(filtered).filter(|(all, filtered)| all != filtered).count();
    assert!(
        found > filtered.len() / 2 && narrowed > filtered.len() / 2,
        "{found} and {narrowed} of {}",
        filtered.len()
    );

    stage = stage.restart(sealing).await;
    same(&first, &stage.answers("replayed from the log by three nodes").await, "replayed");
    let cluster = stage.server.client.describe_cluster().await.unwrap();
    let addresses: HashSet<_> =
        cluster.shards.iter().flat_map(|shard| &shard.replicas).map(|replica| &replica.node_address).collect();
    assert!(addresses.len() > 1, "all shards are on one node");
    stage.sealed().await;
    same(&first, &stage.answers("sealed").await, "sealed");

    let mut last = first;
    for (round, new) in late.chunks(late.len().div_ceil(2)).enumerate() {
        // New ones; old ones with another spelling, text, vector and attributes; some deleted, some of those written again.
        let mut records = new.to_vec();
        for n in (round..early.len()).step_by(5) {
            let other = early[(n * 7 + 1) % early.len()].clone();
            records.push(Record { id: random.respelled(&early[n].id), ..other });
        }
        let documents = documents(&mut random, &records);
        let dead: Vec<String> = (round..early.len()).step_by(6).map(|n| random.respelled(&early[n].id)).collect();
        let (before, after) = documents.split_at(documents.len() / 2);
        stage.upsert(before).await;
        stage.delete(&dead).await;
        stage.upsert(after).await;
        let state = format!("round {round}");
        let written = stage.answers(&state).await;
        assert_ne!(last, written, "the writes changed nothing, so nothing is shown");
        stage.check(&written);
        stage.sealed().await;
        same(&written, &stage.answers(&state).await, "sealed after writes");
        last = written;
    }

    let num_segments = |cluster: DescribeClusterResponse| -> u64 {
        cluster.shards.iter().flat_map(|shard| &shard.replicas).map(|replica| replica.num_segments).sum()
    };
    let unmerged = num_segments(stage.server.client.describe_cluster().await.unwrap());
    stage = stage.restart(merging).await;
    stage
        .server
        .settle(|replica| replica.num_live_rows == 0 && replica.num_deleted == 0 && replica.num_segments == 1)
        .await;
    let merged = num_segments(stage.server.client.describe_cluster().await.unwrap());
    assert!(merged < unmerged, "{unmerged} segments became {merged}");
    same(&last, &stage.answers("merged").await, "merged");
    stage = stage.restart(|store| unsealed(store).nodes(3)).await;
    same(&last, &stage.answers("merged, on three nodes").await, "merged, on three nodes");
    stage.server.stop().await;
}
