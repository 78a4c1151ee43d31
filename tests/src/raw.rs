//! HTTP/2 by hand: requests that no well-behaved client would send, and what the server says to them word for word.
//!
//! Not for calls that a client of tonic can make: see [`crate::client`].

use bytes::Bytes;
use http::{HeaderMap, Request};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tonic::Status;

use crate::secure::secure;

/// One HTTP/2 connection.
#[derive(Clone)]
pub struct Raw {
    authority: String,
    token: Option<String>,
    send: h2::client::SendRequest<Bytes>,
}

/// What came back.
#[derive(Debug)]
pub struct RawAnswer {
    pub http_status: u16,
    pub headers: HeaderMap,
    /// All of the body, with the prefixes of its messages.
    pub body: Vec<u8>,
    /// Bytes of names and values of the headers that end the answer.
    pub num_status_bytes: usize,
    /// The gRPC status, from trailers or from headers alone.
    pub status: Status,
}

impl Raw {
    /// Connects.
    pub async fn connect(url: &str) -> Self {
        let authority = url.split_once("://").unwrap().1.to_owned();
        match secure() {
            None => Self::over(authority.clone(), TcpStream::connect(&authority).await.unwrap()).await,
            Some(secure) => {
                Self::over(authority, secure.client_tls().stream(&url.parse().unwrap()).await.unwrap()).await
            }
        }
    }

    async fn over(authority: String, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(64 << 20).initial_connection_window_size(64 << 20).max_header_list_size(1 << 20);
        let (send, connection) = builder.handshake(stream).await.unwrap();
        tokio::spawn(async move {
            // However it ends, the calls on it have heard.
            let _ = connection.await;
        });
        let token = secure().map(|secure| format!("Bearer {}", secure.token()));
        Self { authority, token, send }
    }

    /// The same connection, for calls that send no token unless they name one.
    pub fn without_token(self) -> Self {
        Self { token: None, ..self }
    }

    /// Sends a message as bytes, in its frame.
    pub async fn call(&self, method: &str, message: &[u8]) -> RawAnswer {
        self.send(method, &[], &frame(message), true).await
    }

    /// Sends a message of the contract with headers of its own.
    pub async fn call_with(&self, method: &str, headers: &[(&str, &str)], message: &impl Message) -> RawAnswer {
        self.send(method, headers, &frame(&message.encode_to_vec()), true).await
    }

    /// Sends a body as it is; without `end`, more never comes.
    pub async fn send(&self, method: &str, headers: &[(&str, &str)], body: &[u8], end: bool) -> RawAnswer {
        let mut request = Request::post(format!("http://{}/{method}", self.authority));
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let usual = [("content-type", "application/grpc"), ("te", "trailers")];
        for (name, value) in usual.into_iter().chain(self.token.as_deref().map(|token| ("authorization", token))) {
            if !names.contains(&name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut send = self.send.clone().ready().await.unwrap();
        let (response, mut stream) = send.send_request(request.body(()).unwrap(), false).unwrap();
        // The server may have answered and closed the stream already.
        let _ = stream.send_data(Bytes::copy_from_slice(body), end);
        let response = response.await.unwrap();
        let (parts, mut incoming) = response.into_parts();
        let mut body = Vec::new();
        while let Some(chunk) = incoming.data().await {
            let Ok(chunk) = chunk else { break };
            body.extend_from_slice(&chunk);
            incoming.flow_control().release_capacity(chunk.len()).unwrap();
        }
        let trailers = incoming.trailers().await.ok().flatten();
        drop(stream);
        let ending = trailers.as_ref().unwrap_or(&parts.headers);
        let status = Status::from_header_map(ending).unwrap_or_else(|| Status::unknown("no grpc-status"));
        RawAnswer {
            http_status: parts.status.as_u16(),
            num_status_bytes: ending.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum(),
            headers: parts.headers,
            body,
            status,
        }
    }
}

/// A message with the prefix that gRPC gives it.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend_from_slice(message);
    framed
}

/// A field of protobuf with a length: its tag, its length, its bytes.
pub fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut out);
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}
