//! The log on stderr, as text or JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;
use crate::settings::LogFormat;

/// Starts logging, once a process.
///
/// # Errors
/// A filter that can't be read.
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::new(format!("--log `{filter}` is no filter: {error}; try error, warn, info, debug or trace"))
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    started.map_err(|error| Failure::new(format!("can't start the log: {error}")))
}
