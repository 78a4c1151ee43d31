//! Scatter and gather: every shard's windows, all of one search from one view a shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::{
    Candidate, FieldCounts, Freshness, KeywordPlan, KeywordQuery, OpenViewRequest, OpenViewResponse,
    SearchWindowsRequest, SearchWindowsResponse, ShardRef, ViewChoice, ViewName, WindowQuery, view_choice,
    window_query::Query,
};
use antiphon_proto::v1::{Channel, ShardFailure};
use antiphon_telemetry::phase;
use futures::future::join_all;
use tracing::Instrument as _;

use super::request::{ListKind, SearchRequest, When};
use crate::cluster::{Answered, Cluster, First, NodeHandle, Target};
use crate::token::Position;

/// What the shards gave.
pub(super) struct Gathered {
    /// For each list, each answering shard's candidates.
    pub(super) lists: Vec<Vec<(u32, Vec<Candidate>)>>,
    /// The view of each answering shard, and the node that it was seen on.
    pub(super) views: BTreeMap<u32, Seen>,
    /// What did not answer.
    pub(super) failures: Vec<ShardFailure>,
    /// For each list, the terms of its text; none for vectors.
    pub(super) num_terms: Vec<Option<u32>>,
    /// For each list, whether its text has more terms than count.
    pub(super) is_cut: Vec<bool>,
}

/// A view and the node that it was seen on.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) view: ViewName,
    pub(super) node: Arc<NodeHandle>,
}

/// What a shard is asked for, and of whom first.
struct Choice {
    view: ViewChoice,
    first: First,
}

type Plans = Vec<Option<KeywordPlan>>;

/// Asks all shards.
///
/// # Errors
/// The first failure, where partial answers are not allowed or nothing answered.
pub(super) async fn gather(
    cluster: &Cluster,
    request: &SearchRequest,
    deadline: Deadline,
) -> Result<Gathered, ApiError> {
    // Each step may wait for a shard that never answers, so a partial answer needs time left for the steps after it.
    let patience =
        |share: f64| if request.allow_partial { Deadline::after(deadline.left().mul_f64(share)) } else { deadline };
    let mut failures = Vec::new();
    let mut choices: BTreeMap<u32, Choice> = BTreeMap::new();
    for shard in 0..request.collection.num_shards() {
        match choice(request, shard) {
            Some(choice) => drop(choices.insert(shard, choice)),
            None => {
                let error = ApiError::new(
                    ErrorKind::ShardUnavailable,
                    format!("shard {shard} is not in the snapshot, since it did not answer then"),
                );
                note(&mut failures, request, shard, error)?;
            }
        }
    }
    let keywords: Vec<&KeywordQuery> = request.lists.iter().filter_map(|list| keyword(&list.kind)).collect();
    let mut plans: Plans = vec![None; request.lists.len()];
    if request.collection.num_shards() > 1 && !keywords.is_empty() {
        let opened = open_views(cluster, request, &choices, &keywords, patience(0.5));
        let opened = opened.instrument(phase!("statistics", texts = keywords.len())).await;
        choices.clear();
        let mut sums: Option<Vec<KeywordPlan>> = None;
        for (shard, outcome) in opened {
            match outcome {
                Ok((seen, shard_plans)) => {
                    let view = ViewChoice { choice: Some(view_choice::Choice::Named(seen.view)) };
                    choices.insert(shard, Choice { view, first: First::Node(seen.node) });
                    sums = Some(match sums {
                        None => shard_plans,
                        Some(sums) => add(sums, &shard_plans)?,
                    });
                }
                Err(error) => note(&mut failures, request, shard, error)?,
            }
        }
        let mut sums = sums.unwrap_or_default().into_iter();
        for (list, plan) in request.lists.iter().zip(&mut plans) {
            if keyword(&list.kind).is_some() {
                *plan = sums.next();
            }
        }
    }
    let answers = search_windows(cluster, request, &choices, &plans, patience(0.8));
    let answers = answers.instrument(phase!("windows", lists = request.lists.len())).await;
    let mut gathered = Gathered {
        lists: vec![Vec::new(); request.lists.len()],
        views: BTreeMap::new(),
        failures: Vec::new(),
        num_terms: vec![None; request.lists.len()],
        is_cut: vec![false; request.lists.len()],
    };
    for (shard, outcome) in answers {
        match outcome {
            Ok(response) => take_in(&mut gathered, request, &mut failures, shard, response)?,
            Err(error) => note(&mut failures, request, shard, error)?,
        }
    }
    if gathered.views.is_empty()
        && let Some((shard, error)) = failures.first()
    {
        return Err(name_shard(error, *shard));
    }
    gathered.failures = failures.iter().flat_map(|(shard, error)| shard_failures(request, *shard, error)).collect();
    Ok(gathered)
}

