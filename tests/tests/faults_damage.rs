//! Every kind of file in a store cut off, with flipped bits, lost, or in the place of another: a server over it says so, or
//! gives the right answer. It never gives a wrong one, never crashes and never hangs.
//!
//! A store is prepared once: collection `two` with two shards, `one` with one; several segments a shard, with graphs and
//! tombstones, and log entries beyond. Each case damages a copy, opens it, and asks everything twice: PARTIAL_REFUSE and
//! PARTIAL_ALLOW.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use antiphon_node::{Node, NodeConfig, NodeError};
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::{Document, Metric, Partial, SearchOptions, SearchResponse};
use antiphon_store::{CatalogStore, Log, ManifestVersion, Manifests, Seq, ShardId, Store, StoreErrorKind};
use antiphon_tests::client::Client;
use antiphon_tests::cluster::{DIMENSIONS, document_of, vector_of};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::random::Random;
use antiphon_tests::sample::*;
use futures::{StreamExt, stream};
use rand::prelude::*;
use tempfile::TempDir;
use tonic::Status;

const KEYS: u64 = 60;
/// Segments of each shard.
const ROUNDS: u64 = 3;
/// Log entries of each shard beyond its segments.
const TAIL: u64 = 3;
/// Flipped bits of one file, beside those of its header.
const FLIPS: usize = 6;
/// Longest that one case may take.
const TIMEOUT: Duration = Duration::from_secs(60);

// --- The store.

struct Prepared {
    folder: TempDir,
    /// The collections as they should be.
    right: BTreeMap<&'static str, Answers>,
    /// `one` before its last write.
    before_last: Answers,
}

fn config(seal: bool) -> impl FnOnce(&mut NodeConfig) {
    move |config| {
        config.sealing.rows = if seal { 1 } else { 1_000_000 };
        config.sealing.age = Duration::from_secs(3600);
        config.merging.fan_in = 1000;
        config.merging.dead_share = 1.0;
        config.merging.idle = Duration::from_secs(3600);
        config.graph_min_rows = 4;
    }
}

/// Opens a store and serves it without changing it, or says why not.
async fn open(folder: &Path) -> Result<Local, StoreErrorKind> {
    let store = Store::open_dir(folder.to_owned()).unwrap();
    if let Err(error) = CatalogStore::new(store.clone()).refresh().await {
        let refused = Node::start(NodeConfig::default(), store).await.err().expect("a node over a damaged catalog");
        assert!(matches!(refused, NodeError::Corruption(_)), "{refused}");
        return Err(error.kind());
    }
    Ok(LocalBuilder::new().store(store).node_config(config(false)).start().await)
}

async fn prepare() -> Prepared {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_dir(folder.path().to_owned()).unwrap();
    let server = LocalBuilder::new().store(store).node_config(config(true)).start().await;
    for (name, shards) in [("two", 2), ("one", 1)] {
        server.client.create(collection(name, shards, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
        for round in 0..ROUNDS {
            write(&server.client, name, round, KEYS / 2).await;
            server.settle(|replica| replica.num_live_rows == 0 && replica.num_segments > round).await;
        }
    }
    server.stop().await;
    let server = open(folder.path()).await.unwrap();
    let mut before_last = None;
    for name in ["two", "one"] {
        for round in ROUNDS..ROUNDS + TAIL {
            before_last = Some(ask(&server.client, name, Partial::Refuse).await);
            write(&server.client, name, round, 8).await;
        }
    }
    server.stop().await;
    let server = open(folder.path()).await.unwrap();
    let mut right = BTreeMap::new();
    for name in ["two", "one"] {
        let answers = ask(&server.client, name, Partial::Refuse).await;
        assert!(answers.iter().all(|(_, answer)| matches!(answer, Answer::Whole(..))), "{answers:?}");
        right.insert(name, answers);
    }
    server.stop().await;
    Prepared { folder, right, before_last: before_last.unwrap() }
}

/// Writes some keys, anew or over older ones, and deletes a few, as one request each.
async fn write(client: &Client, name: &str, round: u64, num_keys: u64) {
    let keys = (0..num_keys).map(|n| (n * 7 + round * 11) % KEYS);
    let documents = keys.clone().map(|key| document_of(&format!("k{key}"), round * 1000 + key)).collect();
    client.upsert(name, documents).await.unwrap();
    if round >= ROUNDS {
        return;
    }
    let doomed: Vec<String> = keys.take(3).map(|key| format!("k{key}")).collect();
    client.delete(name, &doomed.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
}

/// By links, for a store never changes a file under its name.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false if entry.file_name() == ".antiphon.lock" => {}
            false => std::fs::hard_link(entry.path(), to).unwrap(),
        }
    }
}

