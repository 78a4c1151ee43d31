//! Builds a column from the values of rows in ascending order.

use std::collections::HashMap;

use antiphon_proto::attribute;
use antiphon_proto::v1::{AttributeType, Value};
use rkyv::rancor;

use super::ColumnError;
use super::column::StoredColumn;

/// Most bytes of distinct values, and most pairs of value and row: what an archive's 32-bit offsets reach.
const MAX_BYTES: usize = 1 << 30;
const MAX_PAIRS: usize = 1 << 28;

/// Collects the values of one attribute.
pub struct ColumnBuilder {
    attribute_type: AttributeType,
    ids: HashMap<Vec<u8>, u32>,
    bytes: usize,
    /// Value ids and rows, in order of rows.
    pairs: Vec<(u32, u32)>,
    present: Vec<u32>,
}

impl ColumnBuilder {
    /// A column without rows.
    pub fn new(attribute_type: AttributeType) -> Self {
        Self { attribute_type, ids: HashMap::new(), bytes: 0, pairs: Vec::new(), present: Vec::new() }
    }

    /// Adds the next row's value. Elements of another type are left out: writers refuse them, but a document may have
    /// been stored before its field became an attribute.
    ///
    /// # Errors
    /// [`ColumnError::TooLarge`].
    pub fn add(&mut self, row: u32, value: &Value) -> Result<(), ColumnError> {
        if attribute::is_present(value) {
            self.present.push(row);
        }
        let mut ids = Vec::new();
        for element in attribute::elements(value) {
            let Ok(bytes) = attribute::sortable(element, self.attribute_type) else { continue };
            let next = self.ids.len() as u32;
            let len = bytes.len();
            let id = *self.ids.entry(bytes).or_insert(next);
            self.bytes += if id == next { len } else { 0 };
            ids.push(id);
        }
        // An element twice counts once.
        ids.sort_unstable();
        ids.dedup();
        self.pairs.extend(ids.into_iter().map(|id| (id, row)));
        if self.bytes > MAX_BYTES || self.pairs.len() > MAX_PAIRS { Err(ColumnError::TooLarge) } else { Ok(()) }
    }

    /// The archive's bytes.
    ///
    /// # Errors
    /// [`ColumnError::Archive`] when rkyv fails.
    pub fn finish(self) -> Result<Vec<u8>, ColumnError> {
        let mut values: Vec<(Vec<u8>, u32)> = self.ids.into_iter().collect();
        values.sort_unstable();
        let mut place_of = vec![0; values.len()];
        (0u32..).zip(&values).for_each(|(place, (_, id))| place_of[*id as usize] = place);
        let mut pairs: Vec<(u32, u32)> = self.pairs.into_iter().map(|(id, row)| (place_of[id as usize], row)).collect();
        pairs.sort_unstable();
        let mut stored = StoredColumn {
            attribute_type: self.attribute_type as u32,
            present: self.present,
            ..StoredColumn::default()
        };
        let mut pairs = pairs.into_iter().peekable();
        for (place, (bytes, _)) in (0u32..).zip(values) {
            stored.value_bytes.extend(bytes);
            stored.value_ends.push(stored.value_bytes.len() as u32);
            while let Some((_, row)) = pairs.next_if(|(of, _)| *of == place) {
                stored.rows.push(row);
            }
            stored.row_ends.push(stored.rows.len() as u32);
        }
        Ok(rkyv::to_bytes::<rancor::Error>(&stored).map_err(ColumnError::Archive)?.into_vec())
    }
}
