//! The first n rows of one segment by a keyword query, exactly.
//!
//! tantivy finds candidates by float32 scores, with thresholds that are proven to lose none (`pruning.rs`). They wait
//! in a buffer, since most of the early ones are overtaken; what is left of it is scored canonically (`score.rs`), and
//! a heap keeps the best by score descending, row ascending. Scores do not depend on the path by which a row was found,
//! so windows of different segments merge as if they were one.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

use super::TextError;
use super::candidates::{CandidateTerm, Candidates};
use super::index::{FieldIndex, TextIndex};
use super::pruning::{NO_THRESHOLD, Pruning, slack_of};
use super::query::{FieldStatistics, KeywordQuery};
use super::score::{LengthNorms, idf, term_score};
use crate::attributes::{RowSet, Selection};

/// After so many candidates, `stop` is asked.
const CANDIDATES_PER_POLL: u32 = 1_000;

/// What looking a row up in a term's postings costs, in postings walked: a skip, and the unpacking of a block of 128.
const POSTINGS_PER_SEEK: u64 = 16;

/// So many candidates beyond n wait at most.
const BUFFERED_CANDIDATES: usize = 4_096;

impl TextIndex {
    /// The best `n` of the rows that may be found, with their scores, by score descending, then row ascending: exact, ties
    /// included. `stop` is asked at the beginning and every 1,000 candidates.
    ///
    /// # Errors
    /// [`TextError::Stopped`]; [`TextError::UnknownField`] and [`TextError::Boost`] for a query that does not fit;
    /// [`TextError::Tantivy`], [`TextError::Io`] where the index cannot be read.
    pub fn window(
        &self,
        query: &KeywordQuery,
        rows: Selection<'_>,
        n: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<(u32, f64)>, TextError> {
        if stop() {
            return Err(TextError::Stopped);
        }
        let held = Held::new(self, query)?;
        let n = n.min(self.num_rows() as usize);
        if n == 0 || held.terms.is_empty() || (query.require_all_groups && held.lacks_a_group(query)) {
            return Ok(Vec::new());
        }
        if let Selection::Only { rows, len } = rows
            && u64::from(len) * held.terms.len() as u64 * POSTINGS_PER_SEEK < held.num_postings()
        {
            return held.walk(rows, query, n, stop);
        }
        let pruning = Pruning::new(held.terms.iter().map(|term| term.weight), held.slack);
        let terms = held.candidate_terms(query, &pruning);
        let candidates = if query.require_all_groups {
            Candidates::of_every_group(self.searcher(), &terms)?
        } else {
            Candidates::of_any(self.searcher(), &terms)?
        };
        let mut search = Search {
            held,
            pruning,
            rows,
            n,
            nth_scores: BinaryHeap::new(),
            waiting: Vec::new(),
            best: Best { n, entries: BinaryHeap::new() },
            score_threshold: NO_THRESHOLD,
            threshold: NO_THRESHOLD,
            num_candidates: 0,
            stop,
            is_stopped: false,
        };
        search.run(self, candidates)?;
        if search.is_stopped {
            return Err(TextError::Stopped);
        }
        search.settle();
        Ok(search.best.into_sorted())
    }
}

/// A term of the query that the segment holds, with a cursor for scoring.
struct HeldTerm {
    /// Place in the query.
    position: usize,
    field: usize,
    /// boost · idf.
    weight: f64,
    postings: SegmentPostings,
}

/// The terms of a query that the segment holds, in the query's order, with what their fields need.
struct Held<'a> {
    terms: Vec<HeldTerm>,
    /// By index of the field; only those of held terms.
    fields: Vec<Option<(&'a FieldIndex, LengthNorms)>>,
    slack: f64,
}

impl<'a> Held<'a> {
    fn new(index: &'a TextIndex, query: &KeywordQuery) -> Result<Self, TextError> {
        let mut held = Self { terms: Vec::with_capacity(query.terms.len()), fields: Vec::new(), slack: 1.0 };
        held.fields.resize_with(query.fields.len(), || None);
        for (position, term) in query.terms.iter().enumerate() {
            let field = index.field(term.field)?;
            let slot = held.fields.get_mut(term.field).ok_or(TextError::UnknownField(term.field))?;
            let statistics = query.fields.get(term.field).ok_or(TextError::UnknownField(term.field))?;
            let FieldStatistics { num_docs, num_tokens, boost } = *statistics;
            if !(boost.is_finite() && boost >= 0.0) {
                return Err(TextError::Boost(term.field));
            }
            if num_docs == 0 || num_tokens == 0 {
                continue; // No live row has a token in this field.
            }
            let Some(postings) = field.postings(&term.text, IndexRecordOption::WithFreqs)? else { continue };
            if slot.is_none() {
                let average = num_tokens as f64 / num_docs as f64;
                held.slack = held.slack.max(slack_of(field, average));
                *slot = Some((field, LengthNorms::new(average)));
            }
            let weight = f64::from(boost) * idf(num_docs, term.doc_freq);
            held.terms.push(HeldTerm { position, field: term.field, weight, postings });
        }
        Ok(held)
    }

    fn lacks_a_group(&self, query: &KeywordQuery) -> bool {
        let asked: BTreeSet<u32> = query.terms.iter().map(|term| term.group).collect();
        let held: BTreeSet<u32> = self.terms.iter().map(|term| query.terms[term.position].group).collect();
        held.len() < asked.len()
    }

    fn candidate_terms(&self, query: &KeywordQuery, pruning: &Pruning) -> Vec<CandidateTerm> {
        let with_field = self.terms.iter().filter_map(|held| Some((held, self.fields[held.field].as_ref()?)));
        with_field
            .map(|(held, (field, _))| {
                let term = &query.terms[held.position];
                let FieldStatistics { num_docs, num_tokens, .. } = query.fields[held.field];
                CandidateTerm {
                    term: field.term(&term.text),
                    group: term.group,
                    num_docs,
                    num_tokens,
                    relative_weight: pruning.relative(held.weight),
                }
            })
            .collect()
    }

