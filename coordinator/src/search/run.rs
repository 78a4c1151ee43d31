//! The steps of one search.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::FetchDocumentsRequest;
use antiphon_proto::v1::{Coverage, Document, Match, SearchResponse, ShardFailure};
use antiphon_telemetry::phase;
use futures::future::join_all;
use prost::Message;
use tracing::Instrument as _;

use super::clock::{Phase, SearchClock};
use super::gather::{Seen, gather, is_of_shard, shard_failures, target};
use super::merge::{Hit, merge};
use super::rank::{Ranked, rank};
use super::request::{ListKind, Method, SearchRequest};
use crate::cluster::{Cluster, First, NodeHandle};
use crate::token::{self, Position};
use crate::validate::MAX_TERMS;

/// Runs a search. One that takes as long as `slow` is told in the log.
///
/// # Errors
/// Those of the contract.
pub async fn run(
    cluster: &Cluster,
    request: SearchRequest,
    deadline: Deadline,
    max_response_bytes: usize,
    slow: Option<Duration>,
) -> Result<SearchResponse, ApiError> {
    let mut clock = SearchClock::start(&request, slow);
    let result = run_phases(cluster, request, deadline, max_response_bytes, &mut clock).await;
    clock.end(&result);
    result
}

async fn run_phases(
    cluster: &Cluster,
    mut request: SearchRequest,
    deadline: Deadline,
    max_response_bytes: usize,
    clock: &mut SearchClock,
) -> Result<SearchResponse, ApiError> {
    clock.begin(Phase::Gather);
    let gathered = gather(cluster, &request, deadline).await?;
    clock.begin(Phase::Merge);
    let merging = phase!("merge");
    let several = request.lists.iter().any(|list| list.query > 0);
    for ((list, num_terms), is_cut) in request.lists.iter().zip(&gathered.num_terms).zip(&gathered.is_cut) {
        let ListKind::Keyword(query) = &list.kind else { continue };
        if *num_terms == Some(0) {
            request.warnings.push(no_terms(&query.text, several.then_some(list.query)));
        }
        // Who asked for fewer knows that the rest is left out.
        if *is_cut && query.max_terms >= MAX_TERMS {
            request.warnings.push(format!("only the first {MAX_TERMS} terms of the query text were searched for"));
        }
    }
    let mut lists: Vec<Vec<Hit>> =
        gathered.lists.into_iter().map(|shards| merge(shards, request.collection.key_rule, request.window)).collect();
    if let (Some(least), Method::Turns(_)) = (request.min_score, &request.method) {
        // The head of each list stays, so that a page is still the head of a longer one (INV-16).
        lists.iter_mut().for_each(|list| list.retain(|hit| hit.score >= least));
    }
    let (ranked, has_more) = rank(&request, &lists)?;
    drop(merging);
    clock.begin(Phase::Fetch);
    let mut failures = gathered.failures;
    let documents = fetch(cluster, &request, &ranked, &gathered.views, &mut failures, deadline);
    let mut documents = documents.instrument(phase!("fetch", documents = ranked.len())).await?;
    if !failures.is_empty() {
        metrics::counter!("antiphon_partial_answers_total").increment(1);
    }
    let first_rank = request.cut.start() as u32 + 1;
    let matches = ranked
        .into_iter()
        .zip(first_rank..)
        .map(|(ranked, rank)| Match {
            key: ranked.hit.key.clone(),
            score: ranked.score,
            rank,
            channel: request.lists[ranked.list].channel as i32,
            places: ranked.places,
            document: documents.remove(&(ranked.hit.shard, ranked.hit.row)),
        })
        .collect();
    let positions = gathered
        .views
        .iter()
        .map(|(shard, Seen { view, .. })| Position {
            shard: *shard,
            seq: view.seq,
            manifest_version: view.manifest_version,
        })
        .collect();
    let response = SearchResponse {
        matches,
        has_more,
        last_page: request.cut.last_page(),
        coverage: Some(Coverage { num_shards: request.collection.num_shards(), failures }),
        snapshot: token::snapshot(request.collection.uid(), positions),
        warnings: request.warnings,
    };
    check_size(response.encoded_len(), max_response_bytes)?;
    Ok(response)
}

/// Refuses an answer that clients could not take.
///
/// # Errors
/// TOO_LARGE, saying what to ask for less of.
pub(crate) fn check_size(bytes: usize, most: usize) -> Result<(), ApiError> {
    if bytes <= most {
        return Ok(());
    }
    let words = format!(
        "the answer would have {bytes} bytes; this server sends at most {most}: ask for fewer documents, fewer fields, \
         a text_limit or no vectors"
    );
    Err(ApiError::new(ErrorKind::TooLarge, words))
}

/// `query` is its number where there are several.
fn no_terms(text: &str, query: Option<u32>) -> String {
    let (whose, list) = match query {
        None => ("the query text".to_owned(), "the keyword channel"),
        Some(query) => (format!("the text of queries[{query}]"), "its list"),
    };
    if text.trim().is_empty() {
        format!("{whose} is empty: {list} is too")
    } else {
        format!("{whose} has no words for the fields' analyzers: {list} is empty")
    }
}

async fn fetch(
    cluster: &Cluster,
    request: &SearchRequest,
    ranked: &[Ranked<'_>],
    views: &BTreeMap<u32, Seen>,
    failures: &mut Vec<ShardFailure>,
    deadline: Deadline,
) -> Result<BTreeMap<(u32, u64), Document>, ApiError> {
    let mut wanted: BTreeMap<u32, (Vec<u64>, Vec<String>)> = BTreeMap::new();
    for ranked in ranked {
        let (rows, keys) = wanted.entry(ranked.hit.shard).or_default();
        rows.push(ranked.hit.row);
        keys.push(ranked.hit.key.clone());
    }
    let calls = wanted.iter().map(|(shard, (rows, keys))| async move {
        let Some(seen) = views.get(shard) else {
            return (*shard, rows, Err(ApiError::new(ErrorKind::Internal, "a match of a shard without a view")));
        };
        let message = FetchDocumentsRequest {
            shard: Some(request.collection.shard_ref(*shard)),
            view: Some(seen.view),
            rows: Vec::new(),
            projection: Some(request.projection.clone()),
            keys: Vec::new(),
        };
        let ask = |node: Arc<NodeHandle>| {
            let mut message = message.clone();
            // Rows mean something on the node that named them only.
            if Arc::ptr_eq(&node, &seen.node) {
                message.rows.clone_from(rows);
            } else {
                message.keys.clone_from(keys);
            }
            async move { node.client.fetch_documents(message, deadline).await }
        };
        let first = First::Node(Arc::clone(&seen.node));
        (*shard, rows, cluster.read(target(request, *shard), &first, |_| true, ask).await)
    });
    let mut documents = BTreeMap::new();
    for (shard, rows, outcome) in join_all(calls).await {
        match outcome {
            Ok(asked) => {
                documents.extend(rows.iter().map(|row| (shard, *row)).zip(asked.answer.documents));
            }
            Err(error) if request.allow_partial && is_of_shard(error.kind()) => {
                failures.extend(shard_failures(request, shard, &error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(documents)
}
