//! An HTTP endpoint of OpenAI's form in this process, over a static model, that fails as it is told to. Written by hand over
//! sockets, so that it can also break off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antiphon_coordinator::embed::{Embedders, Model, Purpose};
use antiphon_proto::deadline::Deadline;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the endpoint does with one request instead of answering well.
#[derive(Debug, Clone)]
pub enum Mischief {
    /// Answers with this status, these header lines and this body.
    Status(u16, String, String),
    /// Puts the vectors in another order, with their indexes.
    Shuffle,
    /// Cuts a component off the vectors.
    ShortVectors,
    /// Leaves the last vector out.
    TooFew,
    /// Breaks the JSON off, though the length is right.
    BrokenJson,
    /// Closes the connection in the middle of the answer.
    Torn,
    /// Says nothing for so long.
    Silence(Duration),
    /// Numbers that float32 doesn't hold.
    NotFinite,
}

/// One request that came.
#[derive(Debug, Clone)]
pub struct Asked {
    pub at: Instant,
    pub path: String,
    pub authorization: Option<String>,
    pub model: String,
    pub input: Vec<String>,
}

/// The endpoint.
pub struct Endpoint {
    pub url: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    model: Model,
    plan: Mutex<VecDeque<Mischief>>,
    asked: Mutex<Vec<Asked>>,
    under_way: Mutex<(usize, usize)>,
    pause: Mutex<Duration>,
}

impl Endpoint {
    /// Listens on a port of its own.
    pub async fn start(models: &Embedders, model: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(State {
            model: models.find(model).unwrap().clone(),
            plan: Mutex::default(),
            asked: Mutex::default(),
            under_way: Mutex::default(),
            pause: Mutex::default(),
        });
        let task = tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                while let Ok((socket, _)) = listener.accept().await {
                    let state = Arc::clone(&state);
                    tokio::spawn(async move { serve(socket, &state).await });
                }
            }
        });
        Self { url, state, task }
    }

    /// What to do with the next requests.
    pub fn plan(&self, mischief: &[Mischief]) {
        *self.state.plan.lock().unwrap() = mischief.iter().cloned().collect();
    }

    /// How long every answer takes.
    pub fn pause(&self, pause: Duration) {
        *self.state.pause.lock().unwrap() = pause;
    }

    /// What was asked since the last look.
    pub fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.asked.lock().unwrap())
    }

    /// Most requests there were at once.
    pub fn most_at_once(&self) -> usize {
        self.state.under_way.lock().unwrap().1
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Requests of one connection, until it closes.
async fn serve(mut socket: TcpStream, state: &State) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            read_more(&mut socket, &mut buffer).await?;
        };
        let head = String::from_utf8(buffer[..head_end].to_vec()).ok()?;
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
        };
        let length: usize = header("content-length")?.parse().ok()?;
        while buffer.len() < head_end + length {
            read_more(&mut socket, &mut buffer).await?;
        }
        let body: Value = serde_json::from_slice(&buffer[head_end..head_end + length]).ok()?;
        let input: Vec<String> =
            body["input"].as_array()?.iter().map(|text| text.as_str().unwrap().to_owned()).collect();
        state.asked.lock().unwrap().push(Asked {
            at: Instant::now(),
            path: head.split(' ').nth(1)?.to_owned(),
            authorization: header("authorization"),
            model: body["model"].as_str()?.to_owned(),
            input: input.clone(),
        });
        buffer.drain(..head_end + length);
        {
            let mut under_way = state.under_way.lock().unwrap();
            under_way.0 += 1;
            under_way.1 = under_way.1.max(under_way.0);
        }
        let pause = *state.pause.lock().unwrap();
        tokio::time::sleep(pause).await;
        let mischief = state.plan.lock().unwrap().pop_front();
        let outcome = answer(&mut socket, state, &input, mischief).await;
        state.under_way.lock().unwrap().0 -= 1;
        outcome?;
    }
}

async fn read_more(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    match socket.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

async fn answer(socket: &mut TcpStream, state: &State, input: &[String], mischief: Option<Mischief>) -> Option<()> {
    let texts: Vec<&str> = input.iter().map(String::as_str).collect();
    let vectors = state.model.embed(&texts, Purpose::Document, Deadline::after(Duration::from_secs(30))).await.unwrap();
    let zeros = || vec![0.0; state.model.dimensions()];
    let mut items: Vec<Value> = vectors
        .into_iter()
        .enumerate()
        .map(|(index, vector)| json!({ "index": index, "embedding": vector.unwrap_or_else(zeros) }))
        .collect();
    match &mischief {
        Some(Mischief::Shuffle) => items.reverse(),
        Some(Mischief::ShortVectors) => items.iter_mut().for_each(|item| {
            item["embedding"].as_array_mut().unwrap().pop();
        }),
        Some(Mischief::TooFew) => drop(items.pop()),
        Some(Mischief::NotFinite) => items[0]["embedding"][0] = json!(1e300),
        Some(Mischief::Silence(silence)) => tokio::time::sleep(*silence).await,
        Some(Mischief::Status(..) | Mischief::BrokenJson | Mischief::Torn) | None => {}
    }
    let (mut status, mut headers) = (200, String::new());
    let mut body = json!({ "object": "list", "data": items, "model": "m" }).to_string();
    match &mischief {
        Some(Mischief::Status(code, lines, words)) => (status, headers, body) = (*code, lines.clone(), words.clone()),
        Some(Mischief::BrokenJson) => body.truncate(body.len() / 2),
        _ => {}
    }
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    let mut bytes = (head + &body).into_bytes();
    if matches!(mischief, Some(Mischief::Torn)) {
        bytes.truncate(bytes.len() - 3);
    }
    socket.write_all(&bytes).await.ok()?;
    (!matches!(mischief, Some(Mischief::Torn))).then_some(())
}
