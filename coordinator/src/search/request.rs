//! A search, whichever method it came by, checked and resolved.

use std::sync::Arc;

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::{KeywordQuery, Projection, VectorQuery};
use antiphon_proto::v1::{Channel, Consistency, Filter, Fusion, FusionMethod, Partial, Schema, SearchOptions};

use crate::collections::Resolved;
use crate::fusion::ScoreFusion;
use crate::page::{PageCut, PageError, PageLaw};
use crate::token::{self, Position};
use crate::validate::{Depth, check_filter};

/// Default constant of reciprocal rank fusion.
const DEFAULT_RANK_CONSTANT: u32 = 60;
/// Largest constant of reciprocal rank fusion.
const MAX_RANK_CONSTANT: u32 = 10_000;
/// Most fields named in one request.
const MAX_FIELDS: usize = 1_000;

/// One ranked list that a search draws from.
#[derive(Debug, Clone)]
pub struct ListQuery {
    /// Its channel.
    pub channel: Channel,
    /// Which of the request's queries it belongs to, from 0.
    pub query: u32,
    /// What is asked.
    pub kind: ListKind,
}

/// What a list is asked.
#[derive(Debug, Clone)]
pub enum ListKind {
    /// A vector.
    Vector(VectorQuery),
    /// Keywords.
    Keyword(KeywordQuery),
}

/// How lists become one ranking.
#[derive(Debug, Clone)]
pub enum Method {
    /// By turns, in this order of the lists.
    Turns(Vec<usize>),
    /// By score.
    Scores(ScoreFusion, Vec<f64>),
}

/// Which state of the data is searched.
#[derive(Debug, Clone)]
pub enum When {
    /// The newest, at least what is named, after a look for others' writes where `refresh`.
    Fresh {
        /// Look for writes of others first.
        refresh: bool,
        /// Positions to be seen.
        at_least: Vec<Position>,
    },
    /// These views.
    Snapshot(Vec<Position>),
}

/// A search ready to run.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    /// The collection.
    pub collection: Arc<Resolved>,
    /// The page.
    pub cut: PageCut,
    /// First matches asked of each list.
    pub window: usize,
    /// The lists.
    pub lists: Vec<ListQuery>,
    /// How they become one.
    pub method: Method,
    /// Which state of the data.
    pub when: When,
    /// Whether to answer without shards that fail.
    pub allow_partial: bool,
    /// Only documents that meet it are found. It fits the schema.
    pub filter: Option<Filter>,
    /// Matches below it are left out.
    pub min_score: Option<f64>,
    /// What of the documents to return.
    pub projection: Projection,
    /// What the caller should know.
    pub warnings: Vec<String>,
}

/// The page of a request, under the law.
///
/// # Errors
/// PAGE_OUT_OF_RANGE with last_page; ARGUMENT_INVALID.
fn resolve_page(law: &PageLaw, options: &SearchOptions) -> Result<PageCut, ApiError> {
    law.resolve(options.page, options.page_size, options.skip).map_err(|error| match error {
        PageError::OutOfRange { last_page } => {
            ApiError::new(ErrorKind::PageOutOfRange, error.to_string()).with_metadata("last_page", last_page)
        }
        PageError::PageAndSkip => ApiError::field(ErrorKind::ArgumentInvalid, "options.skip", error.to_string()),
        PageError::PageSizeTooLarge { .. } => {
            ApiError::field(ErrorKind::ArgumentInvalid, "options.page_size", error.to_string())
        }
    })
}