// --- Questions and answers.

type Answers = Vec<(&'static str, Answer)>;

#[derive(Clone, PartialEq)]
enum Answer {
    /// Nothing is missing: the words of it, and the documents.
    Whole(String, Vec<Document>),
    /// Failures were named, by reason.
    Part(Vec<Document>, Vec<String>),
    Failed(ErrorKind, String),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Whole(words, _) => write!(f, "{words:.300}"),
            Answer::Part(documents, reasons) => write!(f, "{} documents without {reasons:?}", documents.len()),
            Answer::Failed(_, words) => write!(f, "{words}"),
        }
    }
}

fn failed(status: &Status) -> Answer {
    let error = ApiError::from_status(status);
    Answer::Failed(error.kind(), error.to_string())
}

fn searched(outcome: Result<SearchResponse, Status>) -> Answer {
    let response = match outcome {
        Ok(response) => response,
        Err(status) => return failed(&status),
    };
    let documents: Vec<Document> = response.matches.iter().map(|found| found.document.clone().unwrap()).collect();
    let failures = response.coverage.unwrap().failures;
    if failures.is_empty() {
        let words = format!("{} more {:?}", response.has_more, response.matches);
        Answer::Whole(words, documents)
    } else {
        Answer::Part(documents, failures.into_iter().map(|failure| failure.reason).collect())
    }
}

/// Everything that can be asked of a collection.
async fn ask(client: &Client, name: &str, partial: Partial) -> Answers {
    let vector = vector_of("query", 0);
    let options =
        |page, size| SearchOptions { partial: partial as i32, include_vectors: true, ..options(name, page, size) };
    let exact = |page, size| SearchOptions { exact: true, ..options(page, size) };
    let names: Vec<String> = (0..KEYS + 1).map(|key| format!("k{key}")).collect();
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    let got = match client.get(name, &keys).await {
        Ok(response) => Answer::Whole(format!("{response:?}"), response.documents),
        Err(status) => failed(&status),
    };
    let counted = match client.count(name).await {
        Ok(count) => Answer::Whole(count.to_string(), Vec::new()),
        Err(status) => failed(&status),
    };
    vec![
        ("all", searched(client.search_vector(vector_search(&vector, exact(1, 1000))).await)),
        ("exact", searched(client.search_vector(vector_search(&vector, exact(2, 7))).await)),
        ("graph", searched(client.search_vector(vector_search(&vector, options(1, 10))).await)),
        ("words", searched(client.search_keyword(keyword_search("common g1007", options(1, 10))).await)),
        ("both", searched(client.search_hybrid(hybrid_search(&vector, "common", options(2, 9))).await)),
        ("get", got),
        ("count", counted),
    ]
}

// --- Damage.

#[derive(Debug, Clone)]
enum Damage {
    /// Only so many bytes are left.
    Cut(usize),
    /// Bytes that follow.
    Longer,
    Flip(usize),
    Lost,
    /// In its place lies a copy of this file.
    Swap(PathBuf),
}

/// What must come of it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Effect {
    /// Nothing depends on it, or it can be had otherwise.
    None,
    /// No server comes up.
    NoServer,
    /// This collection is refused as damaged, as far as it depends on it; the other is served.
    Refused(&'static str),
    /// `one` is what it was before its last write.
    LastWriteGone,
    /// `one` is not known; nothing of it is deleted.
    OneUnknown,
}

struct Case {
    file: PathBuf,
    damage: Damage,
    effect: Effect,
}

fn apply(file: &Path, folder: &Path, damage: &Damage) {
    let mut bytes = std::fs::read(file).unwrap();
    match damage {
        Damage::Cut(len) => bytes.truncate(*len),
        Damage::Longer => bytes.push(0),
        Damage::Flip(bit) => bytes[bit / 8] ^= 1 << (bit % 8),
        Damage::Lost => return std::fs::remove_file(file).unwrap(),
        Damage::Swap(other) => bytes = std::fs::read(folder.join(other)).unwrap(),
    }
    // A new file in its place, for this one is also the prepared store's.
    std::fs::remove_file(file).unwrap();
    std::fs::write(file, bytes).unwrap();
}

