//! Writers under whose hands servers are killed: upserts and deletes of several keys at once, and import streams, each noted
//! in an [`Oracle`] before it is sent.
//!
//! Each writer has keys of its own, and one request on a key at a time. Documents are made from key and generation alone,
//! so that whatever comes back can be checked by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::{Consistency, Document, ImportDocumentsRequest, Value, value};
use antiphon_proto::vector;
use rand::prelude::*;
use rand::rngs::StdRng;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::client::Client;
use crate::oracle::{Change, Generation, Life, Oracle, RequestId};
use crate::sample::{keyword_search, text};

/// Components of the vectors.
pub const DIMENSIONS: u32 = 8;
/// Keys of each writer.
const KEYS_EACH: usize = 120;
/// Most keys in one request.
const MOST_AT_ONCE: usize = 12;

/// A server that requests go to, in one of its lives.
#[derive(Clone)]
pub struct Target {
    pub client: Client,
    pub life: Life,
}

/// Writers at work.
pub struct Workload {
    shared: Arc<Shared>,
    targets: Vec<watch::Sender<Option<Target>>>,
    stop: watch::Sender<bool>,
    writers: JoinSet<()>,
}

struct Shared {
    collection: String,
    timeout: Duration,
    oracle: Mutex<Oracle>,
    /// Held shared while a request is under way.
    under_way: Arc<RwLock<()>>,
    faults: Mutex<Vec<String>>,
}

impl Workload {
    /// Starts writers into a collection with a vector field `v` of [`DIMENSIONS`] and a text field `t`. None of the servers
    /// is up yet. A request is given up after `timeout`.
    pub fn start(
        collection: &str,
        num_writers: usize,
        num_targets: usize,
        timeout: Duration,
        rng: &mut StdRng,
    ) -> Self {
        let shared = Arc::new(Shared {
            collection: collection.to_owned(),
            timeout,
            oracle: Mutex::new(Oracle::new()),
            under_way: Arc::default(),
            faults: Mutex::default(),
        });
        let targets: Vec<_> = (0..num_targets).map(|_| watch::Sender::new(None)).collect();
        let stop = watch::Sender::new(false);
        let mut writers = JoinSet::new();
        for index in 0..num_writers {
            let writer = Writer {
                shared: Arc::clone(&shared),
                targets: targets.iter().map(watch::Sender::subscribe).collect(),
                stop: stop.subscribe(),
                keys: (0..KEYS_EACH).map(|key| format!("w{index}-{key}")).collect(),
                rng: StdRng::seed_from_u64(rng.random()),
            };
            writers.spawn(writer.run());
        }
        Self { shared, targets, stop, writers }
    }

    /// A server is up: requests go to it from now on.
    pub fn up(&self, index: usize, client: Client) {
        let life = self.oracle().life();
        self.targets[index].send_replace(Some(Target { client, life }));
    }

    /// A server was killed: nothing of what it was sent can take effect any more.
    pub fn killed(&self, index: usize) {
        if let Some(target) = self.targets[index].send_replace(None) {
            self.oracle().is_over(target.life);
        }
    }

    /// A server is not to be sent requests. What it was sent may still take effect.
    pub fn down(&self, index: usize) {
        self.targets[index].send_replace(None);
    }

    /// Nothing that any server was sent before can take effect any more. Only while paused.
    pub fn all_over(&self) {
        let mut oracle = self.oracle();
        oracle.all_over();
        for target in &self.targets {
            let Some(Target { client, .. }) = target.borrow().clone() else { continue };
            let life = oracle.life();
            target.send_replace(Some(Target { client, life }));
        }
    }

    /// Waits until no request is under way, and lets none begin while the guard is held.
    pub async fn pause(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.shared.under_way).write_owned().await
    }

    /// Waits until every server that is up has done or dropped what it was sent before, by a write of its own to every
    /// shard: writes of one shard are done in the order in which they came. Only while paused.
    pub async fn drain(&self) {
        for target in &self.targets {
            let Some(Target { client, life }) = target.borrow().clone() else { continue };
            let mut changes = BTreeMap::new();
            let mut documents = Vec::new();
            for key in (0..32).map(|key| format!("drain-{key}")) {
                let generation = self.oracle().generation();
                documents.push(document_of(&key, generation));
                changes.insert(key, Change::Put(generation));
            }
            let request = self.oracle().begin(life, changes);
            client.upsert(&self.shared.collection, documents).await.unwrap();
            self.oracle().acknowledged(request);
            let life = self.oracle().life();
            if let Some(before) = target.send_replace(Some(Target { client, life })) {
                self.oracle().is_over(before.life);
            }
        }
    }

    /// What was promised.
    pub fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.shared.oracle.lock().unwrap()
    }

    /// Panics with what writers found wrong so far.
    pub fn assert_no_faults(&self) {
        let faults = self.shared.faults.lock().unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// Ends the writers, each after the request that it is at.
    pub async fn stop(&mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.writers.join_next().await {
            ended.unwrap();
        }
        self.assert_no_faults();
    }
}

