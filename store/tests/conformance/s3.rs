//! A bucket to test with: moto, started here, or one named by the environment.
//!
//! moto looks whether the name is taken and writes in two steps, so with its usual threads two racers can win; real S3
//! decides atomically. Here it serves one request at a time, which makes it as atomic.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use antiphon_store::Store;

/// Prints its port; ends when its standard input does, so it never outlives the test.
const MOTO: &str = r#"
import os, sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
def wait():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=wait, daemon=True).start()
print(server.server_port, flush=True)
server.serve_forever()
"#;

pub struct Bucket {
    url: String,
    options: Vec<(&'static str, String)>,
    _server: Option<Child>,
}

impl Bucket {
    /// Nothing where there is no server and none is required.
    pub fn start() -> Option<Self> {
        if let Ok(url) = std::env::var("ANTIPHON_TEST_S3_URL") {
            let run = format!("{}/{:016x}", url.trim_end_matches('/'), rand::random::<u64>());
            return Some(Self { url: run, options: Vec::new(), _server: None });
        }
        let started = start_moto();
        if started.is_none() {
            let required = std::env::var("ANTIPHON_REQUIRE_S3").is_ok_and(|value| value == "1");
            assert!(!required, "ANTIPHON_REQUIRE_S3=1, but python3 with moto[server] did not start");
            println!("skipped: the S3 conformance run needs python3 with moto[server]");
        }
        started
    }

    pub fn store(&self, prefix: &str) -> Store {
        let options: Vec<_> = self.options.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Store::open_with(&format!("{}/{prefix}", self.url), &options).unwrap()
    }
}

fn start_moto() -> Option<Bucket> {
    let mut server = Command::new("python3")
        .args(["-c", MOTO])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take()?).read_line(&mut line).ok()?;
    let port: u16 = line.trim().parse().ok()?;

    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(connection, "PUT /antiphon HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.lines().next().is_some_and(|status| status.contains("200")), "{answer}");

    Some(Bucket {
        url: "s3://antiphon".to_owned(),
        options: vec![
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ],
        _server: Some(server),
    })
}
