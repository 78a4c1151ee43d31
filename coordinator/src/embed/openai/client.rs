//! The client of one endpoint.

use std::time::Duration;

use antiphon_proto::deadline::Deadline;
use futures::stream::{self, StreamExt, TryStreamExt};
use http::{StatusCode, header};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::answer;
use super::batch::batches;
use super::key::{Secret, authorization};
use super::retry::{may_pass, pause, retry_after};
use crate::embed::config::OpenAiConfig;
use crate::embed::{EmbedError, Embedder, Purpose, StartError};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that a number takes in an answer, generously.
const BYTES_A_NUMBER: usize = 40;
/// Largest answer read.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// Most dimensions there are.
const MAX_DIMENSIONS: usize = 65_536;
/// What the endpoint is asked to embed at start.
const PROBE: &str = "antiphon";
/// How long the endpoint may take for it, tries together.
const PROBE_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Serialize)]
struct Question<'q> {
    model: &'q str,
    input: &'q [String],
}

/// An endpoint.
pub(in crate::embed) struct OpenAi {
    http: reqwest::Client,
    url: reqwest::Url,
    key: Option<Secret>,
    config: OpenAiConfig,
    dimensions: usize,
    /// Requests under way.
    slots: Semaphore,
    /// Calls under way or waiting.
    admitted: Semaphore,
}

/// Why one try failed.
enum Fault {
    /// It may do better later.
    Passing { words: String, asked: Option<Duration> },
    /// It won't.
    Lasting(EmbedError),
}

impl OpenAi {
    /// Makes a client and asks the endpoint for a first vector. Where the settings say the dimensions, an endpoint that is out
    /// of reach is no reason not to start: each answer is checked.
    ///
    /// # Errors
    /// [`StartError`]: settings that make no request, a key that can't be had, an endpoint that refuses, or whose vectors
    /// have other dimensions.
    pub(in crate::embed) async fn start(name: &str, config: OpenAiConfig) -> Result<Self, StartError> {
        let url = endpoint(&config.base_url)?;
        let key = authorization(&config)?;
        // A redirected POST would lose its body, and a key must not travel on.
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .tcp_nodelay(true)
            .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")));
        if url.scheme() == "http" {
            // No host without root certificates is kept from plain HTTP.
            builder = builder.tls_certs_only([]);
        }
        let made = |error: reqwest::Error| StartError::Resources { what: "the HTTP client", source: error.into() };
        let http = builder.build().map_err(made)?;
        let concurrency = config.concurrency.clamp(1, 1024);
        let mut client = Self {
            http,
            url,
            key,
            dimensions: config.dimensions.unwrap_or(0),
            slots: Semaphore::new(concurrency),
            admitted: Semaphore::new(concurrency.saturating_add(config.queue).min(Semaphore::MAX_PERMITS)),
            config,
        };
        let deadline = Deadline::after(PROBE_PATIENCE);
        let outcome = client.embed(vec![PROBE.to_owned()], Purpose::Query, deadline).await;
        match (outcome, client.config.dimensions) {
            (Ok(vectors), wanted) => {
                let found = vectors.into_iter().flatten().next().map_or(0, |vector| vector.len());
                if !(1..=MAX_DIMENSIONS).contains(&found) || wanted.is_some_and(|wanted| wanted != found) {
                    let words = match wanted {
                        Some(wanted) => format!("dimensions: {wanted} are set, the endpoint's vectors have {found}"),
                        None => format!("the endpoint's vectors have {found} dimensions"),
                    };
                    return Err(StartError::Settings(words));
                }
                client.dimensions = found;
            }
            (Err(EmbedError::Unavailable(words)), Some(_)) => {
                tracing::warn!(embedder = name, words, "not answering yet; its dimensions are taken from the settings");
            }
            (Err(error), _) => return Err(StartError::Probe(error)),
        }
        Ok(client)
    }

