//! A segment as one view sees it: which rows are dead, and the counts of those that live.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_store::SegmentId;
use roaring::RoaringBitmap;

use crate::attributes::Selection;
use crate::segment::{Segment, SegmentError};

/// Document frequencies kept; beyond, the cache starts over.
const MAX_CACHED_FREQUENCIES: usize = 10_000;

/// Counts of a text field over live rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldTotals {
    /// Rows with at least one token.
    pub num_docs: u64,
    /// Tokens.
    pub num_tokens: u64,
}

/// A segment with its tombstones. Never changes; more tombstones make another.
pub struct SegmentView {
    id: Option<SegmentId>,
    segment: Arc<Segment>,
    dead: Arc<RoaringBitmap>,
    totals: Vec<FieldTotals>,
    doc_freqs: Mutex<HashMap<(usize, String), u32>>,
}

impl SegmentView {
    /// A segment, sealed where it has an id, with its dead rows.
    pub fn new(id: Option<SegmentId>, segment: Arc<Segment>, dead: RoaringBitmap, num_text_fields: usize) -> Self {
        let mut dead = dead;
        dead.remove_range(segment.num_rows()..);
        let totals = (0..num_text_fields)
            .map(|field| {
                let live = (0..segment.num_rows()).filter(|row| !dead.contains(*row));
                totals_of(&segment, field, live)
            })
            .collect();
        Self { id, segment, dead: Arc::new(dead), totals, doc_freqs: Mutex::default() }
    }

    /// The same segment with more rows dead; the same view where they were dead already.
    pub fn with_dead(self: &Arc<Self>, rows: &RoaringBitmap) -> Arc<Self> {
        let mut died = rows - &*self.dead;
        died.remove_range(self.segment.num_rows()..);
        if died.is_empty() {
            return Arc::clone(self);
        }
        let totals = self
            .totals
            .iter()
            .enumerate()
            .map(|(field, before)| {
                let lost = totals_of(&self.segment, field, died.iter());
                FieldTotals {
                    num_docs: before.num_docs - lost.num_docs,
                    num_tokens: before.num_tokens - lost.num_tokens,
                }
            })
            .collect();
        Arc::new(Self {
            id: self.id.clone(),
            segment: Arc::clone(&self.segment),
            dead: Arc::new(&*self.dead | &died),
            totals,
            doc_freqs: Mutex::default(),
        })
    }

    /// The id of a sealed segment.
    pub fn id(&self) -> Option<&SegmentId> {
        self.id.as_ref()
    }

    /// The segment itself.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Dead rows.
    pub fn dead(&self) -> &Arc<RoaringBitmap> {
        &self.dead
    }

    /// The rows that live.
    pub fn living(&self) -> Selection<'_> {
        Selection::living(&self.dead)
    }

    /// Rows that live.
    pub fn num_docs(&self) -> u64 {
        u64::from(self.segment.num_rows()) - self.dead.len()
    }

    /// The live row of a folded key.
    pub fn find(&self, folded: &str) -> Option<u32> {
        self.segment.rows().find(folded).filter(|row| !self.dead.contains(*row))
    }

    /// Counts of a text field over live rows.
    pub fn totals(&self, field: usize) -> FieldTotals {
        self.totals.get(field).copied().unwrap_or_default()
    }

    /// Live rows that hold a term in a text field.
    ///
    /// # Errors
    /// [`SegmentError`] where the text index is damaged.
    pub fn doc_freq(&self, field: usize, term: &str) -> Result<u64, SegmentError> {
        let Some(text) = self.segment.text() else { return Ok(0) };
        let all = text.doc_freq(field, term)?;
        if self.dead.is_empty() || all == 0 {
            return Ok(u64::from(all));
        }
        let key = (field, term.to_owned());
        let cached = self.lock_doc_freqs().get(&key).copied();
        let live = match cached {
            Some(live) => live,
            None => {
                let live = all.saturating_sub(text.doc_freq_among(field, term, &self.dead)?);
                let mut cache = self.lock_doc_freqs();
                if cache.len() >= MAX_CACHED_FREQUENCIES {
                    cache.clear();
                }
                cache.insert(key, live);
                live
            }
        };
        Ok(u64::from(live))
    }

    fn lock_doc_freqs(&self) -> std::sync::MutexGuard<'_, HashMap<(usize, String), u32>> {
        self.doc_freqs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn totals_of(segment: &Segment, field: usize, rows: impl Iterator<Item = u32>) -> FieldTotals {
    let mut totals = FieldTotals::default();
    for row in rows {
        let tokens = segment.token_count(field, row);
        totals.num_docs += u64::from(tokens > 0);
        totals.num_tokens += u64::from(tokens);
    }
    totals
}
