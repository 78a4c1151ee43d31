//! What the benchmarks share: data, raw indexes to compare with, a server as a child process, measuring, reporting.
//!
//! Not part of the product, and nothing of it knows more than the public API and the libraries compared with. A figure
//! of a busy machine says little; so whatever is compared is measured in turns, and CPU time is told beside time.

pub mod child_server;
pub mod client;
pub mod corpus;
pub mod documents;
pub mod drive;
pub mod exact;
pub mod import;
pub mod judged;
pub mod made;
pub mod npy;
pub mod proc;
pub mod queries;
pub mod raw_graph;
pub mod raw_text;
pub mod report;
pub mod rest;
pub mod stats;

/// Any failure: a benchmark has nothing to do but to end and say why.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What may fail.
pub type Outcome<T> = Result<T, Failure>;

/// A runtime of one thread: what generates load must take little of what it measures.
///
/// # Errors
/// Where the system refuses.
pub fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
