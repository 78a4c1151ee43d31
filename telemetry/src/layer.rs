//! A span for each call that a server answers, if it is traced.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use opentelemetry::trace::TraceContextExt as _;
use tonic::Code;
use tonic::body::Body;
use tonic::transport::server::TcpConnectInfo;
use tower::{Layer, Service};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::call_end::CallEnd;
use crate::propagate::extract;
use crate::span::{TARGET, failed, is_on};

/// Calls between members begin no traces: they are parts of others, or of none.
const INTERNAL: &str = "/antiphon.internal.";
/// Health is asked for again and again, and tells nothing.
const HEALTH: &str = "/grpc.health.";

/// Wraps a server's services.
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceLayer {
    sample_share: f64,
}

impl TraceLayer {
    /// Traces this share of the calls whose callers did not say whether they are to be traced, 0 to 1.
    pub fn new(sample_share: f64) -> Self {
        Self { sample_share }
    }

    fn span<T>(self, request: &Request<T>) -> Option<Span> {
        let path = request.uri().path();
        if !is_on() || path.starts_with(HEALTH) {
            return None;
        }
        let parent = extract(request.headers());
        let is_sampled = match &parent {
            Some(parent) => parent.span().span_context().is_sampled(),
            None => !path.starts_with(INTERNAL) && rand::random::<f64>() < self.sample_share,
        };
        if !is_sampled {
            return None;
        }
        let name = path.trim_start_matches('/');
        let (service, method) = name.rsplit_once('/').unwrap_or((name, ""));
        let client = request.extensions().get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr);
        let span = tracing::info_span!(
            target: TARGET,
            parent: None,
            "call",
            otel.name = name,
            otel.kind = "server",
            otel.status_code = Empty,
            rpc.system = "grpc",
            rpc.service = service,
            rpc.method = method,
            rpc.grpc.status_code = Empty,
            client.address = client.map(|client| client.ip().to_string()),
            client.port = client.map(|client: SocketAddr| i64::from(client.port())),
        );
        if let Some(parent) = parent {
            // Fails where nobody exports spans, and then there is nothing to place.
            let _ = span.set_parent(parent);
        }
        Some(span)
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = TraceService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        TraceService { inner, layer: *self }
    }
}

/// The service of [`TraceLayer`].
#[derive(Debug, Clone)]
pub struct TraceService<S> {
    inner: S,
    layer: TraceLayer,
}

impl<S, Sent> Service<Request<Sent>> for TraceService<S>
where
    S: Service<Request<Sent>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let Some(span) = self.layer.span(&request) else { return Box::pin(self.inner.call(request)) };
        let end = CallEnd::new({
            let span = span.clone();
            move |code| match code {
                // What the server is to blame for, as the semantic conventions list it.
                Code::Unknown
                | Code::DeadlineExceeded
                | Code::Unimplemented
                | Code::Internal
                | Code::Unavailable
                | Code::DataLoss => failed(&span, code),
                _ => drop(span.record("rpc.grpc.status_code", code as i64)),
            }
        });
        let response = span.in_scope(|| self.inner.call(request));
        Box::pin(async move { Ok(end.follow(response.await?)) }.instrument(span))
    }
}
