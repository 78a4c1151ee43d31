//! What the integration tests share: servers in this process ([`local`]), a client that knows all services ([`client`]),
//! and short ways to write documents and requests ([`sample`]).

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

pub mod client;
pub mod local;
pub mod sample;
