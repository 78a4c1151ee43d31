//! What servers tell of calls: spans of traces that cross processes, and how a call ended.
//!
//! - [`TraceLayer`] begins a span for each call that is traced, under the caller's if it sent one.
//! - [`phase!`] makes a span of a part of it; where the call is not traced, none, at the cost of a look.
//! - [`inject`] passes the span under way on to the server that is called next.
//! - [`CallEnd`] knows the code by which a call ended.
//!
//! Spans are those of `tracing`, all of the target [`TARGET`], which keeps them out of the log. Who exports them is the
//! binary's affair; until it calls [`turn_on`] there are none.

mod call_end;
mod layer;
mod propagate;
mod span;

pub use call_end::CallEnd;
pub use layer::{TraceLayer, TraceService};
pub use propagate::inject;
pub use span::{TARGET, failed, is_on, is_traced, turn_on};
// For the macros.
#[doc(hidden)]
pub use tracing;