/// The damages that leave a file there: cuts, additions, flipped bits.
fn spoilt(folder: &Path, file: &Path, header_bits: usize, random: &mut Random) -> Vec<Damage> {
    let len = std::fs::metadata(folder.join(file)).unwrap().len() as usize;
    let mut damages: Vec<Damage> =
        [0, 1, 39, len / 2, len - 1].into_iter().filter(|n| *n < len).map(Damage::Cut).collect();
    damages.push(Damage::Longer);
    let header = (0..header_bits.min(len * 8)).step_by(11).map(Damage::Flip);
    damages.extend(header);
    damages.extend((0..FLIPS).map(|_| Damage::Flip(random.below(len * 8))));
    damages
}

fn names(folder: &Path, dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join(dir)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The directories of shards: `two`'s two, then `one`'s.
async fn shard_dirs(folder: &Path) -> Vec<(&'static str, ShardId)> {
    let store = Store::open_dir(folder.to_owned()).unwrap();
    let catalog = CatalogStore::new(store).refresh().await.unwrap();
    let mut dirs = Vec::new();
    for (name, shards) in [("two", 2), ("one", 1)] {
        let collections = catalog.catalog.collections.iter().filter_map(|entry| entry.collection.as_ref());
        let uid = &collections.into_iter().find(|collection| collection.name == name).unwrap().uid;
        dirs.extend((0..shards).map(|shard| (name, format!("{uid}/{shard}").parse().unwrap())));
    }
    dirs
}

async fn catalog_cases(folder: &Path, random: &mut Random) -> Vec<Case> {
    let versions = names(folder, "catalog");
    let [older, newest] = &versions[..] else { panic!("{versions:?}") };
    let path = |name: &String| Path::new("catalog").join(name);
    let case = |name, damage, effect| Case { file: path(name), damage, effect };
    let mut cases = vec![
        case(newest, Damage::Lost, Effect::OneUnknown),
        case(newest, Damage::Swap(path(older)), Effect::NoServer),
        case(older, Damage::Lost, Effect::None),
        case(older, Damage::Swap(path(newest)), Effect::None),
    ];
    let spoilt = spoilt(folder, &path(newest), 44 * 8, random);
    cases.extend(spoilt.into_iter().map(|damage| case(newest, damage, Effect::NoServer)));
    cases
}

async fn manifest_cases(folder: &Path, random: &mut Random) -> Vec<Case> {
    let dirs = shard_dirs(folder).await;
    let mut cases = Vec::new();
    for (index, (collection, shard)) in dirs.iter().enumerate() {
        let dir = format!("{}/manifest", shard.path());
        let versions = names(folder, &dir);
        let [.., older, newest] = &versions[..] else { panic!("{versions:?}") };
        let path = |name: &String| Path::new(&dir).join(name);
        let case = |name, damage, effect| Case { file: path(name), damage, effect };
        let elsewhere = Path::new(&dirs[(index + 1) % dirs.len()].1.path()).join("manifest").join(older);
        cases.extend([
            // Its log entries are still there.
            case(newest, Damage::Lost, Effect::None),
            case(older, Damage::Lost, Effect::None),
            case(newest, Damage::Swap(path(older)), Effect::Refused(collection)),
            case(newest, Damage::Swap(elsewhere), Effect::Refused(collection)),
        ]);
        if index > 0 {
            let spoilt = spoilt(folder, &path(newest), 44 * 8, random);
            cases.extend(spoilt.into_iter().map(|damage| case(newest, damage, Effect::Refused(collection))));
        }
    }
    cases
}

async fn log_cases(folder: &Path, random: &mut Random) -> Vec<Case> {
    let dirs = shard_dirs(folder).await;
    let store = Store::open_dir(folder.to_owned()).unwrap();
    let mut cases = Vec::new();
    for (index, (collection, shard)) in dirs.iter().enumerate() {
        let dir = format!("{}/log", shard.path());
        let newest = Manifests::new(store.clone(), shard.clone()).newest().await.unwrap();
        let covered = newest.unwrap().1.covered_seq;
        let path = |seq: u64| Path::new(&dir).join(Seq(seq).name());
        let case = |seq, damage, effect| Case { file: path(seq), damage, effect };
        let (first, last) = (covered + 1, covered + TAIL);
        assert_eq!(names(folder, &dir).last().unwrap(), &Seq(last).name());
        let elsewhere =
            |seq: u64| Path::new(&dirs[(index + 1) % dirs.len()].1.path()).join("log").join(Seq(seq).name());
        let refused = Effect::Refused(collection);
        cases.extend([
            case(covered, Damage::Lost, Effect::None),
            case(covered, Damage::Cut(3), Effect::None),
            case(first, Damage::Lost, refused),
            case(first + 1, Damage::Lost, refused),
            case(first, Damage::Swap(path(last)), refused),
            case(last, Damage::Swap(path(first)), refused),
            case(last, Damage::Swap(path(covered)), refused),
            case(last, Damage::Swap(elsewhere(1)), refused),
        ]);
        if *collection == "one" {
            cases.push(case(last, Damage::Lost, Effect::LastWriteGone));
        }
        if index > 0 {
            let seq = random.rng.random_range(first..=last);
            let spoilt = spoilt(folder, &path(seq), 44 * 8, random);
            cases.extend(spoilt.into_iter().map(|damage| case(seq, damage, refused)));
        }
    }
    cases
}

async fn segment_cases(folder: &Path, random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, (collection, shard)) in shard_dirs(folder).await.iter().enumerate() {
        let dir = format!("{}/segments", shard.path());
        let segments = names(folder, &dir);
        assert_eq!(segments.len() as u64, ROUNDS);
        for (number, segment) in segments.iter().enumerate() {
            let files = names(folder, &format!("{dir}/{segment}"));
            assert_eq!(files.len(), 5, "rows, payload, text, vectors and graph: {files:?}");
            for name in &files {
                let path = |segment: &String| Path::new(&dir).join(segment).join(name);
                let case = |damage| Case { file: path(segment), damage, effect: Effect::Refused(collection) };
                cases.push(case(Damage::Lost));
                cases.push(case(Damage::Swap(path(&segments[(number + 1) % segments.len()]))));
                if index > 0 && number == 1 {
                    cases.extend(spoilt(folder, &path(segment), 0, random).into_iter().map(case));
                }
            }
        }
    }
    cases
}

