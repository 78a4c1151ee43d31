//! Whether there are spans, and how they are made.

use std::sync::atomic::{AtomicBool, Ordering};

use tonic::Code;
use tracing::Span;

/// The target of all spans that are exported.
pub const TARGET: &str = "antiphon::trace";

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Says that somebody exports spans.
pub fn turn_on() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// Whether somebody exports spans.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Whether what runs is part of a call that is traced.
pub fn is_traced() -> bool {
    is_on() && !Span::current().is_disabled()
}

/// Marks a span as failed by a code (semantic conventions for RPC of OpenTelemetry: rpc.grpc.status_code).
pub fn failed(span: &Span, code: Code) {
    span.record("rpc.grpc.status_code", code as i64);
    span.record("otel.status_code", "ERROR");
}

/// A span of a part of the call under way, or none where that is not traced: `phase!("merge", lists = 2)`.
#[macro_export]
macro_rules! phase {
    ($name:literal $(, $($fields:tt)*)?) => {
        if $crate::is_traced() {
            $crate::tracing::info_span!(target: $crate::TARGET, $name $(, $($fields)*)?)
        } else {
            $crate::tracing::Span::none()
        }
    };
}

/// A span of work that no call waits for: a trace of its own.
#[macro_export]
macro_rules! background {
    ($name:literal $(, $($fields:tt)*)?) => {
        if $crate::is_on() {
            $crate::tracing::info_span!(target: $crate::TARGET, parent: None, $name $(, $($fields)*)?)
        } else {
            $crate::tracing::Span::none()
        }
    };
}
