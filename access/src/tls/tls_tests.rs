#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::StreamExt as _;
use tonic::transport::Endpoint;

use super::*;

/// An authority, and the folder that its files are in.
struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { folder: folder.join(name), issuer };
        std::fs::create_dir_all(&authority.folder).unwrap();
        std::fs::write(authority.file(), authority.issuer.pem()).unwrap();
        authority
    }

    fn file(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// Certificate and key for a name, in files of that name.
    fn issue(&self, file: &str, names: &[&str]) -> (PathBuf, PathBuf) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let paths = (self.folder.join(format!("{file}.pem")), self.folder.join(format!("{file}.key")));
        std::fs::write(&paths.0, certificate.pem()).unwrap();
        std::fs::write(&paths.1, key.serialize_pem()).unwrap();
        paths
    }
}

fn server(identity: (PathBuf, PathBuf), client_authorities: Option<PathBuf>) -> Result<ServerTls, crate::AccessError> {
    ServerTls::start(ServerTlsFiles { certificates: identity.0, key: identity.1, client_authorities })
}

/// Serves one byte of each connection back.
async fn echo(tls: ServerTls) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut incoming = Box::pin(tls.incoming(listener));
    tokio::spawn(async move {
        while let Some(connection) = incoming.next().await {
            let mut connection = connection.unwrap();
            tokio::spawn(async move {
                let mut byte = [0];
                connection.read_exact(&mut byte).await?;
                connection.write_all(&byte).await?;
                connection.flush().await
            });
        }
    });
    address
}

/// Whether a client gets its byte back.
async fn speaks(files: &ClientTlsFiles, address: std::net::SocketAddr) -> bool {
    let tls = ClientTls::start(files.clone()).unwrap();
    let Ok(mut connection) = tls.stream(&format!("https://{address}").parse().unwrap()).await else { return false };
    let mut byte = [0];
    let exchange = async {
        connection.write_all(b"x").await?;
        connection.read_exact(&mut byte).await
    };
    exchange.await.is_ok() && byte == *b"x"
}

#[tokio::test]
async fn only_certificates_of_the_authorities_that_were_named_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new(folder.path(), "ours"), Authority::new(folder.path(), "theirs"));
    let address = echo(server(ours.issue("server", &["127.0.0.1"]), Some(ours.file())).unwrap()).await;
    let client = |authority: &Authority, identity| ClientTlsFiles {
        authorities: Some(authority.file()),
        identity,
        server_name: None,
    };
    assert!(speaks(&client(&ours, Some(ours.issue("client", &["anyone"]))), address).await);
    assert!(!speaks(&client(&ours, None), address).await, "no certificate was shown");
    assert!(!speaks(&client(&ours, Some(theirs.issue("client", &["anyone"]))), address).await, "one of a stranger");
    assert!(
        !speaks(&client(&theirs, Some(ours.issue("client", &["anyone"]))), address).await,
        "the server is a stranger"
    );
    // What is no TLS at all, and what never says a word, keep nobody out.
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let _mute = TcpStream::connect(address).await.unwrap();
    assert!(speaks(&client(&ours, Some(ours.issue("client", &["anyone"]))), address).await);
}

#[tokio::test]
async fn the_server_must_bear_the_name_that_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(folder.path(), "ours");
    let address = echo(server(ours.issue("server", &["node.antiphon"]), None).unwrap()).await;
    let client = |name: Option<&str>| ClientTlsFiles {
        authorities: Some(ours.file()),
        identity: None,
        server_name: name.map(str::to_owned),
    };
    assert!(speaks(&client(Some("node.antiphon")), address).await);
    assert!(!speaks(&client(None), address).await && !speaks(&client(Some("other.antiphon")), address).await);
    assert!(ClientTls::start(client(Some("not a name"))).is_err());
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (former, later) = (Authority::new(folder.path(), "former"), Authority::new(folder.path(), "later"));
    let (certificate, key) = former.issue("server", &["127.0.0.1"]);
    let address = echo(server((certificate.clone(), key.clone()), None).unwrap()).await;
    let client =
        |authority: &Authority| ClientTlsFiles { authorities: Some(authority.file()), ..ClientTlsFiles::default() };
    assert!(speaks(&client(&former), address).await && !speaks(&client(&later), address).await);
    let renewed = later.issue("server", &["127.0.0.1"]);
    std::fs::copy(&renewed.0, &certificate).unwrap();
    std::fs::copy(&renewed.1, &key).unwrap();
    let mut tries = 0;
    while !speaks(&client(&later), address).await {
        tries += 1;
        assert!(tries < 300, "the renewed certificate is not used");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(!speaks(&client(&former), address).await);
}

#[tokio::test]
async fn files_that_do_not_go_together_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(folder.path(), "ours");
    let ((certificate, key), (_, other_key)) = (ours.issue("a", &["a"]), ours.issue("b", &["b"]));
    let words = |identity, authorities| server(identity, authorities).unwrap_err().to_string();
    assert!(words((certificate.clone(), other_key), None).contains("b.key: does not go with"));
    assert!(words((key.clone(), certificate.clone()), None).contains("a.key: holds no certificate"));
    assert!(words((certificate.clone(), certificate.clone()), None).contains("a.pem: holds no private key"));
    assert!(words((certificate.clone(), key.clone()), Some(key.clone())).contains("a.key: holds no certificate"));
    assert!(words((folder.path().join("none"), key.clone()), None).contains("none: "));
    // Nothing of what a file holds gets out.
    let secret = std::fs::read_to_string(&key).unwrap();
    let line = secret.lines().nth(1).unwrap();
    assert!(!words((key.clone(), key), None).contains(line));
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_told_from_a_certificate_that_is_not_right() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(folder.path(), "ours");
    let tls = ClientTls::start(ClientTlsFiles { authorities: Some(ours.file()), ..ClientTlsFiles::default() }).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = tls.connect(&Endpoint::from_shared(format!("https://{free}")).unwrap()).await.unwrap_err();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    let mut kinds = Vec::new();
    while let Some(error) = cause {
        kinds.extend(error.downcast_ref::<std::io::Error>().map(std::io::Error::kind));
        cause = error.source();
    }
    assert!(kinds.contains(&std::io::ErrorKind::ConnectionRefused) && !is_handshake_failure(&error), "{error:?}");
    let strange = Authority::new(folder.path(), "strange").issue("server", &["127.0.0.1"]);
    let address = echo(server(strange, None).unwrap()).await;
    let error = tls.connect(&Endpoint::from_shared(format!("https://{address}")).unwrap()).await.unwrap_err();
    assert!(is_handshake_failure(&error), "{error:?}");
}
