//! Everything that can be asked of a collection, and what came back.

use std::fmt;

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1::{Document, Partial, SearchOptions, SearchResponse};
use antiphon_tests::client::Client;
use antiphon_tests::cluster::vector_of;
use antiphon_tests::sample::*;
use tonic::Status;

use crate::prepared::KEYS;

pub(crate) type Answers = Vec<(&'static str, Answer)>;

#[derive(Clone, PartialEq)]
pub(crate) enum Answer {
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

pub(crate) fn failed(status: &Status) -> Answer {
    let error = ApiError::from_status(status);
    Answer::Failed(error.kind(), error.to_string())
}

pub(crate) fn searched(outcome: Result<SearchResponse, Status>) -> Answer {
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
pub(crate) async fn ask(client: &Client, name: &str, partial: Partial) -> Answers {
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
