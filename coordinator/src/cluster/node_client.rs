//! The way to a node: over the network, or straight into the node of the same process.

use std::sync::Arc;

use antiphon_membership::{Dialer, MembershipError};
use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::node_service_server::NodeService;
use antiphon_proto::internal::{
    CountRowsRequest, CountRowsResponse, DescribeNodeRequest, DescribeNodeResponse, DescribeShardRequest,
    DescribeShardResponse, FetchDocumentsRequest, FetchDocumentsResponse, ListRowsRequest, ListRowsResponse,
    LookUpDocumentsRequest, LookUpDocumentsResponse, OpenViewRequest, OpenViewResponse, SearchWindowsRequest,
    SearchWindowsResponse, ShardRef, WriteRequest, WriteResponse,
};
use antiphon_telemetry::{failed, inject, phase};
use tonic::{Code, Request, Status};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

/// The service of a node.
const SERVICE: &str = "antiphon.internal.v1.NodeService";

/// How a node is called.
#[derive(Clone)]
pub enum NodeClient {
    /// In this process.
    Local(Arc<dyn NodeService>),
    /// Over the network, at an address.
    Remote(Box<antiphon_membership::NodeClient>, Arc<str>),
}

macro_rules! call {
    ($client:expr, $deadline:expr, $message:expr, $name:literal, $method:ident) => {{
        let message = $message;
        let span = $client.span($name, shard_of(&message));
        let mut request = Request::new(message);
        request.set_timeout($deadline.left());
        let call = async {
            match $client {
                NodeClient::Local(node) => node.$method(request).await,
                NodeClient::Remote(client, _) => {
                    inject(&span, request.metadata_mut());
                    client.as_ref().clone().$method(request).await
                }
            }
        };
        match tokio::time::timeout($deadline.left(), call.instrument(span.clone())).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => {
                failed(&span, status.code());
                Err(CallError { error: read_status(&status, $deadline), is_unreached: is_unreached(&status) })
            }
            Err(_) => {
                failed(&span, Code::DeadlineExceeded);
                Err(ApiError::new(ErrorKind::Deadline, "the node did not answer in time").into())
            }
        }
    }};
}

/// The shard that a message is about.
trait OfShard {
    fn shard(&self) -> Option<&ShardRef>;
}

macro_rules! of_shard {
    ($($message:ty),*) => { $(impl OfShard for $message {
        fn shard(&self) -> Option<&ShardRef> {
            self.shard.as_ref()
        }
    })* };
}

of_shard!(
    CountRowsRequest,
    DescribeShardRequest,
    FetchDocumentsRequest,
    ListRowsRequest,
    LookUpDocumentsRequest,
    OpenViewRequest,
    SearchWindowsRequest,
    WriteRequest
);

impl OfShard for DescribeNodeRequest {
    fn shard(&self) -> Option<&ShardRef> {
        None
    }
}

fn shard_of(message: &impl OfShard) -> Option<u32> {
    message.shard().map(|shard| shard.shard)
}

/// Why a call failed.
pub(super) struct CallError {
    pub(super) error: ApiError,
    /// Whether the node was not even reached, so that nothing happened.
    pub(super) is_unreached: bool,
}

impl From<ApiError> for CallError {
    fn from(error: ApiError) -> Self {
        Self { error, is_unreached: false }
    }
}

impl From<CallError> for ApiError {
    fn from(failed: CallError) -> Self {
        failed.error
    }
}

impl NodeClient {
    /// A client of a node elsewhere, connected when it is first used and again whenever the connection broke.
    ///
    /// # Errors
    /// The address is no URI.
    pub fn connect(address: &str, dialer: &Dialer) -> Result<Self, MembershipError> {
        Ok(Self::Remote(Box::new(dialer.node(address)?), address.into()))
    }

    /// The span of a call; none where what calls is not traced.
    fn span(&self, method: &'static str, shard: Option<u32>) -> Span {
        let (kind, address) = match self {
            Self::Local(_) => ("internal", None),
            Self::Remote(_, address) => {
                ("client", address.split_once("://").and_then(|(_, authority)| authority.rsplit_once(':')))
            }
        };
        phase!(
            "node call",
            otel.name = format_args!("{SERVICE}/{method}"),
            otel.kind = kind,
            otel.status_code = Empty,
            rpc.system = "grpc",
            rpc.service = SERVICE,
            rpc.method = method,
            rpc.grpc.status_code = Empty,
            server.address = address.map(|(host, _)| host),
            server.port = address.and_then(|(_, port)| port.trim_end_matches('/').parse::<u16>().ok()),
            antiphon.shard = shard,
        )
    }