// --- The verdict.

/// Runs one case and says what is wrong.
async fn run(prepared: &Prepared, case: &Case) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    copy(prepared.folder.path(), folder.path());
    let file = folder.path().join(&case.file);
    apply(&file, folder.path(), &case.damage);
    let mut faults = Vec::new();
    let server = match open(folder.path()).await {
        Ok(server) => server,
        Err(StoreErrorKind::Corrupt) if case.effect == Effect::NoServer => return faults,
        Err(kind) => return vec![format!("no server, for {kind:?}")],
    };
    if case.effect == Effect::NoServer {
        faults.push("a server".to_owned());
    }
    for (name, right) in &prepared.right {
        let right = if case.effect == Effect::LastWriteGone && *name == "one" { &prepared.before_last } else { right };
        for partial in [Partial::Refuse, Partial::Allow] {
            let answers = ask(&server.client, name, partial).await;
            let mut is_refused = false;
            for ((what, right), (_, answer)) in right.iter().zip(&answers) {
                let found = match answer {
                    Answer::Whole(..) if answer == right => continue,
                    Answer::Whole(..) => Some(format!("is wrong: {answer:?} instead of {right:?}")),
                    Answer::Part(documents, reasons) => {
                        is_refused = true;
                        let stray = documents.iter().find(|document| !is_right(prepared, name, document));
                        let is_right = partial == Partial::Allow && reasons.iter().all(|reason| reason == "CORRUPTION");
                        stray.map(|document| format!("has {document:?}")).or((!is_right).then(|| format!("{answer:?}")))
                    }
                    Answer::Failed(ErrorKind::Corruption, _) => {
                        is_refused = true;
                        None
                    }
                    Answer::Failed(ErrorKind::CollectionNotFound, _)
                        if case.effect == Effect::OneUnknown && *name == "one" =>
                    {
                        None
                    }
                    Answer::Failed(..) => Some(format!("fails: {answer:?}")),
                };
                faults.extend(found.map(|found| format!("{name}, {what}, {partial:?}: {found}")));
            }
            let must_be = case.effect == Effect::Refused(name);
            if is_refused != must_be {
                faults.push(format!("{name}, {partial:?}: refused is {is_refused}: {answers:?}"));
            }
        }
    }
    server.stop().await;
    if case.effect == Effect::OneUnknown {
        // Whoever finds the lost file again has everything again.
        std::fs::copy(prepared.folder.path().join(&case.file), &file).unwrap();
        let server = open(folder.path()).await.unwrap();
        if ask(&server.client, "one", Partial::Refuse).await != prepared.right["one"] {
            faults.push("the data of a collection that the catalog does not name was deleted".to_owned());
        }
        server.stop().await;
    }
    faults
}

