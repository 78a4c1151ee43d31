//! One attribute of a segment, open for filters: distinct values in order, and the rows that have each.
//!
//! Layout: docs/formats/segment.md.

use std::ops::{Bound, Range};

use antiphon_proto::v1::AttributeType;
use rkyv::{Archive as RkyvArchive, Deserialize, Serialize, rancor};

use super::RowSet;
use crate::mapped::{Archive, Blob};

/// The column as it is archived.
#[derive(Debug, Default, RkyvArchive, Serialize, Deserialize)]
pub(super) struct StoredColumn {
    /// The attribute's type, by its number in the API.
    pub(super) attribute_type: u32,
    /// The distinct values' sortable bytes, ascending, one after the other.
    pub(super) value_bytes: Vec<u8>,
    /// Where each value ends in `value_bytes`.
    pub(super) value_ends: Vec<u32>,
    /// Where the rows of each value end in `rows`.
    pub(super) row_ends: Vec<u32>,
    /// The rows of each value, ascending.
    pub(super) rows: Vec<u32>,
    /// Rows where the attribute is there and not null, ascending.
    pub(super) present: Vec<u32>,
}

/// Why a column could not be built or opened.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// The archive is damaged, or could not be written.
    #[error("the archive of an attribute failed")]
    Archive(#[source] rancor::Error),
    /// Its parts do not fit together.
    #[error("an attribute's column: {0}")]
    Mismatch(&'static str),
    /// More values than the format holds.
    #[error("an attribute has more values than a segment holds")]
    TooLarge,
}

/// An open column.
pub struct Column(Archive<StoredColumn>);

impl Column {
    /// Opens and checks a column: values ascend, rows ascend within each value and lie within the segment.
    ///
    /// # Errors
    /// [`ColumnError::Archive`], [`ColumnError::Mismatch`].
    pub fn open(blob: Blob, num_rows: u32, attribute_type: AttributeType) -> Result<Self, ColumnError> {
        let column = Self(Archive::open(blob).map_err(ColumnError::Archive)?);
        let stored = column.0.get();
        if stored.attribute_type.to_native() != attribute_type as u32 {
            return Err(ColumnError::Mismatch("of another type than the schema's"));
        }
        let num_values = stored.value_ends.len();
        if stored.row_ends.len() != num_values {
            return Err(ColumnError::Mismatch("lists of other lengths"));
        }
        let ends = |list: &rkyv::vec::ArchivedVec<rkyv::rend::u32_le>, whole: usize| {
            list.iter().map(|end| end.to_native()).is_sorted()
                && list.last().map_or(0, |end| end.to_native()) as usize == whole
        };
        if !ends(&stored.value_ends, stored.value_bytes.len()) || !ends(&stored.row_ends, stored.rows.len()) {
            return Err(ColumnError::Mismatch("ends that do not fit"));
        }
        if (1..num_values).any(|place| column.value(place - 1) >= column.value(place)) {
            return Err(ColumnError::Mismatch("values that do not ascend"));
        }
        let fits = |rows: &[rkyv::rend::u32_le]| {
            rows.is_sorted_by(|a, b| a.to_native() < b.to_native())
                && rows.last().is_none_or(|row| row.to_native() < num_rows)
        };
        if !fits(&stored.present) || (0..num_values).any(|place| !fits(column.rows(place..place + 1))) {
            return Err(ColumnError::Mismatch("rows that do not ascend, or lie beyond the segment"));
        }
        Ok(column)
    }

    /// Adds the rows that have a value.
    pub fn add_equal(&self, value: &[u8], to: &mut RowSet) {
        let place = self.lower_bound(value);
        if self.value(place) == Some(value) {
            self.add(place..place + 1, to);
        }
    }

    /// Adds the rows that have a value between bounds.
    pub fn add_range(&self, low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>, to: &mut RowSet) {
        let from = match low {
            Bound::Included(value) => self.lower_bound(value),
            Bound::Excluded(value) => self.upper_bound(value),
            Bound::Unbounded => 0,
        };
        let until = match high {
            Bound::Included(value) => self.upper_bound(value),
            Bound::Excluded(value) => self.lower_bound(value),
            Bound::Unbounded => self.num_values(),
        };
        self.add(from..until, to);
    }

    /// Adds the rows where the attribute is there and not null.
    pub fn add_present(&self, to: &mut RowSet) {
        self.0.get().present.iter().for_each(|row| to.insert(row.to_native()));
    }

    fn num_values(&self) -> usize {
        self.0.get().value_ends.len()
    }

    fn add(&self, places: Range<usize>, to: &mut RowSet) {
        self.rows(places).iter().for_each(|row| to.insert(row.to_native()));
    }

    /// The rows of adjacent values; none for places that are not there.
    fn rows(&self, places: Range<usize>) -> &[rkyv::rend::u32_le] {
        let stored = self.0.get();
        stored.rows.get(span(&stored.row_ends, places)).unwrap_or_default()
    }

    fn value(&self, place: usize) -> Option<&[u8]> {
        let stored = self.0.get();
        if place >= self.num_values() {
            return None;
        }
        stored.value_bytes.get(span(&stored.value_ends, place..place + 1))
    }

    /// The place of the first value that is not less.
    fn lower_bound(&self, value: &[u8]) -> usize {
        self.bisect(|found| found < value)
    }

    /// The place of the first value that is greater.
    fn upper_bound(&self, value: &[u8]) -> usize {
        self.bisect(|found| found <= value)
    }

    fn bisect(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.num_values());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.value(middle).is_some_and(&is_before) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// What lies between the ends of two places; empty where there is no such stretch.
fn span(ends: &[rkyv::rend::u32_le], places: Range<usize>) -> Range<usize> {
    let end = |count: usize| match count.checked_sub(1) {
        None => Some(0),
        Some(last) => ends.get(last).map(|end| end.to_native() as usize),
    };
    match (end(places.start), end(places.end)) {
        (Some(from), Some(to)) if from <= to => from..to,
        _ => 0..0,
    }
}