    /// Picks a view.
    ///
    /// # Errors
    /// The node's, or SHARD_UNAVAILABLE where it cannot be reached. So for all methods.
    pub async fn open_view(&self, message: OpenViewRequest, deadline: Deadline) -> Result<OpenViewResponse, ApiError> {
        Ok(call!(self, deadline, message, "OpenView", open_view)?)
    }

    /// Asks for windows.
    pub async fn search_windows(
        &self,
        message: SearchWindowsRequest,
        deadline: Deadline,
    ) -> Result<SearchWindowsResponse, ApiError> {
        Ok(call!(self, deadline, message, "SearchWindows", search_windows)?)
    }

    /// Asks for documents of rows.
    pub async fn fetch_documents(
        &self,
        message: FetchDocumentsRequest,
        deadline: Deadline,
    ) -> Result<FetchDocumentsResponse, ApiError> {
        Ok(call!(self, deadline, message, "FetchDocuments", fetch_documents)?)
    }

    /// Counts the rows that meet a filter.
    pub async fn count_rows(
        &self,
        message: CountRowsRequest,
        deadline: Deadline,
    ) -> Result<CountRowsResponse, ApiError> {
        Ok(call!(self, deadline, message, "CountRows", count_rows)?)
    }

    /// Asks for a stretch of the rows that meet a filter.
    pub async fn list_rows(&self, message: ListRowsRequest, deadline: Deadline) -> Result<ListRowsResponse, ApiError> {
        Ok(call!(self, deadline, message, "ListRows", list_rows)?)
    }

    /// Writes.
    pub(super) async fn write(&self, message: WriteRequest, deadline: Deadline) -> Result<WriteResponse, CallError> {
        call!(self, deadline, message, "Write", write)
    }

    /// Asks for documents by key.
    pub async fn look_up_documents(
        &self,
        message: LookUpDocumentsRequest,
        deadline: Deadline,
    ) -> Result<LookUpDocumentsResponse, ApiError> {
        Ok(call!(self, deadline, message, "LookUpDocuments", look_up_documents)?)
    }

    /// Asks for a shard's counts.
    pub async fn describe_shard(
        &self,
        message: DescribeShardRequest,
        deadline: Deadline,
    ) -> Result<DescribeShardResponse, ApiError> {
        Ok(call!(self, deadline, message, "DescribeShard", describe_shard)?)
    }

    /// Asks who the node is.
    pub async fn describe_node(&self, deadline: Deadline) -> Result<DescribeNodeResponse, ApiError> {
        Ok(call!(self, deadline, DescribeNodeRequest {}, "DescribeNode", describe_node)?)
    }
}

/// Whether a call failed for want of a connection: a port that nobody listens on can't have taken it.
fn is_unreached(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::ConnectionRefused
        {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A node's status. One without details was made by the transport: at the deadline it is the deadline's, else the
/// connection broke, whatever code it came by.
fn read_status(status: &Status, deadline: Deadline) -> ApiError {
    let error = ApiError::from_status(status);
    let is_ours = !status.details().is_empty();
    match status.code() {
        // Ours to mend, not the caller's.
        Code::Unauthenticated => ApiError::new(
            ErrorKind::ShardUnavailable,
            "the node does not take this coordinator for a member: do their secrets differ?",
        ),
        Code::Cancelled if deadline.is_over() => ApiError::new(ErrorKind::Deadline, "the node did not answer in time"),
        Code::Cancelled | Code::Internal | Code::Unknown if !is_ours => {
            ApiError::new(ErrorKind::ShardUnavailable, format!("the node went away: {}", status.message()))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_connection_that_broke_is_an_unavailable_shard_and_not_a_cancelled_call() {
        let later = Deadline::after(Duration::from_secs(60));
        let kind = |status: Status, deadline| read_status(&status, deadline).kind();
        assert_eq!(kind(Status::cancelled("operation was canceled"), later), ErrorKind::ShardUnavailable);
        assert_eq!(kind(Status::unknown("h2 protocol error"), later), ErrorKind::ShardUnavailable);
        assert_eq!(kind(Status::unavailable("tcp connect error"), later), ErrorKind::ShardUnavailable);
        assert_eq!(kind(Status::cancelled("Timeout expired"), Deadline::after(Duration::ZERO)), ErrorKind::Deadline);
        let ours = ApiError::new(ErrorKind::Cancelled, "the call was cancelled").to_status();
        assert_eq!(kind(ours, later), ErrorKind::Cancelled);
    }
}
