//! The end of a call: its code, wherever the answer has it, and when.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use tonic::body::Body;
use tonic::{Code, Status};

/// Does something when a call ends, with the code that it ends by. Dropped before, it takes the call for CANCELLED: nobody
/// waits for it any more.
pub struct CallEnd(Option<Box<dyn FnOnce(Code) + Send>>);

impl CallEnd {
    /// Does `then`, once.
    pub fn new(then: impl FnOnce(Code) + Send + 'static) -> Self {
        Self(Some(Box::new(then)))
    }

    /// Waits for the end of an answer.
    pub fn follow(mut self, response: Response<Body>) -> Response<Body> {
        let (head, body) = response.into_parts();
        // An answer that is a status alone has it in its headers.
        if let Some(code) = code_in(&head.headers) {
            self.end(code);
        }
        Response::from_parts(head, Body::new(Followed { body, end: self }))
    }

    fn end(&mut self, code: Code) {
        if let Some(then) = self.0.take() {
            then(code);
        }
    }
}

impl Drop for CallEnd {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

/// A body that knows when its call ends.
struct Followed {
    body: Body,
    end: CallEnd,
}

impl http_body::Body for Followed {
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
                    self.end.end(code);
                }
            }
            Some(Err(status)) => self.end.end(status.code()),
            None => self.end.end(Code::Ok),
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
