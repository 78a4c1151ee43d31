//! The recorder behind the `metrics` macros, and the text it renders.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;

use crate::failure::Failure;

/// Bounds of the buckets of durations, in seconds: some four to a factor of ten.
const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.003, 0.005, 0.007_5, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5,
    1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// How long a gauge is told of that nothing sets any more, such as one of a shard that went elsewhere.
const GAUGES_LAST: Duration = Duration::from_secs(90);

/// Makes the recorder and installs it, once a process. Until then the macros do next to nothing.
///
/// # Errors
/// Where there is one already.
pub(super) fn install() -> Result<PrometheusHandle, Failure> {
    let failed = |error| Failure::new(format!("the metrics cannot be recorded: {error}"));
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .map_err(|error| failed(error.to_string()))?
        .idle_timeout(MetricKindMask::GAUGE, Some(GAUGES_LAST));
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|error| failed(error.to_string()))?;
    Ok(handle)
}
