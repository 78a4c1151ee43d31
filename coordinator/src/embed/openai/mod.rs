//! Embeddings from an HTTP endpoint of OpenAI's form: `POST {base_url}/embeddings` with `model` and `input[]`.
//!
//! The client sends texts in batches, a bounded number of requests at once, and tries again after what may pass: 408, 425,
//! 429, 5xx, broken connections and timeouts, with growing random pauses or as long as Retry-After says, never beyond the
//! caller's deadline. What an endpoint answers is checked before anybody uses it.

mod answer;
mod batch;
mod client;
mod key;
mod retry;

pub(super) use client::OpenAi;
