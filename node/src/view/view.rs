//! The view itself.

use std::sync::Arc;

use antiphon_proto::internal::ViewName;
use antiphon_store::SegmentId;

use super::segment_view::{FieldTotals, SegmentView};

/// A row of a view: the segment's place in the view and the row in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowAddress {
    /// Place among the view's segments, sealed ones first.
    pub segment: u32,
    /// Row in the segment.
    pub row: u32,
}

impl RowAddress {
    /// The address as coordinators pass it back.
    pub fn encode(self) -> u64 {
        u64::from(self.segment) << 32 | u64::from(self.row)
    }

    /// Reads an address.
    pub fn decode(encoded: u64) -> Self {
        Self { segment: (encoded >> 32) as u32, row: encoded as u32 }
    }
}

/// Deletions of one batch: log position and folded key.
pub(super) type Deletes = Arc<Vec<(u64, String)>>;

/// One consistent state of a shard: everything written up to `seq`.
#[derive(Clone)]
pub struct View {
    /// The last log position applied.
    pub seq: u64,
    /// The manifest that the sealed segments are from; 0 before the first.
    pub manifest_version: u64,
    /// Every log entry up to here is in the sealed segments.
    pub covered_seq: u64,
    /// Sealed segments, in the manifest's order.
    pub sealed: Vec<Arc<SegmentView>>,
    /// Live segments, oldest first: what the log holds beyond `covered_seq`.
    pub live: Vec<Arc<SegmentView>>,
    /// Sealed segments that are damaged and so not searched.
    pub quarantined: Vec<SegmentId>,
    pub(super) deletes: Vec<Deletes>,
}

impl View {
    /// A shard that nobody wrote to.
    pub fn empty() -> Self {
        Self {
            seq: 0,
            manifest_version: 0,
            covered_seq: 0,
            sealed: Vec::new(),
            live: Vec::new(),
            quarantined: Vec::new(),
            deletes: Vec::new(),
        }
    }

    /// The view's name.
    pub fn name(&self) -> ViewName {
        ViewName { seq: self.seq, manifest_version: self.manifest_version }
    }

    /// All segments, sealed ones first; a [`RowAddress`] counts in this order.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<SegmentView>> {
        self.sealed.iter().chain(&self.live)
    }

    /// The segment at a place.
    pub fn segment(&self, place: u32) -> Option<&Arc<SegmentView>> {
        self.segments().nth(place as usize)
    }

    /// Where the live row of a folded key is.
    pub fn find(&self, folded: &str) -> Option<RowAddress> {
        // The newest segments first: that is where recently written keys are.
        let count = self.sealed.len() + self.live.len();
        let newest_first = self.live.iter().rev().chain(self.sealed.iter().rev());
        newest_first.enumerate().find_map(|(back, segment)| {
            let row = segment.find(folded)?;
            Some(RowAddress { segment: (count - 1 - back) as u32, row })
        })
    }

    /// Documents that a search can find.
    pub fn num_docs(&self) -> u64 {
        self.segments().map(|segment| segment.num_docs()).sum()
    }

    /// Rows that are dead and not yet dropped by a merge.
    pub fn num_deleted(&self) -> u64 {
        self.segments().map(|segment| segment.dead().len()).sum()
    }

    /// Bytes of the sealed segments' files.
    pub fn size_bytes(&self) -> u64 {
        self.sealed.iter().map(|segment| segment.segment().size_bytes()).sum()
    }

    /// Rows and deletions not yet sealed.
    pub fn num_unsealed(&self) -> u64 {
        let rows: u64 = self.live.iter().map(|segment| u64::from(segment.segment().num_rows())).sum();
        let deletes: u64 = self.deletes.iter().map(|batch| batch.len() as u64).sum();
        rows + deletes
    }

    /// Bytes of the live segments in memory.
    pub fn live_bytes(&self) -> u64 {
        self.live.iter().map(|segment| segment.segment().size_bytes()).sum()
    }

    /// Counts of a text field over live rows of all segments.
    pub fn totals(&self, field: usize) -> FieldTotals {
        self.segments().fold(FieldTotals::default(), |sum, segment| {
            let totals = segment.totals(field);
            FieldTotals { num_docs: sum.num_docs + totals.num_docs, num_tokens: sum.num_tokens + totals.num_tokens }
        })
    }
}
