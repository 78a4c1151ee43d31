//! How several ranked lists become one ranking.
//!
//! Pure functions, generic over what a match is and over the key that tells matches apart. Lists come best first,
//! merged over shards already, so fusion happens once, and each list truncated to the window that
//! [`PageCut`](crate::page::PageCut) names. Cutting the page is not done here.
//!
//! - [`take_turns`]: the lists place their matches one at a time. Places alone matter.
//! - [`ScoreFusion`]: every match gets one score out of its scores or ranks in all lists.

mod error;
mod place;
mod scale;
mod score_fusion;
mod turn_taking;
mod weights;

pub use error::FusionError;
pub use place::{Place, places_by_key};
pub use score_fusion::{Fused, ScoreFusion};
pub use turn_taking::take_turns;
