//! Calls to a server: the connection, deadlines, and errors in words.

mod words;

use std::time::Duration;

use antiphon_access::tls::{ClientTls, ClientTlsFiles, is_handshake_failure};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Endpoint;
use tonic::{Request, Status};

use crate::args::ConnectionArgs;
use crate::failure::{Failure, causes};

pub(crate) use words::{failure, status_words};

/// Most bytes of an answer that a command takes.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 << 20;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Where the token may be, if no file is named.
const TOKEN_VARIABLE: &str = "ANTIPHON_TOKEN";

/// A connection to a server, which sends the token with every call.
pub(crate) type Channel = InterceptedService<tonic::transport::Channel, Bearer>;

/// Adds the token to each call, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

impl Bearer {
    /// The token of the file that the arguments name, or of the environment.
    fn find(args: &ConnectionArgs) -> Result<Self, Failure> {
        let text = match &args.token_file {
            Some(path) => std::fs::read_to_string(path)
                .map(Some)
                .map_err(|error| Failure::of(format!("can't read the token file {}", path.display()), &error))?,
            None => std::env::var(TOKEN_VARIABLE).ok(),
        };
        let token = text.as_deref().map(str::trim).filter(|token| !token.is_empty());
        let Some(token) = token else { return Ok(Self(None)) };
        let mut value: MetadataValue<Ascii> = format!("Bearer {token}")
            .parse()
            .map_err(|_| Failure::new("the token has characters that no token has"))?;
        value.set_sensitive(true);
        Ok(Self(Some(value)))
    }
}

/// A connection that stands.
///
/// # Errors
/// An address that can't be one, or that nobody answers at; files that can't be used.
pub(crate) async fn connect(args: &ConnectionArgs) -> Result<Channel, Failure> {
    let bearer = Bearer::find(args)?;
    let endpoint = endpoint(&args.address)?;
    let is_secure = endpoint.uri().scheme_str() == Some("https");
    let connected = if is_secure { tls(args)?.connect(&endpoint).await } else { endpoint.connect().await };
    let channel = connected.map_err(|error| {
        let mut why = causes(&error);
        why = why.trim_start_matches("transport error: ").to_owned();
        if is_handshake_failure(&error) {
            return Failure::new(format!("the connection to {} is refused: {why}. {TLS_HINT}", args.address));
        }
        Failure::new(format!("no server answers at {}: {why}. {HINT}", args.address))
    })?;
    Ok(InterceptedService::new(channel, bearer))
}

/// What to do where no server answers.
const HINT: &str = "Start one with `antiphon serve`, or name another with --address or ANTIPHON_ADDRESS";

/// What to do where a certificate is not right.
const TLS_HINT: &str = "See --tls-ca, --tls-server-name and --tls-cert";

fn tls(args: &ConnectionArgs) -> Result<ClientTls, Failure> {
    let identity = args.tls_cert.clone().zip(args.tls_key.clone());
    let files =
        ClientTlsFiles { authorities: args.tls_ca.clone(), identity, server_name: args.tls_server_name.clone() };
    ClientTls::start(files).map_err(|error| Failure::of("TLS", &error))
}

fn endpoint(address: &str) -> Result<Endpoint, Failure> {
    let url = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(Failure::new(format!("the address `{address}` must begin with http:// or https://")));
    }
    let endpoint = Endpoint::from_shared(url)
        .map_err(|error| Failure::of(format!("the address `{address}` is no URL"), &error))?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .tcp_nodelay(true))
}

/// A request with the deadline asked for.
pub(crate) fn request<T>(message: T, args: &ConnectionArgs) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(args.timeout());
    request
}
