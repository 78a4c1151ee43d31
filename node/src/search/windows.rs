//! The first matches of one ranking over a view: each segment gives its own, and they are merged by (score, key).
//!
//! INV-6: order is score descending, then folded key ascending by bytes, here and at the coordinator.

use std::borrow::Cow;
use std::cmp::Ordering;

use antiphon_proto::internal::{Candidate, KeywordPlan, KeywordQuery, VectorQuery};
use antiphon_proto::vector;

use super::plan::{condition, requires_all_groups};
use super::{MatchingRows, Stop};
use crate::attributes::{Matches, RowSet, Selection};
use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::segment::SegmentError;
use crate::text::{FieldStatistics, KeywordQuery as TextQuery, QueryTerm};
use crate::vectors::{self, Scorer};
use crate::view::{RowAddress, SegmentView, View};

/// A row found, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Where it is.
    pub address: RowAddress,
    /// Higher is better; never NaN.
    pub score: f64,
}

/// The first `window` of the matching rows by a vector.
///
/// # Errors
/// [`NodeError::Invalid`] for a field or vector that does not fit the schema; [`NodeError::Corruption`]; the stop's.
pub fn vector_window(
    view: &View,
    schema: &ShardSchema,
    query: &VectorQuery,
    matching: &MatchingRows,
    window: usize,
    stop: &Stop,
) -> Result<Vec<Candidate>, NodeError> {
    let field = query.field as usize;
    let spec = schema.vectors.get(field).ok_or_else(|| NodeError::Invalid(format!("no vector field {field}")))?;
    let values = vector::from_le_bytes(&query.vector).map_err(|fault| NodeError::Invalid(fault.to_string()))?;
    vector::validate(&values, spec.graph.dims, crate::view::wire_metric(spec.graph.metric))
        .map_err(|fault| NodeError::Invalid(fault.to_string()))?;
    let scorer = Scorer::new(spec.graph.metric, &values);
    let total =
        view.segments().filter_map(|segment| segment.segment().vectors(field)).map(|file| u64::from(file.len())).sum();
    over_segments(view, matching, window, stop, |segment, rows, matches| {
        let Some(file) = segment.segment().vectors(field) else { return Ok(Vec::new()) };
        vectors::vector_window(
            file,
            segment.segment().graph(field),
            &scorer,
            segment_depth(query, u64::from(file.len()), total),
            rows,
            matches.and_then(|matches| matches.nodes(field)),
            window,
            query.exact,
            &|| stop.is_set(),
        )
        .map_err(SegmentError::from)
    })
}

/// How deep the graph of a segment is searched that holds `len` of the `total` vectors of a view: fewer of the nearest
/// are in it, but more than its share where what belongs together was written together. See ADR 8. INV-16: depends on
/// the view and the query alone.
fn segment_depth(query: &VectorQuery, len: u64, total: u64) -> usize {
    let share = len as f64 / total.max(1) as f64;
    let depth = (f64::from(query.depth) * share.sqrt()).ceil() as u32;
    depth.max(query.min_depth) as usize
}

