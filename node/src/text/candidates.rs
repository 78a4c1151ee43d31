//! tantivy's side of a keyword search: the weights that find candidates, with our statistics in them.
//!
//! Scores are float32 and only bounds (`pruning.rs`); nothing here reaches an answer.

use std::collections::BTreeMap;

use tantivy::query::{
    Bm25StatisticsProvider, BooleanWeight, BoostWeight, EnableScoring, Occur, Query, SumCombiner, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};

use super::TextError;

/// One term of a query that the segment holds.
pub(super) struct CandidateTerm {
    pub(super) term: Term,
    pub(super) group: u32,
    pub(super) num_docs: u64,
    pub(super) num_tokens: u64,
    /// Between 0 and 1.
    pub(super) relative_weight: f64,
}

/// How candidates are found.
pub(super) enum Candidates {
    /// By block-max pruning: a union of terms, or an intersection of terms.
    Pruned(Box<dyn Weight>),
    /// One by one: an intersection of unions.
    Walked(Box<dyn Weight>),
}

type Clause = (Occur, Box<dyn Weight>);

impl Candidates {
    /// Rows that hold one of the terms.
    pub(super) fn of_any(searcher: &Searcher, terms: &[CandidateTerm]) -> Result<Self, TextError> {
        Ok(Candidates::Pruned(union(clauses(searcher, terms.iter(), Occur::Should)?)))
    }

    /// Rows that hold a term of each group. The caller has seen to it that the segment has a term of each.
    pub(super) fn of_every_group(searcher: &Searcher, terms: &[CandidateTerm]) -> Result<Self, TextError> {
        let mut groups: BTreeMap<u32, Vec<&CandidateTerm>> = BTreeMap::new();
        for term in terms {
            groups.entry(term.group).or_default().push(term);
        }
        if groups.len() < 2 {
            return Self::of_any(searcher, terms);
        }
        if groups.len() == terms.len() {
            return Ok(Candidates::Pruned(boolean(clauses(searcher, terms.iter(), Occur::Must)?)));
        }
        let unions = groups
            .into_values()
            .map(|group| Ok((Occur::Must, union(clauses(searcher, group.into_iter(), Occur::Should)?))))
            .collect::<Result<_, TextError>>()?;
        Ok(Candidates::Walked(boolean(unions)))
    }
}

fn clauses<'a>(
    searcher: &Searcher,
    terms: impl Iterator<Item = &'a CandidateTerm>,
    occur: Occur,
) -> Result<Vec<Clause>, TextError> {
    terms.map(|term| Ok((occur, term.weight(searcher)?))).collect()
}

/// With a minimum of 0 clauses, tantivy uses block-max pruning for one clause as well; with 1 it would make it a
/// requirement and walk it.
fn union(clauses: Vec<Clause>) -> Box<dyn Weight> {
    boolean(clauses)
}

fn boolean(clauses: Vec<Clause>) -> Box<dyn Weight> {
    Box::new(BooleanWeight::with_minimum_number_should_match(clauses, 0, true, Box::new(SumCombiner::default)))
}

impl CandidateTerm {
    fn weight(&self, searcher: &Searcher) -> Result<Box<dyn Weight>, TextError> {
        // tantivy computes an idf of its own, in float32, where that of a term in nearly all rows loses its precision
        // (and asserts that no term is in more rows than there are). So it is given half of the rows as the term's, and
        // a boost that takes the resulting idf out and puts the right one in.
        let doc_freq = self.num_docs / 2;
        let others = (self.num_docs - doc_freq) as f32;
        let idf = (1.0 + (others + 0.5) / (doc_freq as f32 + 0.5)).ln();
        let statistics = Statistics { num_docs: self.num_docs, num_tokens: self.num_tokens, doc_freq };
        let query = TermQuery::new(self.term.clone(), IndexRecordOption::WithFreqs);
        let weight = query.weight(EnableScoring::enabled_from_statistics_provider(&statistics, searcher))?;
        Ok(Box::new(BoostWeight::new(weight, (self.relative_weight / f64::from(idf)) as f32)))
    }
}

/// Statistics of one term.
struct Statistics {
    num_docs: u64,
    num_tokens: u64,
    doc_freq: u64,
}

impl Bm25StatisticsProvider for Statistics {
    fn total_num_tokens(&self, _field: Field) -> tantivy::Result<u64> {
        Ok(self.num_tokens)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.num_docs)
    }

    fn doc_freq(&self, _term: &Term) -> tantivy::Result<u64> {
        Ok(self.doc_freq)
    }
}
