//! Counts and times every call that a server answers, by method and by the code of its end.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::{HeaderMap, Request, Response};
use http_body::{Frame, SizeHint};
use metrics::histogram;
use tonic::body::Body;
use tonic::{Code, Status};
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
        let response = self.0.call(request);
        Box::pin(async move {
            let response = response.await?;
            let (head, body) = response.into_parts();
            // An answer that is a status alone has it in its headers.
            let mut measured = Measured { body, call: Some(call) };
            if let Some(code) = code_in(&head.headers) {
                measured.end(code);
            }
            Ok(Response::from_parts(head, Body::new(measured)))
        })
    }
}

/// A call under way. One that nobody waits for any more ends as CANCELLED.
struct Call {
    service: String,
    method: String,
    began: Instant,
    code: Code,
}

impl Call {
    fn begin(path: &str) -> Self {
        IN_FLIGHT.fetch_add(1, Ordering::Relaxed);
        let (service, method) = path.trim_start_matches('/').rsplit_once('/').unwrap_or_default();
        let began = Instant::now();
        Self { service: service.to_owned(), method: method.to_owned(), began, code: Code::Cancelled }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
        let names = (std::mem::take(&mut self.service), std::mem::take(&mut self.method));
        // Callers make up names of methods; what has none here gets no series of its own.
        let (service, method) = if self.code == Code::Unimplemented { Default::default() } else { names };
        let code = name(self.code);
        histogram!("antiphon_rpc_duration_seconds", "service" => service, "method" => method, "code" => code)
            .record(self.began.elapsed());
    }
}

/// A body that knows when its call ends.
struct Measured {
    body: Body,
    call: Option<Call>,
}

impl Measured {
    fn end(&mut self, code: Code) {
        if let Some(mut call) = self.call.take() {
            call.code = code;
        }
    }
}

impl http_body::Body for Measured {
    type Data = <Body as http_body::Body>::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(code) = frame.trailers_ref().and_then(code_in) {
                    self.end(code);
                }
            }
            Some(Err(status)) => self.end(status.code()),
            None => self.end(Code::Ok),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn code_in(headers: &HeaderMap) -> Option<Code> {
    headers.get(Status::GRPC_STATUS).map(|code| Code::from_bytes(code.as_bytes()))
}

/// The code as the gRPC documents write it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