fn choice(request: &SearchRequest, shard: u32) -> Option<Choice> {
    let (choice, first) = match &request.when {
        When::Snapshot(positions) => {
            let view = positions.iter().find(|position| position.shard == shard).map(Position::view)?;
            // The same replica as long as it lives: it holds the view.
            let number = view.seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ view.manifest_version;
            (view_choice::Choice::Named(view), First::Same(number))
        }
        When::Fresh { refresh, at_least } => {
            let at_least_seq =
                at_least.iter().filter(|position| position.shard == shard).map(|position| position.seq).max();
            let freshness = Freshness { refresh: *refresh, at_least_seq: at_least_seq.unwrap_or(0) };
            (view_choice::Choice::Fresh(freshness), First::Idlest)
        }
    };
    Some(Choice { view: ViewChoice { choice: Some(choice) }, first })
}

fn keyword(kind: &ListKind) -> Option<&KeywordQuery> {
    match kind {
        ListKind::Vector(_) => None,
        ListKind::Keyword(query) => Some(query),
    }
}

/// A partial answer is not to wait for what may not come.
pub(super) fn target(request: &SearchRequest, shard: u32) -> Target<'_> {
    Target { is_patient: !request.allow_partial, ..request.collection.target(shard) }
}

fn shard_ref(request: &SearchRequest, shard: u32) -> ShardRef {
    request.collection.shard_ref(shard)
}

type Opened = Result<(Seen, Vec<KeywordPlan>), ApiError>;

async fn open_views(
    cluster: &Cluster,
    request: &SearchRequest,
    choices: &BTreeMap<u32, Choice>,
    keywords: &[&KeywordQuery],
    deadline: Deadline,
) -> Vec<(u32, Opened)> {
    let calls = choices.iter().map(|(shard, choice)| async move {
        let message = OpenViewRequest {
            shard: Some(shard_ref(request, *shard)),
            view: Some(choice.view),
            keyword_queries: keywords.iter().map(|query| (*query).clone()).collect(),
        };
        let call = async {
            let ask = |node: Arc<NodeHandle>| {
                let message = message.clone();
                async move { node.client.open_view(message, deadline).await }
            };
            let is_whole = |response: &OpenViewResponse| response.quarantined_segments.is_empty();
            let Answered { node, answer } = cluster.read(target(request, *shard), &choice.first, is_whole, ask).await?;
            refuse_quarantined(request, &answer.quarantined_segments)?;
            let view = answer.view.ok_or_else(|| protocol_error("a view without a name"))?;
            Ok((Seen { view, node }, answer.plans))
        };
        (*shard, call.await)
    });
    join_all(calls).await
}

async fn search_windows(
    cluster: &Cluster,
    request: &SearchRequest,
    choices: &BTreeMap<u32, Choice>,
    plans: &Plans,
    deadline: Deadline,
) -> Vec<(u32, Result<Answered<SearchWindowsResponse>, ApiError>)> {
    let queries: Vec<WindowQuery> = request
        .lists
        .iter()
        .zip(plans)
        .map(|(list, plan)| WindowQuery {
            window: request.window as u32,
            query: Some(match &list.kind {
                ListKind::Vector(query) => Query::Vector(query.clone()),
                ListKind::Keyword(query) => Query::Keyword(KeywordQuery { plan: plan.clone(), ..query.clone() }),
            }),
        })
        .collect();
    let queries = &queries;
    let calls = choices.iter().map(|(shard, choice)| async move {
        let message = SearchWindowsRequest {
            shard: Some(shard_ref(request, *shard)),
            view: Some(choice.view),
            queries: queries.clone(),
            filter: request.filter.clone(),
        };
        let call = async {
            let ask = |node: Arc<NodeHandle>| {
                let message = message.clone();
                async move { node.client.search_windows(message, deadline).await }
            };
            let is_whole = |response: &SearchWindowsResponse| response.quarantined_segments.is_empty();
            let asked = cluster.read(target(request, *shard), &choice.first, is_whole, ask).await?;
            refuse_quarantined(request, &asked.answer.quarantined_segments)?;
            if asked.answer.windows.len() != request.lists.len() {
                return Err(protocol_error("another number of windows than asked for"));
            }
            Ok(asked)
        };
        (*shard, call.await)
    });
    join_all(calls).await
}

