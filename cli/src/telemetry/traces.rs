//! Spans on their way to a collector, by OTLP over gRPC.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon_telemetry::TARGET;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::failure::Failure;
use crate::settings::{Role, Settings};

/// Spans that wait to be sent; more are dropped.
const MAX_WAITING: usize = 16_384;
/// Most spans in one request.
const MAX_SENT: usize = 1_024;
/// How long spans wait for others.
const DELAY: Duration = Duration::from_secs(1);
/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Exports spans until it is stopped.
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Begins; none where the settings name no collector. The connection is made when there is something to send.
    ///
    /// # Errors
    /// An address that cannot be one.
    pub(crate) fn start(settings: &Settings, role: Role) -> Result<Option<Self>, Failure> {
        let endpoint = &settings.traces.endpoint;
        if endpoint.is_empty() {
            return Ok(None);
        }
        let exporter = OtlpExporter::builder().with_tonic().with_endpoint(endpoint).with_timeout(TIMEOUT).build();
        let exporter = exporter.map_err(|error| Failure::of("traces.endpoint", &error))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_WAITING)
            .with_max_export_batch_size(MAX_SENT)
            .with_scheduled_delay(DELAY)
            .build();
        let exporter = Watchful { exporter, endpoint: endpoint.clone(), has_failed: AtomicBool::new(false) };
        let role = match role {
            Role::Serve => "serve",
            Role::Node => "node",
            Role::Coordinator => "coordinator",
        };
        let resource = Resource::builder()
            .with_service_name("antiphon")
            .with_attributes([
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("service.instance.id", settings.id.clone()),
                KeyValue::new("antiphon.role", role),
            ])
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
            // Which calls are traced is decided before there is a span.
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource)
            .build();
        antiphon_telemetry::turn_on();
        Ok(Some(Self(provider)))
    }

    /// What takes spans in, and nothing else.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("antiphon"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_level(false)
            .with_filter(filter_fn(|metadata| metadata.target() == TARGET))
    }

    /// Sends what waits, for as long as the collector may take.
    pub(crate) async fn stop(self) {
        let stopping = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(TIMEOUT));
        if let Ok(Err(error)) = stopping.await {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// Says in the log when the collector stops taking spans, and when it takes them again.
#[derive(Debug)]
struct Watchful {
    exporter: OtlpExporter,
    endpoint: String,
    has_failed: AtomicBool,
}

impl SpanExporter for Watchful {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let num_spans = batch.len() as u64;
        let outcome = self.exporter.export(batch).await;
        let had_failed = self.has_failed.swap(outcome.is_err(), Ordering::Relaxed);
        let label = if outcome.is_ok() { "sent" } else { "lost" };
        metrics::counter!("antiphon_spans_total", "outcome" => label).increment(num_spans);
        match &outcome {
            Err(error) if !had_failed => {
                tracing::warn!(endpoint = self.endpoint, %error, "spans are lost: the collector does not take them");
            }
            Ok(()) if had_failed => tracing::info!(endpoint = self.endpoint, "the collector takes spans again"),
            _ => {}
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
