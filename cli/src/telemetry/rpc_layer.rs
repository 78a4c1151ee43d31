//! Counts and times every call that a server answers, by method and by the code of its end.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use antiphon_proto::error::code_name;
use antiphon_telemetry::CallEnd;
use http::{Request, Response};
use metrics::histogram;
use tonic::Code;
use tonic::body::Body;
use tower::{Layer, Service};

/// Calls that are not answered yet.
static IN_FLIGHT: AtomicU64 = AtomicU64::new(0);

/// Sets the gauge of calls under way.
pub(super) fn record() {
    metrics::gauge!("antiphon_rpc_in_flight").set(IN_FLIGHT.load(Ordering::Relaxed) as f64);
}

/// Wraps a server's services.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RpcLayer;

/// The service of [`RpcLayer`].
#[derive(Debug, Clone)]
pub(crate) struct RpcService<S>(S);

impl<S> Layer<S> for RpcLayer {
    type Service = RpcService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RpcService(inner)
    }
}

impl<S, Sent> Service<Request<Sent>> for RpcService<S>
where
    S: Service<Request<Sent>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let call = Call::begin(request.uri().path());
        let end = CallEnd::new(move |code| call.end(code));
        let response = self.0.call(request);
        Box::pin(async move { Ok(end.follow(response.await?)) })
    }
}

/// A call under way.
struct Call {
    service: String,
    method: String,
    began: Instant,
}

impl Call {
    fn begin(path: &str) -> Self {
        IN_FLIGHT.fetch_add(1, Ordering::Relaxed);
        let (service, method) = path.trim_start_matches('/').rsplit_once('/').unwrap_or_default();
        Self { service: service.to_owned(), method: method.to_owned(), began: Instant::now() }
    }

    fn end(self, code: Code) {
        IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
        let Self { service, method, began } = self;
        // Callers make up names of methods; what has none here, or no token, gets no series of its own.
        let is_strange = matches!(code, Code::Unimplemented | Code::Unauthenticated);
        let (service, method) = if is_strange { Default::default() } else { (service, method) };
        histogram!("antiphon_rpc_duration_seconds", "service" => service, "method" => method, "code" => code_name(code))
            .record(began.elapsed());
    }
}
