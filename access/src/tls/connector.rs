//! The client's side: connections to servers whose certificates are checked.

use std::path::PathBuf;
use std::sync::Arc;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};

use super::{HTTP2, pem, provider};
use crate::error::AccessError;
use crate::watched::Watched;

/// What a client goes by.
#[derive(Debug, Clone, Default)]
pub struct ClientTlsFiles {
    /// Authorities of servers' certificates. None: those of the system.
    pub authorities: Option<PathBuf>,
    /// Certificates and private key that the client shows where it is asked for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that servers' certificates must bear. None: the host of the address that is called.
    pub server_name: Option<String>,
}

/// TLS as a client speaks it.
#[derive(Debug, Clone)]
pub struct ClientTls {
    config: Arc<Watched<ClientConfig>>,
    server_name: Option<ServerName<'static>>,
}

impl ClientTls {
    /// Reads the files and follows them.
    ///
    /// # Errors
    /// [`AccessError`] where a file can't be read, holds no certificate or key, or they don't go together; where the system
    /// has no authorities; where the server's name is none.
    pub fn start(files: ClientTlsFiles) -> Result<Self, AccessError> {
        let ClientTlsFiles { authorities, identity, server_name } = files;
        let server_name = server_name.map(name).transpose()?;
        let has_authorities = authorities.is_some();
        let identity = identity.into_iter().flat_map(|(certificates, key)| [certificates, key]);
        let paths: Vec<PathBuf> = authorities.into_iter().chain(identity).collect();
        let make = {
            let paths = paths.clone();
            move |bytes: &[Vec<u8>], _: Option<&ClientConfig>| config(has_authorities, &paths, bytes)
        };
        let config = Arc::new(Watched::start("the client's certificates", paths, Box::new(make))?);
        Ok(Self { config, server_name })
    }

    /// A channel to an `https://` endpoint that connects when it is first used, and again when the connection broke.
    pub fn connect_lazy(&self, endpoint: &Endpoint) -> Channel {
        let tls = self.clone();
        endpoint.connect_with_connector_lazy(tower::service_fn(move |uri| tls.clone().dial(uri)))
    }

    /// A channel that is connected.
    ///
    /// # Errors
    /// The transport's, where nobody answers or the server's certificate is not right.
    pub async fn connect(&self, endpoint: &Endpoint) -> Result<Channel, tonic::transport::Error> {
        let tls = self.clone();
        endpoint.connect_with_connector(tower::service_fn(move |uri| tls.clone().dial(uri))).await
    }

    async fn dial(self, uri: Uri) -> std::io::Result<TokioIo<TlsStream<TcpStream>>> {
        self.stream(&uri).await.map(TokioIo::new)
    }

    /// A connection, for whoever speaks HTTP/2 by itself.
    ///
    /// # Errors
    /// Where nobody answers, or the server's certificate is not right.
    pub async fn stream(&self, uri: &Uri) -> std::io::Result<TlsStream<TcpStream>> {
        let failed = |words: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, words);
        let host = uri.host().ok_or_else(|| failed(format!("{uri} names no host")))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server_name = match &self.server_name {
            Some(name) => name.clone(),
            None => name(host.clone()).map_err(|error| failed(error.to_string()))?,
        };
        let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(443))).await?;
        stream.set_nodelay(true)?;
        TlsConnector::from(self.config.current()).connect(server_name, stream).await
    }
}

fn name(name: String) -> Result<ServerName<'static>, AccessError> {
    let words = format!("{name:?} is neither a DNS name nor an IP address");
    ServerName::try_from(name).map_err(|_| AccessError::Tls(words))
}

fn config(has_authorities: bool, paths: &[PathBuf], bytes: &[Vec<u8>]) -> Result<ClientConfig, AccessError> {
    let mut files = paths.iter().zip(bytes);
    let roots = match has_authorities.then(|| files.next()).flatten() {
        Some((path, bytes)) => pem::authorities(path, bytes)?,
        None => system_authorities()?,
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| AccessError::Tls(error.to_string()))?
        .with_root_certificates(roots);
    let mut config = match (files.next(), files.next()) {
        (Some((certificates, certificates_bytes)), Some((key, key_bytes))) => builder
            .with_client_auth_cert(
                pem::certificates(certificates, certificates_bytes)?,
                pem::private_key(key, key_bytes)?,
            )
            .map_err(|error| AccessError::file(key, format!("does not go with {}: {error}", certificates.display())))?,
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Ok(config)
}

fn system_authorities() -> Result<RootCertStore, AccessError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // A store may hold old ones that can't be read; those that can be are what counts.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(AccessError::Tls("the system has no authorities of certificates; name a file of them".to_owned()));
    }
    Ok(roots)
}