    /// Postings of all terms.
    fn num_postings(&self) -> u64 {
        self.terms.iter().map(|term| u64::from(term.postings.size_hint())).sum()
    }

    /// The best `n` of a few rows: each is looked up, where finding candidates would mean walking many postings.
    fn walk(
        mut self,
        rows: &RowSet,
        query: &KeywordQuery,
        n: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<(u32, f64)>, TextError> {
        let num_groups = query.terms.iter().map(|term| term.group).collect::<BTreeSet<u32>>().len();
        let mut best = Best { n, entries: BinaryHeap::new() };
        for (visited, row) in (1u32..).zip(rows.iter()) {
            if visited % CANDIDATES_PER_POLL == 0 && stop() {
                return Err(TextError::Stopped);
            }
            let mut groups = BTreeSet::new();
            let score = self.score(row, |position| groups.extend([query.terms[position].group]));
            let is_match = if query.require_all_groups { groups.len() == num_groups } else { !groups.is_empty() };
            if is_match {
                best.push(Entry { score, row });
            }
        }
        Ok(best.into_sorted())
    }

    /// The canonical score of a row; tells the places of its terms in the query. Rows must be asked for in ascending
    /// order.
    fn score(&mut self, row: u32, mut found: impl FnMut(usize)) -> f64 {
        let mut score = 0.0;
        for term in &mut self.terms {
            let mut at = term.postings.doc();
            if at < row {
                at = term.postings.seek(row);
            }
            if at == row
                && let Some((field, norms)) = &self.fields[term.field]
            {
                found(term.position);
                score += term_score(term.weight, term.postings.term_freq(), norms.of(field.lengths.fieldnorm_id(row)));
            }
        }
        score
    }
}

/// A row with its score, the greater the worse.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Entry {
    score: f64,
    row: u32,
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row))
    }
}

/// The best n rows so far.
struct Best {
    n: usize,
    /// The worst of them on top.
    entries: BinaryHeap<Entry>,
}

impl Best {
    fn push(&mut self, entry: Entry) {
        if self.entries.len() < self.n {
            self.entries.push(entry);
        } else if let Some(mut worst) = self.entries.peek_mut()
            && entry < *worst
        {
            *worst = entry;
        }
    }

    fn into_sorted(self) -> Vec<(u32, f64)> {
        self.entries.into_sorted_vec().into_iter().map(|entry| (entry.row, entry.score)).collect()
    }
}

/// One search under way.
struct Search<'a> {
    held: Held<'a>,
    pruning: Pruning,
    rows: Selection<'a>,
    n: usize,
    /// tantivy's n best scores so far, as bits: the same order, as none is negative.
    nth_scores: BinaryHeap<Reverse<u32>>,
    /// Rows with tantivy's scores, ascending.
    waiting: Vec<(u32, f32)>,
    best: Best,
    /// What tantivy's score of a row must exceed.
    score_threshold: f32,
    /// What tantivy's bounds must exceed.
    threshold: f32,
    num_candidates: u32,
    stop: &'a dyn Fn() -> bool,
    is_stopped: bool,
}

impl Search<'_> {
    fn run(&mut self, index: &TextIndex, candidates: Candidates) -> Result<(), TextError> {
        match candidates {
            Candidates::Pruned(weight) => {
                weight.for_each_pruning(NO_THRESHOLD, index.segment(), &mut |row, score| self.offer(row, score))?;
            }
            Candidates::Walked(weight) => {
                let mut scorer = weight.scorer(index.segment(), 1.0)?;
                let mut row = scorer.doc();
                while row != TERMINATED && !self.is_stopped {
                    let score = scorer.score();
                    self.offer(row, score);
                    row = scorer.advance();
                }
            }
        }
        Ok(())
    }

    /// Takes a candidate with tantivy's score, and returns what bounds must exceed from now on. tantivy offers rows in
    /// ascending order, on every path.
    fn offer(&mut self, row: u32, score: f32) -> f32 {
        self.num_candidates += 1;
        if self.num_candidates >= CANDIDATES_PER_POLL {
            self.num_candidates = 0;
            self.is_stopped = self.is_stopped || (self.stop)();
        }
        if self.is_stopped {
            return f32::INFINITY;
        }
        if score > self.score_threshold && self.rows.contains(row) {
            self.admit(row, score);
        }
        self.threshold
    }

    fn admit(&mut self, row: u32, score: f32) {
        self.waiting.push((row, score));
        let bits = Reverse(score.to_bits());
        if self.nth_scores.len() < self.n {
            self.nth_scores.push(bits);
        } else {
            match self.nth_scores.peek_mut() {
                Some(mut nth) if bits < *nth => *nth = bits,
                _ => {}
            }
        }
        if self.nth_scores.len() == self.n
            && let Some(Reverse(bits)) = self.nth_scores.peek()
        {
            let nth = f32::from_bits(*bits);
            self.score_threshold = self.pruning.score_threshold(nth);
            self.threshold = self.pruning.threshold(nth);
        }
        if self.waiting.len() >= self.n.saturating_add(BUFFERED_CANDIDATES) {
            self.settle();
        }
    }

    /// Scores the waiting rows that were not overtaken.
    fn settle(&mut self) {
        for (row, score) in std::mem::take(&mut self.waiting) {
            if score <= self.score_threshold {
                continue;
            }
            self.best.push(Entry { score: self.held.score(row, |_| ()), row });
        }
    }
}