    /// One batch, tried again after what may pass.
    async fn request(&self, texts: &[String], deadline: Deadline) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let _slot = match tokio::time::timeout(deadline.left(), self.slots.acquire()).await {
                Ok(slot) => slot,
                Err(_) => return Err(EmbedError::Deadline),
            };
            let left = deadline.left();
            if left.is_zero() {
                return Err(EmbedError::Deadline);
            }
            let (words, asked) = match self.once(texts, self.config.timeout.min(left)).await {
                Ok(vectors) => return Ok(vectors),
                Err(Fault::Lasting(error)) => return Err(error),
                Err(Fault::Passing { words, asked }) => (words, asked),
            };
            drop(_slot);
            let pause = pause(tries, asked, rand::random());
            if tries > self.config.retries || pause >= deadline.left() {
                return Err(EmbedError::Unavailable(format!("{words} (try {tries})")));
            }
            tracing::debug!(words, tries, pause_ms = pause.as_millis(), "trying again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn once(&self, texts: &[String], timeout: Duration) -> Result<Vec<Vec<f32>>, Fault> {
        match tokio::time::timeout(timeout, self.exchange(texts)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                Err(Fault::Passing { words: format!("no answer within {} ms", timeout.as_millis()), asked: None })
            }
        }
    }

    async fn exchange(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Fault> {
        let question = Question { model: &self.config.model, input: texts };
        let body = serde_json::to_vec(&question).map_err(|error| lasting(error.to_string()))?;
        let mut request = self.http.post(self.url.clone()).header(header::CONTENT_TYPE, "application/json").body(body);
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, key.header());
        }
        let response = request.send().await.map_err(broken)?;
        let (status, asked) = (response.status(), retry_after(response.headers()));
        let body = self.read(response, texts.len()).await?;
        if status == StatusCode::OK {
            return answer::vectors(&body, texts.len()).map_err(Fault::Lasting);
        }
        let mut words = format!("HTTP {status}");
        if let Some(more) = answer::failure(&body) {
            words = format!("{words}: {}", self.key.as_ref().map_or(more.clone(), |key| key.redact(&more)));
        }
        if may_pass(status) { Err(Fault::Passing { words, asked }) } else { Err(lasting(words)) }
    }

    /// An answer's bytes, no more than vectors can take.
    async fn read(&self, mut response: reqwest::Response, num_texts: usize) -> Result<Vec<u8>, Fault> {
        let dimensions = if self.dimensions == 0 { MAX_DIMENSIONS } else { self.dimensions };
        let most =
            (num_texts.saturating_mul(dimensions).saturating_mul(BYTES_A_NUMBER) + (1 << 20)).min(MAX_ANSWER_BYTES);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if body.len() + chunk.len() > most {
                return Err(Fault::Lasting(EmbedError::Answer(format!("it has more than {most} bytes"))));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

fn lasting(words: String) -> Fault {
    Fault::Lasting(EmbedError::Unavailable(words))
}

/// A connection that could not be made or broke. The URL is left out: it is the operator's.
fn broken(error: reqwest::Error) -> Fault {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        words = format!("{words}: {inner}");
        source = inner.source();
    }
    Fault::Passing { words, asked: None }
}

fn endpoint(base_url: &str) -> Result<reqwest::Url, StartError> {
    let fault = |words: &str| StartError::Settings(format!("base_url: {words}"));
    let url = reqwest::Url::parse(&format!("{}/embeddings", base_url.trim_end_matches('/')))
        .map_err(|error| fault(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if !url.cannot_be_a_base() => {}
        _ => return Err(fault("it must begin with http:// or https://")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("it must hold no user and no password"));
    }
    Ok(url)
}

#[tonic::async_trait]
impl Embedder for OpenAi {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    async fn embed(
        &self,
        texts: Vec<String>,
        _: Purpose,
        deadline: Deadline,
    ) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let Ok(_admitted) = self.admitted.try_acquire() else {
            return Err(EmbedError::Overloaded(format!("{} calls are waiting already", self.config.queue)));
        };
        let cut = batches(&texts, self.config.max_batch_texts, self.config.max_batch_chars);
        let requests: Vec<_> = cut.into_iter().map(|batch| self.request(&texts[batch], deadline)).collect();
        let parts: Vec<Vec<Vec<f32>>> =
            stream::iter(requests).buffered(self.config.concurrency.max(1)).try_collect().await?;
        Ok(parts.into_iter().flatten().map(Some).collect())
    }
}
