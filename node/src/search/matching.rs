//! The rows of a view that meet the filter of a search: found once, by whichever of its queries runs first, or by an
//! earlier search with the same filter.

use std::sync::{Arc, OnceLock};

use antiphon_proto::filter::{self, Condition};
use antiphon_proto::v1::Filter;

use super::{FilterCache, Stop};
use crate::attributes::{Matches, evaluate};
use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::view::{SegmentView, View};

/// A filter over the segments of one view.
#[derive(Debug)]
pub struct MatchingRows {
    /// Absent: every row matches.
    condition: Option<Arc<Condition>>,
    num_vector_fields: usize,
    cache: Arc<FilterCache>,
    /// For each segment the living rows that match; nothing where the search was stopped meanwhile.
    sets: OnceLock<Option<Vec<Arc<Matches>>>>,
}

impl MatchingRows {
    /// Resolves the filter of a request.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] where it does not fit the schema.
    pub fn new(filter: Option<&Filter>, schema: &ShardSchema, cache: &Arc<FilterCache>) -> Result<Self, NodeError> {
        let resolve = |sent| filter::resolve(sent, &schema.attributes, "filter").map(Arc::new);
        let condition = filter.map(resolve).transpose();
        let condition = condition.map_err(|error| NodeError::Invalid(error.message().to_owned()))?;
        let num_vector_fields = schema.vectors.len();
        Ok(Self { condition, num_vector_fields, cache: Arc::clone(cache), sets: OnceLock::new() })
    }

    /// For each segment of the view the living rows that match, or `None` where there is no filter. Every call must be
    /// with the same view.
    ///
    /// # Errors
    /// The stop's.
    pub fn of(&self, view: &View, stop: &Stop) -> Result<Option<&[Arc<Matches>]>, NodeError> {
        let Some(condition) = &self.condition else { return Ok(None) };
        // Another query of the same search waits here for the first; that one is at work on a thread.
        let find = || view.segments().map(|segment| self.matches_of(condition, segment, stop)).collect();
        self.sets.get_or_init(find).as_deref().map(Some).ok_or_else(|| stop.error())
    }

    fn matches_of(&self, condition: &Arc<Condition>, view: &SegmentView, stop: &Stop) -> Option<Arc<Matches>> {
        let (segment, dead) = (view.segment(), view.dead());
        let is_cached = self.cache.keeps(segment.num_rows());
        if is_cached && let Some(matches) = self.cache.get(segment.number(), condition, dead) {
            return Some(matches);
        }
        let mut rows = evaluate(condition, segment.attributes(), segment.num_rows(), &|| stop.is_set())?;
        rows.remove_all(dead);
        let matches = Arc::new(Matches::new(rows, self.num_vector_fields));
        if is_cached {
            self.cache.put(segment.number(), condition, dead, &matches);
        }
        Some(matches)
    }
}