/// The first `window` of the matching rows by a plan with counts.
///
/// # Errors
/// [`NodeError::Invalid`] for a plan that does not fit the schema; [`NodeError::Corruption`]; the stop's.
pub fn keyword_window(
    view: &View,
    schema: &ShardSchema,
    query: &KeywordQuery,
    plan: &KeywordPlan,
    matching: &MatchingRows,
    window: usize,
    stop: &Stop,
) -> Result<Vec<Candidate>, NodeError> {
    if plan.fields.len() != query.fields.len() {
        return Err(NodeError::Invalid("a keyword plan needs the counts of every field".into()));
    }
    let mut fields: Vec<FieldStatistics> =
        schema.texts.iter().map(|field| FieldStatistics { num_docs: 0, num_tokens: 0, boost: field.boost }).collect();
    if !query.boosts.is_empty() {
        if query.boosts.len() != query.fields.len() {
            return Err(NodeError::Invalid("a keyword query needs a boost for every field, or none".into()));
        }
        for (field, boost) in query.fields.iter().zip(&query.boosts) {
            if let Some(slot) = fields.get_mut(*field as usize) {
                slot.boost = *boost;
            }
        }
    }
    for (field, counts) in query.fields.iter().zip(&plan.fields) {
        let slot = fields
            .get_mut(*field as usize)
            .ok_or_else(|| NodeError::Invalid(format!("the schema has no text field {field}")))?;
        slot.num_docs = counts.num_docs;
        slot.num_tokens = counts.num_tokens;
    }
    if plan.terms.iter().any(|term| term.field as usize >= fields.len()) {
        return Err(NodeError::Invalid("a keyword plan names a field that the schema does not have".into()));
    }
    if plan.terms.is_empty() {
        return Ok(Vec::new());
    }
    let terms = plan
        .terms
        .iter()
        .map(|term| QueryTerm {
            field: term.field as usize,
            text: term.term.clone(),
            group: term.group,
            doc_freq: term.doc_freq,
        })
        .collect();
    let text_query = TextQuery { terms, fields, require_all_groups: requires_all_groups(query) };
    let condition = condition(query, schema)?;
    over_segments(view, matching, window, stop, |segment, rows, _| {
        let Some(text) = segment.segment().text() else { return Ok(Vec::new()) };
        let is_stopped = || stop.is_set();
        match &condition {
            None => Ok(text.window(&text_query, rows, window, &is_stopped)?),
            Some(condition) => {
                // Rows that do not meet the condition are as good as dead.
                let mut may_be_found = RowSet::none(text.num_rows());
                let meeting = text.matching(condition, &is_stopped)?;
                meeting.iter().filter(|row| rows.contains(*row)).for_each(|row| may_be_found.insert(row));
                Ok(text.window(&text_query, Selection::only(&may_be_found), window, &is_stopped)?)
            }
        }
    })
}

fn over_segments(
    view: &View,
    matching: &MatchingRows,
    window: usize,
    stop: &Stop,
    mut search: impl FnMut(&SegmentView, Selection<'_>, Option<&Matches>) -> Result<Vec<(u32, f64)>, SegmentError>,
) -> Result<Vec<Candidate>, NodeError> {
    let matching = matching.of(view, stop)?;
    let mut found: Vec<Found> = Vec::new();
    for (place, segment) in view.segments().enumerate() {
        if stop.is_set() {
            return Err(stop.error());
        }
        let matches = matching.and_then(|sets| sets.get(place)).map(AsRef::as_ref);
        let may_be_found = matches.map_or(segment.living(), Matches::selection);
        let rows = search(segment, may_be_found, matches)
            .map_err(|error| if error.is_stopped() { stop.error() } else { error.into() })?;
        let address = |row| RowAddress { segment: place as u32, row };
        found.extend(rows.into_iter().map(|(row, score)| Found { address: address(row), score }));
    }
    let segments: Vec<&SegmentView> = view.segments().map(AsRef::as_ref).collect();
    let folded = |found: &Found| -> Cow<'_, str> {
        segments
            .get(found.address.segment as usize)
            .map_or(Cow::Borrowed(""), |segment| segment.segment().rows().folded_key(found.address.row))
    };
    if segments.len() > 1 {
        found.sort_by(|a, b| match b.score.total_cmp(&a.score) {
            Ordering::Equal => folded(a).cmp(&folded(b)),
            order => order,
        });
    }
    found.truncate(window);
    let key = |address: RowAddress| {
        segments
            .get(address.segment as usize)
            .map(|segment| segment.segment().rows().key(address.row).to_owned())
            .unwrap_or_default()
    };
    Ok(found
        .into_iter()
        .map(|found| Candidate { key: key(found.address), score: found.score, row: found.address.encode() })
        .collect())
}
