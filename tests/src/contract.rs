//! What the contract says of every error, checked on the errors that tests provoke.

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::Document;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::client::{Client, kind_of};
use crate::local::Local;
use crate::sample::{collection, document, hybrid_search, keys, options, schema};

/// Checks that a call failed as the contract says for this kind, and gives the status for more.
pub fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>, kind: ErrorKind) -> Status {
    let status = match outcome {
        Err(status) => status,
        Ok(answer) => panic!("wanted {}, got an answer: {answer:.500?}", kind.reason()),
    };
    check(&status, kind);
    status
}

/// The same, and that exactly one field is at fault.
pub fn refused_for<T: std::fmt::Debug>(outcome: Result<T, Status>, kind: ErrorKind, field: &str) -> Status {
    let status = refused(outcome, kind);
    assert_eq!(faulty_fields(&status), [field], "{status:?}");
    status
}

/// Checks a status against the contract.
pub fn check(status: &Status, kind: ErrorKind) {
    assert_eq!(status.code(), kind.code(), "{status:?}");
    assert_eq!(kind_of(status), kind, "{status:?}");
    assert!(!status.message().is_empty(), "{status:?}");
    let details = status.get_error_details();
    let has_violations = details.bad_request().is_some_and(|request| !request.field_violations.is_empty());
    assert_eq!(has_violations, status.code() == Code::InvalidArgument, "{status:?}");
    let delay = details.retry_info().and_then(|info| info.retry_delay);
    assert_eq!(delay.is_some(), status.code() == Code::ResourceExhausted, "{status:?}");
}

/// The fields that a status calls faulty.
pub fn faulty_fields(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let violations = details.bad_request().map(|request| request.field_violations.as_slice()).unwrap_or_default();
    violations.iter().map(|violation| violation.field.clone()).collect()
}

/// A fact in a status's ErrorInfo.
pub fn metadata(status: &Status, name: &str) -> Option<String> {
    status.get_details_error_info().and_then(|info| info.metadata.get(name).cloned())
}

/// Creates a collection `probe` with two documents, to be searched after each attack.
pub async fn prepare(server: &Local) {
    let client = &server.client;
    client.create(collection("probe", 1, schema(2, antiphon_proto::v1::Metric::Cosine))).await.unwrap();
    let documents: Vec<Document> = vec![document("near", &[1.0, 0.0], "pear"), document("far", &[0.0, 1.0], "apple")];
    client.upsert("probe", documents).await.unwrap();
}

/// The server goes on serving: a search of both channels answers as ever.
pub async fn still_serves(client: &Client) {
    let request = hybrid_search(&[1.0, 0.1], "apple", options("probe", 1, 10));
    let answer = client.search_hybrid(request).await.unwrap();
    assert_eq!(keys(&answer), ["near", "far"]);
    assert!(answer.warnings.is_empty(), "{:?}", answer.warnings);
}
