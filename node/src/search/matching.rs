//! The rows of a view that meet the filter of a search: found once, by whichever of its queries runs first.

use std::sync::OnceLock;

use antiphon_proto::filter::{self, Condition};
use antiphon_proto::v1::Filter;

use super::Stop;
use crate::attributes::{RowSet, evaluate};
use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::view::{SegmentView, View};

/// A filter over the segments of one view.
#[derive(Debug)]
pub struct MatchingRows {
    /// Absent: every row matches.
    condition: Option<Condition>,
    /// For each segment the living rows that match; nothing where the search was stopped meanwhile.
    sets: OnceLock<Option<Vec<RowSet>>>,
}

impl MatchingRows {
    /// Resolves the filter of a request.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] where it does not fit the schema.
    pub fn new(filter: Option<&Filter>, schema: &ShardSchema) -> Result<Self, NodeError> {
        let resolve = |sent| filter::resolve(sent, &schema.attributes, "filter");
        let condition = filter.map(resolve).transpose();
        let condition = condition.map_err(|error| NodeError::Invalid(error.message().to_owned()))?;
        Ok(Self { condition, sets: OnceLock::new() })
    }

    /// For each segment of the view the living rows that match, or `None` where there is no filter. Every call must be
    /// with the same view.
    ///
    /// # Errors
    /// The stop's.
    pub fn of(&self, view: &View, stop: &Stop) -> Result<Option<&[RowSet]>, NodeError> {
        let Some(condition) = &self.condition else { return Ok(None) };
        // Another query of the same search waits here for the first; that one is at work on a thread.
        let sets = self.sets.get_or_init(|| view.segments().map(|segment| rows_of(condition, segment, stop)).collect());
        sets.as_deref().map(Some).ok_or_else(|| stop.error())
    }
}

fn rows_of(condition: &Condition, segment: &SegmentView, stop: &Stop) -> Option<RowSet> {
    let (segment, dead) = (segment.segment(), segment.dead());
    let mut rows = evaluate(condition, segment.attributes(), segment.num_rows(), &|| stop.is_set())?;
    rows.remove_all(dead);
    Some(rows)
}