struct Writer {
    shared: Arc<Shared>,
    targets: Vec<watch::Receiver<Option<Target>>>,
    stop: watch::Receiver<bool>,
    keys: Vec<String>,
    rng: StdRng,
}

impl Writer {
    async fn run(mut self) {
        while !*self.stop.borrow() {
            let under_way = Arc::clone(&self.shared.under_way).read_owned().await;
            let up: Vec<Target> = self.targets.iter().filter_map(|target| target.borrow().clone()).collect();
            let Some(target) = up.choose(&mut self.rng) else {
                drop(under_way);
                self.wait_for_change().await;
                continue;
            };
            match self.rng.random_range(0..10) {
                0..6 => self.upsert(target).await,
                6..8 => self.delete(target).await,
                _ => self.import(target).await,
            }
            if self.rng.random_bool(0.2) {
                let reader = up.choose(&mut self.rng).unwrap_or(target);
                self.read_back(reader).await;
            }
        }
    }

    async fn wait_for_change(&mut self) {
        let changes = self.targets.iter_mut().map(|target| Box::pin(target.changed()));
        tokio::select! {
            _ = futures::future::select_all(changes) => {}
            _ = self.stop.changed() => {}
        }
    }

    fn some_keys(&mut self) -> Vec<String> {
        let count = self.rng.random_range(1..=MOST_AT_ONCE);
        self.keys.sample(&mut self.rng, count).cloned().collect()
    }

    /// Documents of new generations, noted as about to be sent.
    fn put(&self, life: Life, keys: &[String]) -> (RequestId, Vec<Document>) {
        let mut oracle = self.shared.oracle.lock().unwrap();
        let pairs: Vec<(String, Generation)> = keys.iter().map(|key| (key.clone(), oracle.generation())).collect();
        let documents = pairs.iter().map(|(key, generation)| document_of(key, *generation)).collect();
        let changes = pairs.into_iter().map(|(key, generation)| (key, Change::Put(generation))).collect();
        (oracle.begin(life, changes), documents)
    }

