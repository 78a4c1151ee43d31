//! The rows of a segment: keys, positions, token counts, where payloads lie. Columns in one rkyv archive.
//!
//! INV-3: row number = order of folded keys = tantivy DocId, so ties are decided by row and a key is found by bisection.

use std::borrow::Cow;
use std::cmp::Ordering;

use antiphon_proto::key::KeyRule;
use rkyv::{Archive as RkyvArchive, Deserialize, Serialize, rancor};

use super::SegmentError;
use crate::mapped::{Archive, Blob};

/// Most bytes of all keys: what a string of rkyv holds.
const MAX_KEY_BYTES: usize = (1 << 30) - 1;

/// The columns as they are archived. Layout: docs/formats/segment.md.
#[derive(Debug, Default, RkyvArchive, Serialize, Deserialize)]
struct Columns {
    /// Keys as they were spelled, one after the other.
    keys: String,
    /// Where each key ends in `keys`.
    key_ends: Vec<u32>,
    /// The log position that wrote each row.
    seqs: Vec<u64>,
    /// For each text field, the tokens of each row.
    token_counts: Vec<Vec<u32>>,
    /// Where each row's payload block starts in the payload file.
    payload_blocks: Vec<u64>,
    /// Where each row's payload starts in its block, unpacked.
    payload_starts: Vec<u32>,
    /// Bytes of each row's payload, unpacked.
    payload_lens: Vec<u32>,
}

/// Where a payload lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadPosition {
    /// Where the block starts in the file, in bytes.
    pub block: u64,
    /// Where the payload starts in the unpacked block, in bytes.
    pub start: u32,
    /// Its bytes.
    pub len: u32,
}

/// Collects rows, in order of their folded keys.
#[derive(Default)]
pub(super) struct RowTableBuilder {
    columns: Columns,
}

impl RowTableBuilder {
    /// A table for so many text fields.
    pub(super) fn new(num_text_fields: usize) -> Self {
        Self { columns: Columns { token_counts: vec![Vec::new(); num_text_fields], ..Columns::default() } }
    }

    /// Adds the next row.
    ///
    /// # Errors
    /// [`SegmentError::TooLarge`] when the keys pass 1 GiB, the most that rkyv's strings hold.
    pub(super) fn add(
        &mut self,
        key: &str,
        seq: u64,
        tokens: &[u32],
        payload: PayloadPosition,
    ) -> Result<(), SegmentError> {
        let columns = &mut self.columns;
        if columns.keys.len() + key.len() > MAX_KEY_BYTES {
            return Err(SegmentError::TooLarge);
        }
        columns.keys.push_str(key);
        columns.key_ends.push(u32::try_from(columns.keys.len()).map_err(|_| SegmentError::TooLarge)?);
        columns.seqs.push(seq);
        for (column, count) in columns.token_counts.iter_mut().zip(tokens) {
            column.push(*count);
        }
        columns.payload_blocks.push(payload.block);
        columns.payload_starts.push(payload.start);
        columns.payload_lens.push(payload.len);
        Ok(())
    }

    /// Rows so far.
    pub(super) fn len(&self) -> usize {
        self.columns.seqs.len()
    }

    /// The archive's bytes.
    ///
    /// # Errors
    /// [`SegmentError::Rows`] when rkyv fails.
    pub(super) fn finish(self) -> Result<Vec<u8>, SegmentError> {
        let bytes = rkyv::to_bytes::<rancor::Error>(&self.columns).map_err(SegmentError::Rows)?;
        Ok(bytes.into_vec())
    }
}

/// The rows of an open segment.
pub struct RowTable {
    columns: Archive<Columns>,
    key_rule: KeyRule,
}

impl RowTable {
    /// Opens and checks an archive, which has token counts of at most so many text fields: every column as long as the segment has rows, every key within bounds.
    ///
    /// # Errors
    /// [`SegmentError::Rows`] or [`SegmentError::Mismatch`].
    pub fn open(blob: Blob, num_rows: u32, num_text_fields: usize, key_rule: KeyRule) -> Result<Self, SegmentError> {
        let table = Self { columns: Archive::open(blob).map_err(SegmentError::Rows)?, key_rule };
        let columns = table.columns.get();
        let rows = num_rows as usize;
        let lengths = [
            columns.key_ends.len(),
            columns.seqs.len(),
            columns.payload_blocks.len(),
            columns.payload_starts.len(),
            columns.payload_lens.len(),
        ];
        let counts_fit = columns.token_counts.len() <= num_text_fields
            && columns.token_counts.iter().all(|column| column.len() == rows);
        if lengths.iter().any(|len| *len != rows) || !counts_fit {
            return Err(SegmentError::Mismatch("rows: columns of other lengths"));
        }
        let keys: &str = &columns.keys;
        let mut start = 0;
        for end in columns.key_ends.iter().map(|end| end.to_native() as usize) {
            if keys.get(start..end).is_none() {
                return Err(SegmentError::Mismatch("rows: a key out of bounds"));
            }
            start = end;
        }
        Ok(table)
    }

