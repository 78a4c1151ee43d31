//! From merged lists to the page's matches, each with its places.

use std::collections::HashMap;

use super::merge::Hit;
use super::request::{Method, SearchRequest};
use crate::fusion::{Place, places_by_key, take_turns};
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::v1;

/// A match on the page, without its document.
pub(super) struct Ranked<'l> {
    /// Its hit in the list that placed it.
    pub(super) hit: &'l Hit,
    /// Its score.
    pub(super) score: f64,
    /// The list that placed it, or the first that found it.
    pub(super) list: usize,
    /// All its places.
    pub(super) places: Vec<v1::Place>,
}

/// The page, and whether a next one exists and holds a match.
pub(super) fn rank<'l>(request: &SearchRequest, lists: &'l [Vec<Hit>]) -> Result<(Vec<Ranked<'l>>, bool), ApiError> {
    match &request.method {
        Method::Turns(order) => Ok(by_turns(request, lists, order)),
        Method::Scores(fusion, weights) => {
            let refs: Vec<Vec<&Hit>> = lists.iter().map(|list| list.iter().collect()).collect();
            let mut fused = fusion
                .fuse(&refs, weights, |hit: &&'l Hit| hit.folded.as_str(), |hit| hit.score)
                .map_err(|error| ApiError::field(ErrorKind::ArgumentInvalid, "fusion.weights", error.to_string()))?;
            if let Some(least) = request.min_score {
                fused.retain(|fused| fused.score >= least);
            }
            let page = request.cut.cut(&fused);
            let matches = page
                .matches
                .iter()
                .filter_map(|fused| {
                    let first = fused.places.first()?;
                    Some(Ranked {
                        hit: first.of(lists),
                        score: fused.score,
                        list: first.list,
                        places: places(request, lists, &fused.places),
                    })
                })
                .collect();
            Ok((matches, page.has_more))
        }
    }
}

fn by_turns<'l>(request: &SearchRequest, lists: &'l [Vec<Hit>], order: &[usize]) -> (Vec<Ranked<'l>>, bool) {
    let in_order: Vec<Vec<&Hit>> = order.iter().map(|index| lists[*index].iter().collect()).collect();
    let ranking = take_turns(&in_order, |hit: &&'l Hit| Some(hit.folded.as_str()), request.cut.window());
    let page = request.cut.cut(&ranking);
    let all: HashMap<&str, Vec<Place>> = {
        let refs: Vec<Vec<&Hit>> = lists.iter().map(|list| list.iter().collect()).collect();
        places_by_key(&refs, |hit: &&'l Hit| Some(hit.folded.as_str()))
    };
    let matches = page
        .matches
        .iter()
        .map(|place| {
            let list = order[place.list];
            let hit = Place { list, rank: place.rank }.of(lists);
            let found = all.get(hit.folded.as_str()).map(Vec::as_slice).unwrap_or_default();
            Ranked { hit, score: hit.score, list, places: places(request, lists, found) }
        })
        .collect();
    (matches, page.has_more)
}

fn places(request: &SearchRequest, lists: &[Vec<Hit>], places: &[Place]) -> Vec<v1::Place> {
    places
        .iter()
        .map(|place| v1::Place {
            channel: request.lists[place.list].channel as i32,
            query: request.lists[place.list].query,
            rank: place.rank as u32,
            score: place.of(lists).score,
        })
        .collect()
}
