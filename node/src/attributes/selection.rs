//! Which rows of a segment may be found: what tombstones and a filter leave.

use roaring::RoaringBitmap;

use super::RowSet;

/// The rows that a search may find.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// Every row.
    All,
    /// Every row but these, which are dead.
    Except(&'a RoaringBitmap),
    /// These alone: they live and meet the filter.
    Only {
        /// The rows.
        rows: &'a RowSet,
        /// How many they are.
        len: u32,
    },
}

impl<'a> Selection<'a> {
    /// Every row but the dead ones.
    pub fn living(dead: &'a RoaringBitmap) -> Self {
        if dead.is_empty() { Selection::All } else { Selection::Except(dead) }
    }

    /// These alone.
    pub fn only(rows: &'a RowSet) -> Self {
        Selection::Only { rows, len: rows.len() }
    }

    /// Whether every row may be found.
    pub fn is_all(self) -> bool {
        matches!(self, Selection::All)
    }

    /// Whether a row may be found.
    pub fn contains(self, row: u32) -> bool {
        match self {
            Selection::All => true,
            Selection::Except(dead) => !dead.contains(row),
            Selection::Only { rows, .. } => rows.contains(row),
        }
    }

    /// How many of a segment's rows may be found.
    pub fn len(self, num_rows: u32) -> u32 {
        match self {
            Selection::All => num_rows,
            Selection::Except(dead) => num_rows - dead.range_cardinality(..num_rows) as u32,
            Selection::Only { len, .. } => len,
        }
    }
}
