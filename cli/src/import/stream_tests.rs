//! The import against a server that misbehaves as told: nothing is lost, nothing is stored twice, and what is refused is
//! named.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::document_service_server::{DocumentService, DocumentServiceServer};
use antiphon_proto::v1::{self, value::Kind};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response};

use super::*;
use crate::client::{Bearer, Channel};
use crate::import::{BatchLimits, Item, Origin, Read};

/// What the server does when it meets a document with the field `mark`, by its value.
#[derive(Debug, Default)]
struct State {
    stored: BTreeMap<String, u32>,
    /// Marks already met; each but `refuse` works once.
    met: Vec<String>,
    num_streams: usize,
    /// How many documents a message may hold.
    max_docs: usize,
    is_down: bool,
}

#[derive(Debug, Clone)]
struct Fake(Arc<Mutex<State>>);

impl Fake {
    /// Stores a message or says why not. `Ok(false)`: stored, but the stream breaks before it is acknowledged.
    fn store(&self, request: &ImportDocumentsRequest) -> Result<bool, Status> {
        let mut state = self.0.lock().unwrap();
        if request.documents.len() > state.max_docs {
            return Err(ApiError::new(ErrorKind::TooLarge, "too many").to_status());
        }
        let mut refused = ApiError::new(ErrorKind::DimensionMismatch, "some documents are off");
        let mut acknowledges = true;
        for (place, document) in request.documents.iter().enumerate() {
            let Some(Kind::String(mark)) = document.fields.get("mark").and_then(|value| value.kind.clone()) else {
                continue;
            };
            let is_new = !state.met.contains(&mark);
            state.met.push(mark.clone());
            match mark.as_str() {
                "refuse" => {
                    refused = refused.with_violation(format!("documents[{place}].vectors[\"v\"]"), "is too short")
                }
                "overload" if is_new => {
                    return Err(ApiError::new(ErrorKind::Overloaded, "busy")
                        .with_retry_after(Duration::from_millis(50))
                        .to_status());
                }
                "break" if is_new => return Err(Status::unavailable("broken")),
                "break-after" if is_new => acknowledges = false,
                _ => {}
            }
        }
        if !refused.violations().is_empty() {
            return Err(refused.to_status());
        }
        for document in &request.documents {
            *state.stored.entry(document.key.clone()).or_default() += 1;
        }
        Ok(acknowledges)
    }
}

type Answers = ReceiverStream<Result<ImportDocumentsResponse, Status>>;

#[tonic::async_trait]
impl DocumentService for Fake {
    type ExportDocumentsStream = ReceiverStream<Result<v1::ExportDocumentsResponse, Status>>;

    async fn export_documents(
        &self,
        _: Request<v1::ExportDocumentsRequest>,
    ) -> Result<Response<Self::ExportDocumentsStream>, Status> {
        Err(Status::unimplemented(""))
    }

    type ImportDocumentsStream = Answers;

