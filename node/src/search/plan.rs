//! From a text to the terms of a keyword query, with their counts in one view.

use std::collections::{BTreeMap, HashSet};

use antiphon_proto::internal::{FieldCounts, KeywordPlan, KeywordQuery, PlannedTerm};

use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::view::View;

/// Plans a query: each field's analyzer turns the text into terms; those too short are left out, a term twice counts
/// once, and the first `max_terms` of each field stay. Terms that start at the same place of the text form a group. The
/// plan depends on query and schema alone, so every shard makes the same.
///
/// # Errors
/// [`NodeError::Invalid`] for a field that the schema does not have.
pub fn plan_keywords(query: &KeywordQuery, schema: &ShardSchema) -> Result<KeywordPlan, NodeError> {
    let mut terms = Vec::new();
    let mut groups: BTreeMap<usize, u32> = BTreeMap::new();
    for field in &query.fields {
        let text_field = schema
            .texts
            .get(*field as usize)
            .ok_or_else(|| NodeError::Invalid(format!("the schema has no text field {field}")))?;
        let mut seen = HashSet::new();
        for term in text_field.analyzer.terms(&query.text) {
            if term.text.chars().count() < query.min_term_chars as usize {
                continue;
            }
            if seen.len() >= query.max_terms as usize {
                break;
            }
            if seen.insert(term.text.clone()) {
                let next = groups.len() as u32;
                let group = *groups.entry(term.offset).or_insert(next);
                terms.push(PlannedTerm { field: *field, term: term.text, group, doc_freq: 0 });
            }
        }
    }
    Ok(KeywordPlan { terms, fields: Vec::new() })
}

/// Adds the counts of one view to a plan.
///
/// # Errors
/// [`NodeError::Corruption`] where a text index is damaged.
pub fn with_counts(mut plan: KeywordPlan, query: &KeywordQuery, view: &View) -> Result<KeywordPlan, NodeError> {
    for term in &mut plan.terms {
        term.doc_freq = 0;
        for segment in view.segments() {
            term.doc_freq += segment.doc_freq(term.field as usize, &term.term)?;
        }
    }
    plan.fields = query
        .fields
        .iter()
        .map(|field| {
            let totals = view.totals(*field as usize);
            FieldCounts { num_docs: totals.num_docs, num_tokens: totals.num_tokens }
        })
        .collect();
    Ok(plan)
}
