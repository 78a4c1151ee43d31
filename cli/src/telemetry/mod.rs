//! What a server tells of itself: spans to a collector (`traces`), and numbers, recorded with the `metrics` crate wherever they arise, read by Prometheus.
//!
//! Every metric is described in docs/metrics.md; a test holds the two together.

mod endpoint;
mod process;
mod recorder;
mod rpc_layer;
mod traces;

pub(crate) use endpoint::{Endpoint, set_ready};
pub(crate) use rpc_layer::RpcLayer;
pub(crate) use traces::Traces;