    /// Rows, live and dead.
    pub fn num_rows(&self) -> u32 {
        self.columns.get().seqs.len() as u32
    }

    /// The key of a row as it was spelled; empty for a row beyond the end.
    pub fn key(&self, row: u32) -> &str {
        let columns = self.columns.get();
        let row = row as usize;
        let start =
            row.checked_sub(1).map_or(Some(0), |before| columns.key_ends.get(before).map(|end| end.to_native()));
        let end = columns.key_ends.get(row).map(|end| end.to_native());
        match (start, end) {
            (Some(start), Some(end)) => columns.keys.get(start as usize..end as usize).unwrap_or_default(),
            _ => "",
        }
    }

    /// The folded key of a row.
    pub fn folded_key(&self, row: u32) -> Cow<'_, str> {
        self.key_rule.fold(self.key(row))
    }

    /// The log position that wrote a row.
    pub fn seq(&self, row: u32) -> u64 {
        self.columns.get().seqs.get(row as usize).map_or(0, |seq| seq.to_native())
    }

    /// The text fields that it has token counts of.
    pub fn num_text_fields(&self) -> usize {
        self.columns.get().token_counts.len()
    }

    /// The tokens of a row in a text field.
    pub fn token_count(&self, field: usize, row: u32) -> u32 {
        let column = self.columns.get().token_counts.get(field);
        column.and_then(|column| column.get(row as usize)).map_or(0, |count| count.to_native())
    }

    /// Where a row's payload lies.
    pub fn payload(&self, row: u32) -> Option<PayloadPosition> {
        let columns = self.columns.get();
        let row = row as usize;
        Some(PayloadPosition {
            block: columns.payload_blocks.get(row)?.to_native(),
            start: columns.payload_starts.get(row)?.to_native(),
            len: columns.payload_lens.get(row)?.to_native(),
        })
    }

    /// The row of a folded key.
    pub fn find(&self, folded: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.num_rows());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.compare(middle, folded) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// How a row's folded key compares with another, without allocating where the key is ASCII.
    pub fn compare(&self, row: u32, folded: &str) -> Ordering {
        let key = self.key(row);
        match self.key_rule {
            KeyRule::CaseInsensitive if key.is_ascii() => {
                key.bytes().map(|byte| byte.to_ascii_uppercase()).cmp(folded.bytes())
            }
            KeyRule::CaseInsensitive | KeyRule::CaseSensitive => self.key_rule.fold(key).as_ref().cmp(folded),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn table(keys: &[&str]) -> Blob {
        let mut builder = RowTableBuilder::new(1);
        for (n, key) in keys.iter().enumerate() {
            let payload = PayloadPosition { block: n as u64, start: 1, len: 2 };
            builder.add(key, n as u64 + 10, &[n as u32], payload).unwrap();
        }
        Blob::from_bytes(&builder.finish().unwrap())
    }

    #[test]
    fn keys_are_found_in_any_spelling() {
        let keys = ["a", "B", "c", "straße", "Дом"];
        let rows = RowTable::open(table(&keys), 5, 1, KeyRule::CaseInsensitive).unwrap();
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(rows.key(n as u32), *key);
            assert_eq!(rows.find(&antiphon_proto::key::fold(key)), Some(n as u32));
            assert_eq!(rows.seq(n as u32), n as u64 + 10);
        }
        assert_eq!(rows.find("STRASSE"), None);
        assert_eq!(rows.key(5), "");
    }

    #[test]
    fn a_damaged_archive_is_an_error_and_no_panic() {
        let good = table(&["a", "b", "c"]);
        for len in 0..good.len() {
            let _ = RowTable::open(Blob::from_bytes(&good[..len]), 3, 1, KeyRule::CaseInsensitive);
        }
        for at in 0..good.len() {
            let mut bytes = good.to_vec();
            bytes[at] ^= 0xff;
            if let Ok(rows) = RowTable::open(Blob::from_bytes(&bytes), 3, 1, KeyRule::CaseInsensitive) {
                (0..4).for_each(|row| drop((rows.key(row).to_owned(), rows.payload(row), rows.token_count(0, row))));
            }
        }
        assert!(RowTable::open(good, 4, 1, KeyRule::CaseInsensitive).is_err());
    }
}
