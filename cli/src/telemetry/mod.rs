//! What a server tells of itself as numbers: recorded with the `metrics` crate wherever they arise, read by Prometheus.
//!
//! Every metric is described in docs/metrics.md; a test holds the two together.

mod endpoint;
mod process;
mod recorder;
mod rpc_layer;

pub(crate) use endpoint::{Endpoint, set_ready};
pub(crate) use rpc_layer::RpcLayer;
