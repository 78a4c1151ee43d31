//! Calls to a server: the connection, deadlines, and errors in words.

mod words;

use std::time::Duration;

use tonic::Request;
use tonic::transport::{Channel, Endpoint};

use crate::args::ConnectionArgs;
use crate::failure::{Failure, causes};

pub(crate) use words::{failure, status_words};

/// Most bytes of an answer that a command takes.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 << 20;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// A connection that stands.
///
/// # Errors
/// An address that can't be one, or that nobody answers at.
pub(crate) async fn connect(args: &ConnectionArgs) -> Result<Channel, Failure> {
    endpoint(&args.address)?.connect().await.map_err(|error| {
        let mut why = causes(&error);
        why = why.trim_start_matches("transport error: ").to_owned();
        Failure::new(format!("no server answers at {}: {why}. {HINT}", args.address))
    })
}

/// What to do where no server answers.
const HINT: &str = "Start one with `antiphon serve`, or name another with --address or ANTIPHON_ADDRESS";

fn endpoint(address: &str) -> Result<Endpoint, Failure> {
    let url = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    if !url.starts_with("http://") {
        return Err(Failure::new(format!("the address `{address}` must begin with http://; TLS is left to a proxy")));
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
