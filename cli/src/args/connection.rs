//! How client commands find the server.

use std::time::Duration;

/// Flags of every command that speaks to a server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ConnectionArgs {
    /// The server.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "ANTIPHON_ADDRESS",
        default_value = "http://127.0.0.1:7700",
        help_heading = "Connection"
    )]
    pub(crate) address: String,
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
    /// How long to wait for an answer.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }
}
