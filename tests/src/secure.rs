//! The same tests over TLS with certificates on both sides, with a token, and with a secret of the cluster: where
//! ANTIPHON_TEST_SECURE is set, every server asks for them, and every client of these tests has them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use antiphon_access::tls::{ClientTls, ClientTlsFiles, ServerTls, ServerTlsFiles};
use antiphon_access::tokens::{TokenEntry, TokenSecret, Tokens, with_token};
use antiphon_access::{AccessLayer, Audit};
use antiphon_membership::{Dialer, Secret};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Endpoint;
use tonic::{Request, Status};

/// The name that the servers' certificate bears.
const SERVER_NAME: &str = "server.antiphon.test";
/// The name of the cluster whose members have no other secret.
const CLUSTER: &str = "antiphon";

/// A connection that sends a token along, if the tests have one.
pub type Channel = InterceptedService<tonic::transport::Channel, Bearer>;

/// Certificates, keys, tokens and a secret, in a folder.
pub struct Secure {
    folder: PathBuf,
    token: String,
}

/// What all servers ask for; none where the tests run without.
pub fn secure() -> Option<&'static Secure> {
    static SECURE: OnceLock<Option<Secure>> = OnceLock::new();
    SECURE.get_or_init(|| std::env::var_os("ANTIPHON_TEST_SECURE").map(|_| Secure::prepare())).as_ref()
}

/// Sends the token along, if there is one.
#[derive(Clone)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Bearer {
    pub fn of(token: &str) -> Self {
        Self(Some(format!("Bearer {token}").parse().unwrap()))
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// A channel to a server that connects when it is first used.
pub fn connect_lazy(url: &str) -> Channel {
    let endpoint = Endpoint::from_shared(url.to_owned()).unwrap();
    match secure() {
        None => InterceptedService::new(endpoint.connect_lazy(), Bearer(None)),
        Some(secure) => InterceptedService::new(secure.client_tls().connect_lazy(&endpoint), Bearer::of(&secure.token)),
    }
}

/// How a member of a cluster of the default name calls nodes.
pub fn dialer() -> Dialer {
    match secure() {
        None => Dialer::new(Some(Secret::of_name(CLUSTER)), None),
        Some(secure) => dialer_with(Some(Secret::from_file(&secure.file("secret")).unwrap())),
    }
}

/// How somebody calls nodes who proves itself by another secret, or by none.
pub fn dialer_with(secret: Option<Secret>) -> Dialer {
    Dialer::new(secret, secure().map(Secure::client_tls))
}

/// What servers ask callers for.
pub fn layer() -> AccessLayer {
    let tokens = secure().map(|secure| Tokens::start(&secure.file("tokens.toml")).unwrap());
    AccessLayer::new(tokens, Audit::Documents)
}

impl Secure {
    /// The folder of the files is beside the tests' binaries, made once for all of them.
    fn prepare() -> Self {
        let test = std::env::current_exe().unwrap();
        let parent = test.parent().unwrap();
        let folder = parent.join("test-secure");
        if !folder.is_dir() {
            let made = tempfile::tempdir_in(parent).unwrap();
            make(made.path());
            // Of several that make it at once, one is first, and the others' are removed.
            let _ = std::fs::rename(made.path(), &folder);
        }
        let token = std::fs::read_to_string(folder.join("token")).unwrap();
        Self { folder, token }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The token that may do everything.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// TLS of a client.
    pub fn client_tls(&self) -> ClientTls {
        ClientTls::start(ClientTlsFiles {
            authorities: Some(self.file("ca.pem")),
            identity: Some((self.file("cert.pem"), self.file("key.pem"))),
            server_name: Some(SERVER_NAME.to_owned()),
        })
        .unwrap()
    }

    /// TLS of a server.
    pub fn server_tls(&self) -> ServerTls {
        ServerTls::start(ServerTlsFiles {
            certificates: self.file("cert.pem"),
            key: self.file("key.pem"),
            client_authorities: Some(self.file("ca.pem")),
        })
        .unwrap()
    }

    /// The settings of a server process.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let file = |name: &str| self.file(name).display().to_string();
        vec![
            ("tls.cert_file", file("cert.pem")),
            ("tls.key_file", file("key.pem")),
            ("tls.client_ca_file", file("ca.pem")),
            ("tls.ca_file", file("ca.pem")),
            ("tls.server_name", SERVER_NAME.to_owned()),
            ("access.tokens_file", file("tokens.toml")),
            ("cluster.secret_file", file("secret")),
        ]
    }

    /// The environment of a client process.
    pub fn client_envs(&self) -> Vec<(&'static str, String)> {
        let file = |name: &str| self.file(name).display().to_string();
        vec![
            ("ANTIPHON_TLS_CA", file("ca.pem")),
            ("ANTIPHON_TLS_CERT", file("cert.pem")),
            ("ANTIPHON_TLS_KEY", file("key.pem")),
            ("ANTIPHON_TLS_SERVER_NAME", SERVER_NAME.to_owned()),
            ("ANTIPHON_TOKEN_FILE", file("token")),
        ]
    }
}

fn make(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap();
    write("ca.pem", &authority.pem());
    write("cert.pem", &params.signed_by(&key, &authority).unwrap().pem());
    write("key.pem", &key.serialize_pem());
    let secret = TokenSecret::random().unwrap();
    write("token", secret.reveal());
    write("secret", TokenSecret::random().unwrap().reveal());
    let entry = TokenEntry {
        name: "tests".to_owned(),
        sha256: secret.sha256(),
        scopes: ["read:*", "write:*", "admin:*"].map(str::to_owned).to_vec(),
        expires: None,
        max_calls_per_s: None,
        max_concurrent_calls: None,
        max_message_bytes: None,
    };
    write("tokens.toml", &with_token("", entry).unwrap());
}
