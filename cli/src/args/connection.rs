//! How client commands find the server.

use std::path::PathBuf;
use std::time::Duration;

/// Flags of every command that speaks to a server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ConnectionArgs {
    /// The server. With https:// the connection is encrypted.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "ANTIPHON_ADDRESS",
        default_value = "http://127.0.0.1:7700",
        help_heading = "Connection"
    )]
    pub(crate) address: String,
    /// A file with the token that the server asks for [default: what ANTIPHON_TOKEN holds, if it is set].
    #[arg(long, global = true, value_name = "FILE", env = "ANTIPHON_TOKEN_FILE", help_heading = "Connection")]
    pub(crate) token_file: Option<PathBuf>,
    /// A PEM file with the authorities of the server's certificate [default: those of the system].
    #[arg(long, global = true, value_name = "FILE", env = "ANTIPHON_TLS_CA", help_heading = "Connection")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// A PEM file with the certificate to show to a server that asks for one.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "ANTIPHON_TLS_CERT",
        requires = "tls_key",
        help_heading = "Connection"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// A PEM file with its private key.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "ANTIPHON_TLS_KEY",
        requires = "tls_cert",
        help_heading = "Connection"
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// The name that the server's certificate must bear [default: the host of the address].
    #[arg(long, global = true, value_name = "NAME", env = "ANTIPHON_TLS_SERVER_NAME", help_heading = "Connection")]
    pub(crate) tls_server_name: Option<String>,
    /// How long to wait for an answer, in seconds.
    #[arg(
        long = "timeout",
        global = true,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Connection"
    )]
    pub(crate) timeout_s: u64,
}

impl ConnectionArgs {
    /// A server that asks for nothing.
    pub(crate) fn plain(address: &str, timeout_s: u64) -> Self {
        Self {
            address: address.to_owned(),
            timeout_s,
            token_file: None,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
            tls_server_name: None,
        }
    }

    /// How long to wait for an answer.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }
}
