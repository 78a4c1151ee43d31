//! Calls to members: connected when first used and again whenever the connection broke, with the cluster's credential.

use std::time::Duration;

use antiphon_access::tls::ClientTls;
use antiphon_proto::internal::node_service_client::NodeServiceClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::error::MembershipError;
use crate::secret::{CLUSTER_METADATA, Secret};

/// Largest message between members, in bytes.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// A connection to a member.
pub(crate) type MemberChannel = InterceptedService<Channel, Credential>;
/// Calls to a node.
pub type NodeClient = NodeServiceClient<MemberChannel>;

/// Adds the cluster's credential to each call.
#[derive(Clone)]
pub struct Credential(Option<MetadataValue<Ascii>>);

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert(CLUSTER_METADATA, value.clone());
        }
        Ok(request)
    }
}

/// How a process calls members: what it proves itself by, and how it checks who answers.
#[derive(Debug, Clone, Default)]
pub struct Dialer {
    secret: Option<Secret>,
    tls: Option<ClientTls>,
}

impl Dialer {
    /// Proves itself by a secret, if there is one; needs `tls` for addresses that begin with https.
    pub fn new(secret: Option<Secret>, tls: Option<ClientTls>) -> Self {
        Self { secret, tls }
    }

    /// The way to a node.
    ///
    /// # Errors
    /// [`MembershipError::Address`] where the address is no URL, or one with https and there is no TLS.
    pub fn node(&self, address: &str) -> Result<NodeClient, MembershipError> {
        let failed = |reason: String| MembershipError::Address { address: address.to_owned(), reason };
        let endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(|error| failed(error.to_string()))?
            .connect_timeout(Duration::from_secs(2))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(5))
            .keep_alive_timeout(Duration::from_secs(5))
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20);
        let credential = self.secret.as_ref().map(|secret| secret.credential().parse()).transpose();
        let mut credential: Option<MetadataValue<Ascii>> = credential.map_err(|_| failed("its credential".into()))?;
        if let Some(value) = &mut credential {
            value.set_sensitive(true);
        }
        let channel = match (endpoint.uri().scheme_str(), &self.tls) {
            (Some("https"), Some(tls)) => tls.connect_lazy(&endpoint),
            (Some("https"), None) => {
                return Err(failed("TLS is not set up here: what are the authorities of its certificate?".to_owned()));
            }
            _ => endpoint.connect_lazy(),
        };
        Ok(NodeServiceClient::with_interceptor(channel, Credential(credential))
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES))
    }
}
