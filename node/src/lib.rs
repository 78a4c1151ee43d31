//! Antiphon's shard node: holds segments and a live part, answers windows, appends to the log.
//!
//! - [`Node`] holds shards; [`NodeServer`] serves it over gRPC.
//! - [`shard`]: one shard's log, views and background work. [`view`]: consistent states and the steps between them.
//! - [`search`]: windows over a view. [`segment`]: immutable index units.
//! - [`text`] is the only place that knows tantivy, [`graph`] the only one that knows usearch, [`mapped`] the only one that
//!   maps files.

pub mod attributes;
pub mod cache;
mod cluster;
pub mod config;
pub mod error;
mod gauges;
pub mod graph;
pub mod mapped;
mod node;
mod project;
pub mod schema;
pub mod search;
pub mod segment;
mod service;
pub mod shard;
pub mod text;
pub mod vectors;
pub mod view;

pub use config::NodeConfig;
pub use error::NodeError;
pub use node::Node;
pub use service::NodeServer;
