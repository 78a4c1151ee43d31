//! The context of a trace in the metadata of a call, as W3C Trace Context (traceparent, tracestate) writes it.

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tonic::metadata::{MetadataKey, MetadataMap};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Passes a span on to the server that is called.
pub fn inject(span: &Span, metadata: &mut MetadataMap) {
    if !span.is_disabled() {
        TraceContextPropagator::new().inject_context(&span.context(), &mut Sent(metadata));
    }
}

/// The caller's span; none where it sent none, or one that cannot be read.
pub(crate) fn extract(headers: &HeaderMap) -> Option<Context> {
    if !headers.contains_key("traceparent") {
        return None;
    }
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &Received(headers));
    context.span().span_context().is_valid().then_some(context)
}

struct Sent<'a>(&'a mut MetadataMap);

impl Injector for Sent<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(key), Ok(value)) = (MetadataKey::from_bytes(key.as_bytes()), value.parse()) {
            self.0.insert(key, value);
        }
    }
}

struct Received<'a>(&'a HeaderMap);

impl Extractor for Received<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
