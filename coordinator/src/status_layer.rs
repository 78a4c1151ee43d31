//! Mends the statuses that the transport makes, so that every error that leaves a server is one of the contract.
//!
//! tonic answers a message that cannot be decoded with INTERNAL, one that is too large with OUT_OF_RANGE, and a deadline
//! with CANCELLED, none with details.

use std::pin::Pin;
use std::task::{Context, Poll};

use antiphon_proto::error::{ApiError, ErrorKind};
use http::{Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};

/// The status that the contract has for one without details.
pub fn mend(status: Status) -> Status {
    if !status.details().is_empty() {
        return status;
    }
    let words = status.message();
    let kind = match status.code() {
        Code::OutOfRange => ErrorKind::TooLarge,
        Code::Internal | Code::InvalidArgument | Code::Unknown if words.contains("decod") || words.contains("protocol") => {
            ErrorKind::MessageMalformed
        }
        Code::Cancelled if words.contains("imeout") => ErrorKind::Deadline,
        Code::Internal | Code::Unknown => ErrorKind::Internal,
        Code::ResourceExhausted => ErrorKind::Overloaded,
        Code::Unavailable => ErrorKind::ShuttingDown,
        _ => return status,
    };
    ApiError::new(kind, words).to_status()
}

/// Mends responses that consist of a status alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusLayer;

impl<S> Layer<S> for StatusLayer {
    type Service = StatusService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        StatusService { inner }
    }
}

/// The service of [`StatusLayer`].
#[derive(Debug, Clone)]
pub struct StatusService<S> {
    inner: S,
}

impl<S, Body, Reply> Service<Request<Body>> for StatusService<S>
where
    S: Service<Request<Body>, Response = Response<Reply>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let response = self.inner.call(request);
        Box::pin(async move {
            let mut response = response.await?;
            if let Some(status) = Status::from_header_map(response.headers())
                && status.code() != Code::Ok
                && status.code() != Code::Unimplemented
            {
                // A header that cannot be written leaves the status as it was.
                let _ = mend(status).add_header(response.headers_mut());
            }
            Ok(response)
        })
    }
}
