//! Searching a view: plans, windows, and the bounded pool that the work runs on.

mod filter_cache;
mod listing;
mod matching;
mod plan;
mod pool;
mod stop;
mod windows;

pub use filter_cache::FilterCache;
pub use listing::{Take, list_rows};
pub use matching::MatchingRows;
pub use plan::{plan_keywords, with_counts};
pub use pool::SearchPool;
pub use stop::Stop;
pub use windows::{Found, keyword_window, vector_window};