fn take_in(
    gathered: &mut Gathered,
    request: &SearchRequest,
    failures: &mut Vec<(u32, ApiError)>,
    shard: u32,
    asked: Answered<SearchWindowsResponse>,
) -> Result<(), ApiError> {
    let Answered { node, answer: response } = asked;
    let Some(view) = response.view else {
        return note(failures, request, shard, protocol_error("a view without a name"));
    };
    gathered.views.insert(shard, Seen { view, node });
    if !response.quarantined_segments.is_empty() {
        failures.push((shard, quarantine_error(&response.quarantined_segments)));
    }
    for (index, window) in response.windows.into_iter().enumerate() {
        if request.lists[index].channel == Channel::Keyword {
            gathered.num_terms[index] = Some(window.num_terms);
            gathered.is_cut[index] |= window.is_cut;
        }
        gathered.lists[index].push((shard, window.candidates));
    }
    Ok(())
}

/// Adds one shard's counts to the sums; plans of one query have the same terms on every shard.
fn add(mut sums: Vec<KeywordPlan>, plans: &[KeywordPlan]) -> Result<Vec<KeywordPlan>, ApiError> {
    if sums.len() != plans.len() {
        return Err(protocol_error("shards that plan another number of queries"));
    }
    for (sum, plan) in sums.iter_mut().zip(plans) {
        let same = sum.terms.len() == plan.terms.len()
            && sum.fields.len() == plan.fields.len()
            && sum.terms.iter().zip(&plan.terms).all(|(a, b)| a.field == b.field && a.term == b.term);
        if !same {
            return Err(protocol_error("shards that plan a query differently: nodes of different releases?"));
        }
        for (total, term) in sum.terms.iter_mut().zip(&plan.terms) {
            total.doc_freq += term.doc_freq;
        }
        for (total, counts) in sum.fields.iter_mut().zip(&plan.fields) {
            *total = FieldCounts {
                num_docs: total.num_docs + counts.num_docs,
                num_tokens: total.num_tokens + counts.num_tokens,
            };
        }
    }
    Ok(sums)
}

fn protocol_error(words: &str) -> ApiError {
    ApiError::new(ErrorKind::Internal, format!("a node answered with {words}"))
}

fn quarantine_error(segments: &[String]) -> ApiError {
    ApiError::new(ErrorKind::Corruption, format!("segments are damaged and set aside: {}", segments.join(", ")))
}

fn refuse_quarantined(request: &SearchRequest, segments: &[String]) -> Result<(), ApiError> {
    if segments.is_empty() || request.allow_partial { Ok(()) } else { Err(quarantine_error(segments)) }
}

/// Whether a failure is of one shard, so that the others may answer without it.
pub(super) fn is_of_shard(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ShardUnavailable
            | ErrorKind::StoreUnavailable
            | ErrorKind::ShuttingDown
            | ErrorKind::Overloaded
            | ErrorKind::Deadline
            | ErrorKind::Corruption
            | ErrorKind::DiskFull
    )
}

/// Notes a shard's failure, or passes it on where the answer must be whole.
fn note(
    failures: &mut Vec<(u32, ApiError)>,
    request: &SearchRequest,
    shard: u32,
    error: ApiError,
) -> Result<(), ApiError> {
    if request.allow_partial && is_of_shard(error.kind()) {
        failures.push((shard, error));
        return Ok(());
    }
    Err(name_shard(&error, shard))
}

fn name_shard(error: &ApiError, shard: u32) -> ApiError {
    if !is_of_shard(error.kind()) {
        return error.clone();
    }
    ApiError::new(error.kind(), format!("shard {shard}: {}", error.message())).with_metadata("shard", shard)
}

pub(super) fn shard_failures(request: &SearchRequest, shard: u32, error: &ApiError) -> Vec<ShardFailure> {
    let mut channels: Vec<Channel> = request.lists.iter().map(|list| list.channel).collect();
    channels.sort_unstable();
    channels.dedup();
    let reason = error.kind().reason();
    channels
        .into_iter()
        .map(|channel| ShardFailure { shard, channel: channel as i32, reason: reason.to_owned() })
        .collect()
}
