//! Antiphon's coordinator: takes the public API, asks the shards for their windows, lets the channels take turns, cuts the
//! page. Stateless but for its copy of the catalog.
//!
//! Decisions are pure functions: [`page`], [`fusion`], [`validate`]. [`search`] runs them;
//! [`services`] are thin adapters from gRPC.

mod admission;
mod aliases;
pub mod cluster;
pub mod collections;
pub mod config;
pub mod coordinator;
pub mod embed;
pub mod fusion;
pub mod page;
pub mod search;
pub mod services;
pub mod status_layer;
pub mod token;
pub mod validate;

pub use cluster::{Cluster, NodeClient, NodeHandle};
pub use config::CoordinatorConfig;
pub use coordinator::Coordinator;
