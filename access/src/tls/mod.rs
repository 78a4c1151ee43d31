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

/// Whether a connection failed in the handshake, as by a certificate that is not right.
pub fn is_handshake_failure(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