/// How the lists of a search become one; by turns, one list stays what it is.
///
/// # Errors
/// ARGUMENT_INVALID for options out of bounds or not of the method.
fn resolve_method(fusion: Option<&Fusion>, lists: &[ListQuery]) -> Result<Method, ApiError> {
    let fusion = fusion.cloned().unwrap_or_default();
    let fault =
        |field: &str, words: String| Err(ApiError::field(ErrorKind::ArgumentInvalid, format!("fusion.{field}"), words));
    let Ok(method) = FusionMethod::try_from(fusion.method) else {
        return fault("method", format!("{} is unknown to this release", fusion.method));
    };
    let Ok(first_channel) = Channel::try_from(fusion.first_channel) else {
        return fault("first_channel", format!("{} is unknown to this release", fusion.first_channel));
    };
    let by_turns = matches!(method, FusionMethod::Unspecified | FusionMethod::TurnTaking);
    if by_turns && !fusion.weights.is_empty() {
        return fault("weights", "turn-taking has no weights".into());
    }
    if !by_turns && first_channel != Channel::Unspecified {
        return fault("first_channel", "only turn-taking has a first channel".into());
    }
    if first_channel != Channel::Unspecified && lists.iter().all(|list| list.channel != first_channel) {
        return fault("first_channel", "no list of the request is of this channel".into());
    }
    if method != FusionMethod::ReciprocalRank && fusion.k.is_some() {
        return fault("k", "only RECIPROCAL_RANK has the constant k".into());
    }
    let fused = match method {
        FusionMethod::Unspecified | FusionMethod::TurnTaking => {
            let first = if first_channel == Channel::Unspecified { Channel::Vector } else { first_channel };
            let mut order: Vec<usize> = (0..lists.len()).collect();
            order.sort_by_key(|index| lists[*index].channel != first);
            return Ok(Method::Turns(order));
        }
        FusionMethod::ReciprocalRank => {
            let k = fusion.k.unwrap_or(DEFAULT_RANK_CONSTANT);
            if !(1..=MAX_RANK_CONSTANT).contains(&k) {
                return fault("k", format!("{k} is not from 1 to {MAX_RANK_CONSTANT}"));
            }
            ScoreFusion::ReciprocalRank { k }
        }
        FusionMethod::MaxScore => ScoreFusion::MaxScore,
        FusionMethod::RelativeScore => ScoreFusion::RelativeScore,
        FusionMethod::DistributionScore => ScoreFusion::DistributionScore,
    };
    // Weights are checked before anything is searched; fusing empty lists checks them all.
    let empty: Vec<Vec<f64>> = vec![Vec::new(); lists.len()];
    if let Err(error) = fused.fuse(&empty, &fusion.weights, |_| (), |score| *score) {
        return fault("weights", error.to_string());
    }
    Ok(Method::Scores(fused, fusion.weights))
}

/// Which state of the data a request asks for.
///
/// # Errors
/// TOKEN_MALFORMED, SNAPSHOT_EXPIRED; ARGUMENT_INVALID for a snapshot together with conditions on freshness.
fn resolve_when(options: &SearchOptions, collection: &Resolved) -> Result<When, ApiError> {
    let consistency = Consistency::try_from(options.consistency).map_err(|_| {
        let words = format!("{} is unknown to this release", options.consistency);
        ApiError::field(ErrorKind::ArgumentInvalid, "options.consistency", words)
    })?;
    let refresh = consistency == Consistency::Refresh;
    if !options.snapshot.is_empty() {
        if refresh || !options.at_least.is_empty() {
            let words = "a snapshot is what it was: it takes neither at_least nor REFRESH";
            return Err(ApiError::field(ErrorKind::ArgumentInvalid, "options.snapshot", words));
        }
        return Ok(When::Snapshot(token::read_snapshot(&options.snapshot, collection.uid())?));
    }
    let at_least = match options.at_least.as_str() {
        "" => Vec::new(),
        version => token::read_version(version, collection.uid())?,
    };
    Ok(When::Fresh { refresh, at_least })
}

