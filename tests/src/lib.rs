//! What the integration tests share: servers in this process ([`local`]) and as processes ([`cluster`]), over TLS and tokens where that is asked for
//! ([`secure`]), a memory of what
//! clients were promised ([`oracle`]), a client that knows all services ([`client`]),
//! short ways to write documents and requests ([`sample`]), random ones ([`random`]), and a [`model`] of the right answers to
//! them ([`ask`]).

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

pub mod ask;
pub mod client;
pub mod cluster;
pub mod collector;
pub mod contract;
pub mod corpus;
pub mod endpoint;
pub mod filters;
pub mod local;
pub mod model;
pub mod models;
pub mod oracle;
pub mod random;
pub mod raw;
pub mod sample;
pub mod secure;
