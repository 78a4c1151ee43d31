//! Searching a view: plans, windows, and the bounded pool that the work runs on.

mod plan;
mod pool;
mod stop;
mod windows;

pub use plan::{plan_keywords, with_counts};
pub use pool::SearchPool;
pub use stop::Stop;
pub use windows::{Found, keyword_window, vector_window};