/// Whether a request takes partial answers.
///
/// # Errors
/// ARGUMENT_INVALID for a value that this release does not know.
fn resolve_partial(options: &SearchOptions) -> Result<bool, ApiError> {
    match Partial::try_from(options.partial) {
        Ok(partial) => Ok(partial == Partial::Allow),
        Err(_) => {
            let words = format!("{} is unknown to this release", options.partial);
            Err(ApiError::field(ErrorKind::ArgumentInvalid, "options.partial", words))
        }
    }
}

/// Refuses a score that nothing compares with.
///
/// # Errors
/// NOT_FINITE.
fn check_min_score(min_score: Option<f64>) -> Result<(), ApiError> {
    match min_score {
        Some(score) if !score.is_finite() => {
            Err(ApiError::field(ErrorKind::NotFinite, "options.min_score", format!("{score} is no score")))
        }
        _ => Ok(()),
    }
}

/// What of the documents a request wants. `path` is where it names the fields.
///
/// # Errors
/// ARGUMENT_INVALID for too many fields.
pub(crate) fn projection(
    path: &str,
    fields: &[String],
    include_vectors: bool,
    text_limit: u32,
) -> Result<Projection, ApiError> {
    if fields.len() > MAX_FIELDS {
        let words = format!("{} fields were named; at most {MAX_FIELDS} may be", fields.len());
        return Err(ApiError::field(ErrorKind::ArgumentInvalid, path, words));
    }
    Ok(Projection { fields: fields.to_vec(), include_vectors, text_limit })
}

/// Puts a request together.
pub struct RequestBuilder<'r> {
    law: &'r PageLaw,
    options: &'r SearchOptions,
    collection: Arc<Resolved>,
    cut: PageCut,
    warnings: Vec<String>,
}

impl<'r> RequestBuilder<'r> {
    /// Checks the options.
    ///
    /// # Errors
    /// PAGE_OUT_OF_RANGE; ARGUMENT_INVALID.
    pub fn new(law: &'r PageLaw, collection: Arc<Resolved>, options: &'r SearchOptions) -> Result<Self, ApiError> {
        let cut = resolve_page(law, options)?;
        check_filter(options.filter.as_ref(), &collection.schema, "options.filter")?;
        check_min_score(options.min_score)?;
        Ok(Self { law, options, collection, cut, warnings: Vec::new() })
    }

    /// The options.
    pub fn options(&self) -> &SearchOptions {
        self.options
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.collection.schema
    }

    /// The schema, and where to put what the caller should know.
    pub fn schema_and_warnings(&mut self) -> (&Schema, &mut Vec<String>) {
        (&self.collection.schema, &mut self.warnings)
    }

    /// What graphs are asked for at least: the same for every page, so that deeper pages extend shallower ones. Only a
    /// first page larger than the window goes deeper.
    pub fn depth(&self) -> Depth {
        let least = (self.law.max_result_window as usize + 1).max(self.cut.window());
        Depth { least, num_shards: self.collection.collection.shard_count }
    }

    /// A search of one list or several.
    ///
    /// # Errors
    /// As for the options; ARGUMENT_INVALID for a fusion out of bounds.
    pub fn fused(self, lists: Vec<ListQuery>, fusion: Option<&Fusion>) -> Result<SearchRequest, ApiError> {
        let method = resolve_method(fusion, &lists)?;
        let window = match &method {
            Method::Turns(_) => self.cut.window(),
            Method::Scores(..) => self.cut.fusion_window(self.law.max_result_window),
        };
        self.finish(lists, method, window)
    }

    fn finish(self, lists: Vec<ListQuery>, method: Method, window: usize) -> Result<SearchRequest, ApiError> {
        let options = self.options;
        Ok(SearchRequest {
            when: resolve_when(options, &self.collection)?,
            allow_partial: resolve_partial(options)?,
            projection: projection("options.fields", &options.fields, options.include_vectors, options.text_limit)?,
            filter: options.filter.clone(),
            min_score: options.min_score,
            collection: self.collection,
            cut: self.cut,
            window,
            lists,
            method,
            warnings: self.warnings,
        })
    }
}
