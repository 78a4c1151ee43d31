//! Mends the statuses that the transport makes, so that every error that leaves a server is one of the contract.
//!
//! tonic answers a message that cannot be decoded with INTERNAL, one that is too large with OUT_OF_RANGE, and a deadline
//! with CANCELLED, none with details. The last it does outside of any layer, so the layer has to be there before it.

use std::pin::Pin;
use std::task::{Context, Poll};

use antiphon_proto::deadline::Deadline;
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
        Code::Internal | Code::InvalidArgument | Code::Unknown if is_of_the_message(words) => {
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

/// Whether tonic's words are about what the caller sent: bytes that are no message, a frame cut off, none at all.
fn is_of_the_message(words: &str) -> bool {
    ["decod", "protocol", "Missing request message"].iter().any(|part| words.contains(part))
}

/// Mends responses that consist of a status alone, and answers at the caller's deadline where nothing else does.
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
    Reply: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let timeout = request.headers().get("grpc-timeout").and_then(|value| value.to_str().ok());
        let deadline = timeout.and_then(Deadline::last_moment);
        let response = self.inner.call(request);
        Box::pin(async move {
            let mut response = match deadline {
                None => response.await?,
                Some(deadline) => match tokio::time::timeout_at(deadline.instant().into(), response).await {
                    Ok(response) => response?,
                    Err(_) => {
                        let words = "the deadline passed before the request was read and answered";
                        return Ok(ApiError::new(ErrorKind::Deadline, words).to_status().into_http());
                    }
                },
            };
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
