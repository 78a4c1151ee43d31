//! A stretch of a view's rows in order of their folded keys, for exports and for deletions by filter.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{MatchingRows, Stop};
use crate::attributes::Selection;
use crate::error::NodeError;
use crate::segment::RowTable;
use crate::view::{RowAddress, View};

/// Rows between two looks at whether to stop.
const STOP_INTERVAL: usize = 1024;

/// Calls `take` with the matching rows whose folded keys come after `after`, ascending, until it says that it has enough.
/// Gives the last row's folded key where rows may be left.
///
/// # Errors
/// The stop's, and what `take` gives.
pub fn list_rows(
    view: &View,
    matching: &MatchingRows,
    after: &str,
    stop: &Stop,
    mut take: impl FnMut(RowAddress) -> Result<Take, NodeError>,
) -> Result<Option<String>, NodeError> {
    let sets = matching.of(view, stop)?;
    let segments: Vec<(&RowTable, Selection<'_>)> = view
        .segments()
        .enumerate()
        .map(|(place, segment)| {
            let rows = sets.and_then(|sets| sets.get(place)).map_or(segment.living(), |matches| matches.selection());
            (segment.segment().rows(), rows)
        })
        .collect();
    let head = |place: usize, from: u32| {
        let (table, rows) = segments.get(place)?;
        let row = (from..table.num_rows()).find(|row| rows.contains(*row))?;
        Some(Reverse((table.folded_key(row).into_owned(), place, row)))
    };
    let start = |place: usize| segments.get(place).map_or(0, |(table, _)| first_after(table, after));
    let mut heads: BinaryHeap<_> = (0..segments.len()).filter_map(|place| head(place, start(place))).collect();
    let mut visited = 0;
    while let Some(Reverse((folded, place, row))) = heads.pop() {
        visited += 1;
        if visited % STOP_INTERVAL == 0 && stop.is_set() {
            return Err(stop.error());
        }
        heads.extend(head(place, row + 1));
        match take(RowAddress { segment: place as u32, row })? {
            Take::Enough if !heads.is_empty() => return Ok(Some(folded)),
            Take::Enough => break,
            Take::More => {}
        }
    }
    Ok(None)
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// With the next row.
    More,
    /// That was the last to take.
    Enough,
}

/// The first row whose folded key is greater.
fn first_after(table: &RowTable, after: &str) -> u32 {
    if after.is_empty() {
        return 0;
    }
    let (mut low, mut high) = (0, table.num_rows());
    while low < high {
        let middle = low + (high - low) / 2;
        if table.compare(middle, after) == Ordering::Greater { high = middle } else { low = middle + 1 }
    }
    low
}
