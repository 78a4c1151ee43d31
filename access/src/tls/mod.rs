//! TLS 1.2 and 1.3 by rustls, with certificates from PEM files that may be renewed at any time.
//!
//! Each new connection goes by the files of its moment; those that stand are left alone.

mod acceptor;
mod connection;
mod connector;
mod pem;

pub use acceptor::{ServerTls, ServerTlsFiles};
pub use connection::TlsConnection;
pub use connector::{ClientTls, ClientTlsFiles};

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// What HTTP/2 is called in the handshake (RFC 7301).
const HTTP2: &[u8] = b"h2";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
