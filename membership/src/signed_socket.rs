//! Gossip that strangers cannot take part in: UDP datagrams, each followed by its HMAC-SHA-256.
//!
//! chitchat encodes its messages for its own socket only. So that socket is bound to the loopback interface, and what it
//! sends goes through this one, which adds the code; what comes from outside is checked here and only then handed to it.
//! Whoever records a datagram can send it again: what it tells is older than what is known, and is passed over.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use chitchat::ChitchatEnvelope;
use chitchat::transport::{RecvOutcome, SendOutcome, Socket, Transport, UdpTransport};
use tokio::net::UdpSocket;

use crate::secret::{CODE_BYTES, Secret};

/// Largest datagram of UDP over IPv4, in bytes.
const MAX_DATAGRAM: usize = 65_507;

/// How long to wait after an error of the socket.
const RECEIVE_AGAIN_AFTER: Duration = Duration::from_millis(10);
/// How long a datagram of a member may take over the loopback interface.
const TAKE_WITHIN: Duration = Duration::from_millis(100);

/// Opens [`SignedSocket`]s. Takes the socket bound before, so that its port is known.
pub(crate) struct SignedTransport {
    pub(crate) socket: std::sync::Mutex<Option<std::net::UdpSocket>>,
    pub(crate) secret: Secret,
}

#[async_trait]
impl Transport for SignedTransport {
    async fn open(&self, listen: SocketAddr) -> anyhow::Result<Box<dyn Socket>> {
        let bound = self.socket.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let outside = match bound {
            Some(bound) => UdpSocket::from_std(bound)?,
            None => UdpSocket::bind(listen).await?,
        };
        let inner = UdpTransport.open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let bridge = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        // Takes datagrams of the inner socket alone.
        bridge.connect(inner.local_addr()?).await?;
        let buffer = vec![0; MAX_DATAGRAM + 1].into_boxed_slice();
        Ok(Box::new(SignedSocket { inner, bridge, outside, secret: self.secret.clone(), buffer, handed: None }))
    }
}

struct SignedSocket {
    /// chitchat's own, on the loopback interface.
    inner: Box<dyn Socket>,
    /// Its peer here.
    bridge: UdpSocket,
    /// The one that others see.
    outside: UdpSocket,
    secret: Secret,
    buffer: Box<[u8]>,
    /// Who sent the datagram that was handed to the inner socket and not taken from it yet.
    handed: Option<SocketAddr>,
}

#[async_trait]
impl Socket for SignedSocket {
    fn local_addr(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.outside.local_addr()?)
    }

    async fn send(&mut self, to: SocketAddr, envelope: ChitchatEnvelope) -> anyhow::Result<SendOutcome> {
        self.inner.send(self.bridge.local_addr()?, envelope).await?;
        let len = self.bridge.recv(&mut self.buffer).await?;
        let code = self.secret.code(&self.buffer[..len]);
        let signed = [&self.buffer[..len], code.as_ref()].concat();
        // One that is too large or cannot be sent now is as good as lost on its way: others follow.
        if let Err(error) = self.outside.send_to(&signed, to).await {
            tracing::debug!(%error, %to, bytes = signed.len(), "a datagram of gossip was not sent");
        }
        Ok(SendOutcome { num_bytes_sent: signed.len() })
    }

    /// May be dropped at any await: what was handed in is taken out by the next call.
    async fn recv(&mut self) -> anyhow::Result<RecvOutcome> {
        loop {
            let Some(sender) = self.handed else {
                let (len, sender) = match self.outside.recv_from(&mut self.buffer).await {
                    Ok(received) => received,
                    // Such as a peer's refusal of an earlier datagram.
                    Err(error) => {
                        tracing::debug!(%error, "no datagram of gossip was received");
                        tokio::time::sleep(RECEIVE_AGAIN_AFTER).await;
                        continue;
                    }
                };
                let Some((message, code)) = self.buffer[..len].split_last_chunk::<CODE_BYTES>() else { continue };
                if !self.secret.verify(message, code) {
                    tracing::debug!(%sender, "gossip of a stranger, or of a member with another secret, was dropped");
                    continue;
                }
                // Sent without waiting, so that it is either handed over and noted, or neither.
                if self.bridge.try_send(message).is_ok() {
                    self.handed = Some(sender);
                }
                continue;
            };
            // The inner socket drops what it cannot decode and waits on: not for ever.
            let taken = tokio::time::timeout(TAKE_WITHIN, self.inner.recv()).await;
            self.handed = None;
            match taken {
                Ok(outcome) => {
                    let outcome = outcome?;
                    return Ok(RecvOutcome { from_addr: sender, ..outcome });
                }
                Err(_) => tracing::debug!(%sender, "a datagram of gossip could not be read"),
            }
        }
    }
}