    async fn import_documents(
        &self,
        request: Request<Streaming<ImportDocumentsRequest>>,
    ) -> Result<Response<Answers>, Status> {
        {
            let mut state = self.0.lock().unwrap();
            state.num_streams += 1;
            if state.is_down {
                return Err(ApiError::new(ErrorKind::CollectionNotFound, "no such collection").to_status());
            }
        }
        let fake = self.clone();
        let mut requests = request.into_inner();
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut num_imported = 0;
            while let Ok(Some(request)) = requests.message().await {
                let answer = match fake.store(&request) {
                    Ok(true) => {
                        num_imported += request.documents.len() as u64;
                        Ok(ImportDocumentsResponse { num_imported, version: String::new() })
                    }
                    Ok(false) => Err(Status::unknown("transport error")),
                    Err(status) => Err(status),
                };
                let is_over = answer.is_err();
                if sender.send(answer).await.is_err() || is_over {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn upsert_documents(
        &self,
        _: Request<v1::UpsertDocumentsRequest>,
    ) -> Result<Response<v1::UpsertDocumentsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_documents(
        &self,
        _: Request<v1::DeleteDocumentsRequest>,
    ) -> Result<Response<v1::DeleteDocumentsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_documents(
        &self,
        _: Request<v1::GetDocumentsRequest>,
    ) -> Result<Response<v1::GetDocumentsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn count_documents(
        &self,
        _: Request<v1::CountDocumentsRequest>,
    ) -> Result<Response<v1::CountDocumentsResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

struct Outcome {
    result: Result<(), Failure>,
    tally: Tally,
    stored: BTreeMap<String, u32>,
    num_streams: usize,
    rejects: String,
}

/// Imports documents 0 to `num_docs` in batches of 3, some of them marked.
async fn import(num_docs: usize, marks: &[(usize, &str)], state: State) -> Outcome {
    let fake = Fake(Arc::new(Mutex::new(state)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let service = DocumentServiceServer::new(fake.clone());
    let server = tokio::spawn(
        tonic::transport::Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)),
    );

    let (sender, receiver) = mpsc::channel(num_docs.max(1));
    for number in 0..num_docs {
        let mut document = v1::Document { key: format!("{number}"), ..v1::Document::default() };
        if let Some((_, mark)) = marks.iter().find(|(at, _)| *at == number) {
            document.fields.insert("mark".to_owned(), v1::Value { kind: Some(Kind::String((*mark).to_owned())) });
        }
        let origin = Origin { file: "docs.jsonl".into(), line: number as u64 + 1 };
        let raw = Some(format!("{{\"key\":\"{number}\"}}"));
        sender
            .send(Read::Document(Item { origin, document, raw, has_generated_key: false, bytes_read: 0 }))
            .await
            .unwrap();
    }
    drop(sender);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rejects.jsonl");
    let client = client_of(&address);
    let batcher = Batcher::new(receiver, BatchLimits { max_docs: 3, max_bytes: 1 << 20 });
    let mut import = Import::new(client, "c", batcher, 2, Progress::silent(), Rejects::new(Some(&path)).unwrap());
    let result = import.run().await;
    let tally = import.finish().unwrap();
    server.abort();
    let rejects = std::fs::read_to_string(path).unwrap();
    let state = fake.0.lock().unwrap();
    Outcome { result, tally, stored: state.stored.clone(), num_streams: state.num_streams, rejects }
}

fn ready() -> State {
    State { max_docs: 100, ..State::default() }
}

fn keys(range: std::ops::Range<usize>) -> std::collections::BTreeSet<String> {
    range.map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn everything_goes_over_one_stream() {
    let outcome = import(100, &[], ready()).await;
    assert_eq!(outcome.result, Ok(()));
    assert_eq!((outcome.tally.num_imported, outcome.tally.num_rejected, outcome.num_streams), (100, 0, 1));
    assert!(outcome.stored.values().all(|times| *times == 1));
    assert_eq!(outcome.stored.len(), 100);
}

#[tokio::test]
async fn nothing_to_import_needs_no_stream() {
    let outcome = import(0, &[], ready()).await;
    assert_eq!((outcome.result, outcome.num_streams), (Ok(()), 0));
}

#[tokio::test]
async fn a_stream_that_breaks_is_resumed() {
    for mark in ["break", "break-after", "overload"] {
        let outcome = import(60, &[(31, mark)], ready()).await;
        assert_eq!(outcome.result, Ok(()), "{mark}");
        assert_eq!((outcome.tally.num_imported, outcome.tally.num_retries, outcome.num_streams), (60, 1, 2), "{mark}");
        assert_eq!(outcome.stored.into_keys().collect::<std::collections::BTreeSet<_>>(), keys(0..60));
    }
}

#[tokio::test]
async fn refused_documents_are_named_and_the_rest_goes_on() {
    let marks = [(0, "refuse"), (31, "refuse"), (32, "refuse"), (40, "break"), (59, "refuse")];
    let outcome = import(60, &marks, ready()).await;
    assert_eq!(outcome.result, Ok(()));
    assert_eq!((outcome.tally.num_imported, outcome.tally.num_rejected), (56, 4));
    assert_eq!(outcome.stored.len(), 56);
    let lines: Vec<&str> = outcome.rejects.lines().collect();
    assert_eq!(
        lines[1],
        r#"{"file":"docs.jsonl","line":32,"reason":"vectors[\"v\"]: is too short","document":{"key":"31"}}"#
    );
    for (line, number) in lines.iter().zip([0, 31, 32, 59]) {
        assert!(line.contains(&format!("\"key\":\"{number}\"")), "{line}");
        assert!(!outcome.stored.contains_key(&number.to_string()));
    }
}

#[tokio::test]
async fn a_whole_batch_can_be_refused() {
    let outcome = import(9, &[(3, "refuse"), (4, "refuse"), (5, "refuse")], ready()).await;
    assert_eq!((outcome.result, outcome.tally.num_imported, outcome.tally.num_rejected), (Ok(()), 6, 3));
}

#[tokio::test]
async fn messages_that_are_too_large_are_split() {
    let outcome = import(20, &[], State { max_docs: 1, ..State::default() }).await;
    assert_eq!((outcome.result, outcome.tally.num_imported), (Ok(()), 20));
    let outcome = import(5, &[], State { max_docs: 0, ..State::default() }).await;
    assert_eq!((outcome.result, outcome.tally.num_imported, outcome.tally.num_rejected), (Ok(()), 0, 5));
    assert!(outcome.rejects.contains("TOO_LARGE"), "{}", outcome.rejects);
}

#[tokio::test]
async fn what_no_document_can_help_ends_the_import() {
    let outcome = import(20, &[], State { is_down: true, ..ready() }).await;
    let words = outcome.result.unwrap_err().to_string();
    assert_eq!(words, "NOT_FOUND COLLECTION_NOT_FOUND: no such collection");
    assert_eq!((outcome.num_streams, outcome.tally.num_rejected), (1, 0));
}

fn client_of(address: &str) -> DocumentServiceClient<Channel> {
    let endpoint = tonic::transport::Endpoint::from_shared(address.to_owned()).unwrap();
    DocumentServiceClient::new(Channel::new(endpoint.connect_lazy(), Bearer::default()))
}

#[tokio::test]
async fn tries_are_bounded() {
    let client = client_of("http://127.0.0.1:1");
    let (sender, receiver) = mpsc::channel(1);
    let origin = Origin { file: "f".into(), line: 1 };
    let document = v1::Document { key: "a".to_owned(), ..v1::Document::default() };
    sender
        .send(Read::Document(Item { origin, document, raw: None, has_generated_key: false, bytes_read: 0 }))
        .await
        .unwrap();
    let batcher = Batcher::new(receiver, BatchLimits { max_docs: 1, max_bytes: 1 });
    let mut import = Import::new(client, "c", batcher, 2, Progress::silent(), Rejects::default());
    let words = import.run().await.unwrap_err().to_string();
    assert!(words.starts_with("gave up after 2 more tries: UNAVAILABLE"), "{words}");
}

#[test]
fn waits_grow_up_to_a_bound() {
    assert_eq!(backoff(0), Duration::from_millis(200));
    assert_eq!(backoff(3), Duration::from_millis(1600));
    assert_eq!(backoff(u32::MAX), MAX_BACKOFF);
}
