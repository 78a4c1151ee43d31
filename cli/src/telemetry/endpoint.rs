//! `/metrics` over HTTP, and `/readyz` for probes that speak no gRPC over TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon_node::Node;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::{process, recorder, rpc_layer};
use crate::failure::Failure;

/// How often recorded durations are put into their buckets, so that they don't pile up where nobody reads them.
const UPKEEP: Duration = Duration::from_secs(5);
/// Connections that wait; a scraper needs one.
const MAX_CONNECTIONS_AT_ONCE: usize = 8;

/// The content type of Prometheus' text format.
const TEXT: [(axum::http::HeaderName, &str); 1] =
    [(axum::http::header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];

/// Whether the process takes calls.
static IS_READY: AtomicBool = AtomicBool::new(false);

/// Says whether the process takes calls, as grpc.health.v1 does.
pub(crate) fn set_ready(is_ready: bool) {
    IS_READY.store(is_ready, Ordering::Relaxed);
}

/// Serves `/metrics` and `/readyz` until it is dropped.
pub(crate) struct Endpoint(Vec<JoinHandle<()>>);

#[derive(Clone)]
struct Source {
    handle: PrometheusHandle,
    node: Option<Arc<Node>>,
}

impl Endpoint {
    /// Binds an address and serves what is recorded from now on; `node` is this process's own. Nothing where there is no
    /// address.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub(crate) async fn start(address: Option<SocketAddr>, node: Option<Arc<Node>>) -> Result<Option<Self>, Failure> {
        let Some(address) = address else { return Ok(None) };
        let bind = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            Ok::<_, std::io::Error>((listener, address))
        };
        let (listener, address) =
            bind.await.map_err(|error| Failure::of(format!("cannot listen on {address} for metrics"), &error))?;
        let handle = recorder::install()?;
        let upkeep = handle.clone();
        let router = axum::Router::new()
            .route("/metrics", get(render))
            .route("/readyz", get(ready))
            .with_state(Source { handle, node });
        let server = Server::builder()
            .accept_http1(true)
            .concurrency_limit_per_connection(MAX_CONNECTIONS_AT_ONCE)
            .timeout(Duration::from_secs(10))
            .add_routes(Routes::from(router))
            .serve_with_incoming(TcpIncoming::from(listener));
        tracing::info!(url = format!("http://{address}/metrics"), "metrics");
        let server = tokio::spawn(async move {
            if let Err(error) = server.await {
                tracing::error!(%error, "metrics are served no longer");
            }
        });
        let upkeep = tokio::spawn(async move {
            loop {
                tokio::time::sleep(UPKEEP).await;
                upkeep.run_upkeep();
            }
        });
        Ok(Some(Self(vec![server, upkeep])))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

async fn ready() -> (StatusCode, &'static str) {
    match IS_READY.load(Ordering::Relaxed) {
        true => (StatusCode::OK, "ready\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
    }
}

async fn render(State(source): State<Source>) -> impl axum::response::IntoResponse {
    process::record();
    rpc_layer::record();
    if let Some(node) = &source.node {
        node.record_gauges().await;
    }
    // Again and again, since a gauge that nothing sets is forgotten.
    metrics::gauge!("antiphon_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    (TEXT, source.handle.render())
}