fn is_right(prepared: &Prepared, name: &str, document: &Document) -> bool {
    match &prepared.right[name][0] {
        (_, Answer::Whole(_, all)) => all.contains(document),
        _ => false,
    }
}

async fn run_all(prepared: Prepared, cases: Vec<Case>) {
    let prepared = Arc::new(prepared);
    let num_cases = cases.len();
    let outcomes = stream::iter(cases).map(|case| {
        let prepared = Arc::clone(&prepared);
        async move {
            let words = format!("{}: {:?}", case.file.display(), case.damage);
            let work = tokio::spawn(async move { tokio::time::timeout(TIMEOUT, run(&prepared, &case)).await });
            let faults = match work.await {
                Ok(Ok(faults)) => faults,
                Ok(Err(_)) => vec![format!("hangs for more than {TIMEOUT:?}")],
                Err(panic) => vec![format!("panics: {panic}")],
            };
            faults.into_iter().map(|fault| format!("{words}: {fault}")).collect::<Vec<_>>()
        }
    });
    let faults: Vec<String> = outcomes.buffer_unordered(4).collect::<Vec<_>>().await.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{} faults in {num_cases} cases:\n{}", faults.len(), faults.join("\n"));
    eprintln!("{num_cases} cases");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_catalogs_manifests_and_log_entries_are_noticed() {
    let mut random = Random::seeded(rand::random());
    let prepared = prepare().await;
    let folder = prepared.folder.path();
    let mut cases = catalog_cases(folder, &mut random).await;
    cases.extend(manifest_cases(folder, &mut random).await);
    cases.extend(log_cases(folder, &mut random).await);
    run_all(prepared, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_segments_are_set_aside() {
    let mut random = Random::seeded(rand::random());
    let prepared = prepare().await;
    let cases = segment_cases(prepared.folder.path(), &mut random).await;
    run_all(prepared, cases).await;
}

/// The one before would be in force, and what it covers less is no longer in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_manifest_whose_log_was_collected_is_noticed() {
    let prepared = prepare().await;
    let folder = prepared.folder.path();
    let (_, shard) = shard_dirs(folder).await.into_iter().find(|(name, _)| *name == "one").unwrap();
    let store = Store::open_dir(folder.to_owned()).unwrap();
    let (log, manifests) = (Log::new(store.clone(), shard.clone()), Manifests::new(store.clone(), shard.clone()));
    let (version, manifest) = manifests.newest().await.unwrap().unwrap();
    // As the collector does it: the last of the covered entries stays. And nothing was written since.
    log.delete_through(Seq(manifest.covered_seq - 1)).await.unwrap();
    for seq in log.positions_after(Seq(manifest.covered_seq)).await.unwrap() {
        std::fs::remove_file(folder.join(shard.path()).join("log").join(seq.name())).unwrap();
    }
    let server = open(folder).await.unwrap();
    let whole = ask(&server.client, "one", Partial::Refuse).await;
    assert!(whole.iter().all(|(_, answer)| matches!(answer, Answer::Whole(..))), "{whole:?}");
    server.stop().await;
    for lost in (1..=version.0).rev() {
        std::fs::remove_file(folder.join(shard.path()).join("manifest").join(ManifestVersion(lost).name())).unwrap();
        let server = open(folder).await.unwrap();
        for (what, answer) in ask(&server.client, "one", Partial::Refuse).await {
            assert!(matches!(answer, Answer::Failed(ErrorKind::Corruption, _)), "{lost}, {what}: {answer:?}");
        }
        assert_eq!(ask(&server.client, "two", Partial::Refuse).await, prepared.right["two"]);
        server.stop().await;
    }
}