    async fn upsert(&mut self, target: &Target) {
        let keys = self.some_keys();
        let (request, documents) = self.put(target.life, &keys);
        let written = documents.first().map(|document| (document.key.clone(), generation_of(document)));
        let call = target.client.upsert(&self.shared.collection, documents);
        let outcome = tokio::time::timeout(self.shared.timeout, call).await.ok();
        let version = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok()).map(|done| done.version.clone());
        self.note(request, outcome);
        if let (Some(version), Some((key, Ok(generation)))) = (version, written)
            && self.rng.random_bool(0.3)
        {
            self.find_again(version, &key, generation).await;
        }
    }

    /// Searches for the words of a document that was written, by way of any server and from a view that shows the write.
    async fn find_again(&mut self, version: String, key: &str, generation: Generation) {
        let up: Vec<Target> = self.targets.iter().filter_map(|target| target.borrow().clone()).collect();
        let Some(target) = up.choose(&mut self.rng) else { return };
        let mut options = crate::sample::options(&self.shared.collection, 1, 5);
        if self.rng.random_bool(0.5) {
            options.at_least = version;
        } else {
            options.consistency = Consistency::Refresh as i32;
        }
        let words = format!("g{generation}");
        let call = target.client.search_keyword(keyword_search(&words, options));
        match tokio::time::timeout(self.shared.timeout, call).await {
            Ok(Ok(answer)) => {
                let found: Vec<&str> = answer.matches.iter().map(|found| found.key.as_str()).collect();
                // Unless a write of this writer, given up before, came late: then the key shows that.
                let may_be_gone = self.shared.oracle.lock().unwrap().possible_now(key).len() > 1;
                if found != [key] && !(found.is_empty() && may_be_gone) {
                    let fault = format!("{key} of generation {generation} was written, and {words} finds {found:?}");
                    self.shared.faults.lock().unwrap().push(fault);
                }
            }
            Ok(Err(status)) => self.suspect(&status),
            Err(_) => {}
        }
    }

    async fn delete(&mut self, target: &Target) {
        let keys = self.some_keys();
        let changes = keys.iter().map(|key| (key.clone(), Change::Delete)).collect();
        let request = self.shared.oracle.lock().unwrap().begin(target.life, changes);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let call = target.client.delete(&self.shared.collection, &keys);
        self.note(request, tokio::time::timeout(self.shared.timeout, call).await.ok());
    }

    async fn import(&mut self, target: &Target) {
        let mut keys = self.keys.clone();
        keys.shuffle(&mut self.rng);
        keys.truncate(40);
        let (batches, stream) = mpsc::channel(8);
        let mut requests = Vec::new();
        let mut sum = 0;
        for keys in keys.chunks(self.rng.random_range(5..=20)) {
            let (request, documents) = self.put(target.life, keys);
            sum += documents.len() as u64;
            requests.push((request, sum));
            let batch = ImportDocumentsRequest { collection: self.shared.collection.clone(), documents };
            batches.send(batch).await.unwrap();
        }
        drop(batches);
        let mut requests = requests.into_iter();
        let calls = async {
            let call = target.client.documents.clone().import_documents(ReceiverStream::new(stream)).await;
            let mut answers = call?.into_inner();
            while let Some(answer) = answers.next().await {
                let (request, sum) = requests.next().expect("an answer too many");
                let answer = answer.inspect_err(|_| self.shared.oracle.lock().unwrap().failed(request))?;
                assert_eq!(answer.num_imported, sum);
                self.shared.oracle.lock().unwrap().acknowledged(request);
            }
            Ok::<_, Status>(())
        };
        if let Ok(Err(status)) = tokio::time::timeout(self.shared.timeout, calls).await {
            self.suspect(&status);
        }
        for (request, _) in requests {
            self.shared.oracle.lock().unwrap().failed(request);
        }
    }

    fn note<T>(&self, request: RequestId, outcome: Option<Result<T, Status>>) {
        let mut oracle = self.shared.oracle.lock().unwrap();
        match outcome {
            Some(Ok(_)) => oracle.acknowledged(request),
            Some(Err(status)) => {
                oracle.failed(request);
                self.suspect(&status);
            }
            None => oracle.failed(request),
        }
    }

    /// An error that the server made and that no fault of these tests excuses.
    fn suspect(&self, status: &Status) {
        let error = ApiError::from_status(status);
        let is_ours = !status.details().is_empty();
        if is_ours && matches!(error.kind(), ErrorKind::Internal | ErrorKind::Corruption | ErrorKind::ArgumentInvalid) {
            self.shared.faults.lock().unwrap().push(format!("a request failed with {error}"));
        }
    }

    /// Gets some keys and compares them with what this writer was promised; an answer that does not come is no fault.
    async fn read_back(&mut self, target: &Target) {
        let keys = self.some_keys();
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let call = target.client.get(&self.shared.collection, &names);
        let response = match tokio::time::timeout(self.shared.timeout, call).await {
            Ok(Ok(response)) => response,
            Ok(Err(status)) => return self.suspect(&status),
            Err(_) => return,
        };
        let mut faults = Vec::new();
        let mut seen = BTreeMap::new();
        for document in &response.documents {
            match generation_of(document) {
                Ok(generation) => drop(seen.insert(document.key.clone(), generation)),
                Err(fault) => faults.push(fault),
            }
        }
        let oracle = self.shared.oracle.lock().unwrap();
        for key in &keys {
            let shown = seen.get(key).copied();
            if !oracle.may_show(key, shown) {
                faults.push(format!("{key} shows {shown:?} to a reader while servers live"));
            }
        }
        self.shared.faults.lock().unwrap().extend(faults);
    }
}

/// The vector of a document: unlike any other.
pub fn vector_of(key: &str, generation: Generation) -> Vec<f32> {
    let hash = key.bytes().fold(generation, |hash, byte| hash.wrapping_mul(0x100_0193) ^ u64::from(byte));
    let mut rng = StdRng::seed_from_u64(hash);
    (0..DIMENSIONS).map(|_| rng.random_range(-1.0..1.0)).collect()
}

fn words_of(generation: Generation) -> String {
    format!("common g{generation}")
}

/// A document of a generation.
pub fn document_of(key: &str, generation: Generation) -> Document {
    let mut document = crate::sample::document(key, &vector_of(key, generation), &words_of(generation));
    document.fields.insert("n".into(), Value { kind: Some(value::Kind::Int64(generation as i64)) });
    document
}

/// The generation of a document that came back; says what is wrong where it is not as it was written.
pub fn generation_of(document: &Document) -> Result<Generation, String> {
    let fault = || format!("a document that nobody wrote: {document:?}");
    let Some(value::Kind::Int64(number)) = document.fields.get("n").and_then(|value| value.kind.clone()) else {
        return Err(fault());
    };
    let generation = number as Generation;
    let is_whole = document.fields.get("t") == Some(&text(&words_of(generation)));
    let vector = document.vectors.get("v").map(|sent| vector::components(sent).unwrap());
    let is_same = vector.is_none_or(|vector| vector[..] == vector_of(&document.key, generation)[..]);
    if is_whole && is_same && document.fields.len() == 2 { Ok(generation) } else { Err(fault()) }
}
