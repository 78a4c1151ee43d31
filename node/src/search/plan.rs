//! From a text to the terms of a keyword query, with their counts in one view; with syntax, also to a condition on rows.

use std::collections::{BTreeMap, HashSet};

use antiphon_proto::internal::{FieldCounts, KeywordPlan, KeywordQuery, PlannedTerm};
use antiphon_proto::v1::{Operator, Syntax};

use crate::error::NodeError;
use crate::schema::{ShardSchema, TextField};
use crate::text::{Formula, SyntaxField, SyntaxQuery, parse};
use crate::view::View;

fn text_field(schema: &ShardSchema, field: u32) -> Result<&TextField, NodeError> {
    let found = schema.texts.get(field as usize);
    found.ok_or_else(|| NodeError::Invalid(format!("the schema has no text field {field}")))
}

/// Whether a query's text is of the grammar rather than plain.
fn has_syntax(query: &KeywordQuery) -> bool {
    query.syntax == Syntax::Query as i32
}

/// Reads a query with syntax. Depends on query and schema alone, so every shard reads the same.
fn read_syntax(query: &KeywordQuery, schema: &ShardSchema) -> Result<SyntaxQuery, NodeError> {
    let fields: Vec<SyntaxField<'_>> = query
        .fields
        .iter()
        .map(|index| {
            let field = text_field(schema, *index)?;
            Ok(SyntaxField { index: *index as usize, name: &field.spec.name, analyzer: field.analyzer })
        })
        .collect::<Result<_, NodeError>>()?;
    let all = query.operator == Operator::And as i32;
    parse(&query.text, &fields, all).map_err(|fault| NodeError::QuerySyntax { path: query.path.clone(), fault })
}

/// What rows must meet besides what their scores say; none for plain texts, and where the scores say it all.
///
/// # Errors
/// [`NodeError::QuerySyntax`]; [`NodeError::Invalid`] for a field that the schema does not have.
pub(super) fn condition(query: &KeywordQuery, schema: &ShardSchema) -> Result<Option<Formula>, NodeError> {
    if !has_syntax(query) {
        return Ok(None);
    }
    let SyntaxQuery { terms, formula } = read_syntax(query, schema)?;
    Ok(formula.filter(|formula| !terms.iter().all(|term| formula.is_met_by(term.field, &term.text))))
}

/// Whether rows must hold a term of every group.
pub(super) fn requires_all_groups(query: &KeywordQuery) -> bool {
    query.operator == Operator::And as i32 && !has_syntax(query)
}

/// Plans a query: each field's analyzer turns the text into terms; those too short are left out, a term twice counts
/// once, and the first `max_terms` of each field stay. Terms that start at the same place of the text form a group. The
/// plan depends on query and schema alone, so every shard makes the same. With syntax, the terms are those that score.
///
/// # Errors
/// [`NodeError::Invalid`] for a field that the schema does not have; [`NodeError::QuerySyntax`].
pub fn plan_keywords(query: &KeywordQuery, schema: &ShardSchema) -> Result<KeywordPlan, NodeError> {
    if has_syntax(query) {
        let scored = read_syntax(query, schema)?.terms.into_iter();
        let planned =
            scored.map(|term| PlannedTerm { field: term.field as u32, term: term.text, group: term.word, doc_freq: 0 });
        return Ok(KeywordPlan { terms: planned.collect(), fields: Vec::new(), is_cut: false });
    }
    let mut terms = Vec::new();
    let mut is_cut = false;
    let mut groups: BTreeMap<usize, u32> = BTreeMap::new();
    for field in &query.fields {
        let text_field = text_field(schema, *field)?;
        let mut seen = HashSet::new();
        for term in text_field.analyzer.terms(&query.text) {
            if num_chars(&term.text) < query.min_term_chars as usize || seen.contains(&term.text) {
                continue;
            }
            if seen.len() >= query.max_terms as usize {
                is_cut = true;
                break;
            }
            if seen.insert(term.text.clone()) {
                let next = groups.len() as u32;
                let group = *groups.entry(term.offset).or_insert(next);
                terms.push(PlannedTerm { field: *field, term: term.text, group, doc_freq: 0 });
            }
        }
    }
    Ok(KeywordPlan { terms, fields: Vec::new(), is_cut })
}

/// A term's characters but for signs, so that `c++` has one; signs alone are a term of `exact` all the same.
fn num_chars(term: &str) -> usize {
    term.chars().filter(|c| !c.is_ascii_punctuation()).count().max(1)
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
