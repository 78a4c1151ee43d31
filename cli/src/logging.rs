//! The log on stderr, as text or JSON.

use std::io::IsTerminal as _;

use antiphon_telemetry::TARGET;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::failure::Failure;
use crate::settings::LogFormat;
use crate::telemetry::Traces;

/// Starts logging, and passing spans on to where they are exported, once a process.
///
/// # Errors
/// A filter that can't be read.
pub(crate) fn start(filter: &str, format: LogFormat, traces: Option<&Traces>) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::new(format!("--log `{filter}` is no filter: {error}; try error, warn, info, debug or trace"))
    })?;
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // Spans go to the collector, not into the lines.
    let lines = lines.with_filter(filter.and(filter_fn(|metadata| metadata.target() != TARGET)));
    let lines = tracing_subscriber::registry().with(lines);
    // Not as an optional layer: one that is not there asks for every span of every library.
    let started = match traces {
        Some(traces) => lines.with(traces.layer()).try_init(),
        None => lines.try_init(),
    };
    started.map_err(|error| Failure::new(format!("can't start the log: {error}")))
}
