//! The server's side: handshakes, beside each other and within a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

use super::{HTTP2, TlsConnection, pem, provider};
use crate::error::AccessError;
use crate::watched::Watched;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Handshakes under way; more connections wait in the listener's queue.
const MAX_HANDSHAKES: usize = 512;
/// Connections that are ready and not taken yet.
const MAX_READY: usize = 64;
/// How long the listener rests when it can't take connections, as where the process has too many files open.
const REST: Duration = Duration::from_millis(100);

/// Where a server's certificate is.
#[derive(Debug, Clone)]
pub struct ServerTlsFiles {
    /// Its certificate, and those that lead to its authority.
    pub certificates: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities; callers must show a certificate of one of them. None: callers show none.
    pub client_authorities: Option<PathBuf>,
}

/// TLS as a server speaks it.
#[derive(Debug)]
pub struct ServerTls {
    config: Watched<ServerConfig>,
}

impl ServerTls {
    /// Reads the files and follows them.
    ///
    /// # Errors
    /// [`AccessError`] where a file can't be read, holds no certificate or key, or they don't go together.
    pub fn start(files: ServerTlsFiles) -> Result<Self, AccessError> {
        let ServerTlsFiles { certificates, key, client_authorities } = files;
        let paths = [Some(certificates), Some(key), client_authorities].into_iter().flatten().collect::<Vec<_>>();
        let config =
            Watched::start("the server's certificate", paths.clone(), Box::new(move |bytes, _| config(&paths, bytes)))?;
        Ok(Self { config })
    }

    /// The connections of a listener that made their handshake; it is listened to for as long as the stream is held.
    pub fn incoming(self, listener: TcpListener) -> impl Stream<Item = std::io::Result<TlsConnection>> {
        let (ready, connections) = mpsc::channel(MAX_READY);
        tokio::spawn(accept_all(self, listener, ready));
        ReceiverStream::new(connections)
    }
}

type Ready = mpsc::Sender<std::io::Result<TlsConnection>>;

async fn accept_all(tls: ServerTls, listener: TcpListener, ready: Ready) {
    let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    loop {
        let Ok(permit) = Arc::clone(&handshakes).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ready.closed() => return,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let (config, ready) = (tls.config.current(), ready.clone());
        tokio::spawn(async move {
            let handshake = async {
                // Without it the end of every answer waits for the client's delayed acknowledgement, some 40 ms.
                stream.set_nodelay(true)?;
                TlsAcceptor::from(config).accept(stream).await
            };
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
                // Nobody takes it where the server stops.
                Ok(Ok(stream)) => drop(ready.send(Ok(TlsConnection(stream))).await),
                Ok(Err(error)) => tracing::debug!(%from, %error, "a handshake failed"),
                Err(_) => tracing::debug!(%from, "a handshake took too long"),
            }
            drop(permit);
        });
    }
}

fn config(paths: &[PathBuf], bytes: &[Vec<u8>]) -> Result<ServerConfig, AccessError> {
    let ([certificates, key, rest @ ..], [certificates_bytes, key_bytes, rest_bytes @ ..]) = (paths, bytes) else {
        return Err(AccessError::Tls("a server needs a certificate and a key".to_owned()));
    };
    let chain = pem::certificates(certificates, certificates_bytes)?;
    let private_key = pem::private_key(key, key_bytes)?;
    let provider = provider();
    let verifier = match (rest.first(), rest_bytes.first()) {
        (Some(path), Some(bytes)) => {
            let roots = Arc::new(pem::authorities(path, bytes)?);
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| AccessError::file(path, error))?
        }
        _ => Arc::new(NoClientAuth),
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| AccessError::Tls(error.to_string()))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, private_key)
        .map_err(|error| AccessError::file(key, format!("does not go with {}: {error}", certificates.display())))?;
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Ok(config)
}
