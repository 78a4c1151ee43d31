//! A bucket for a cluster of processes: moto, which plays S3, started here; or one named by the environment.
//!
//! moto looks whether a name is taken and writes in two steps, so with threads two racers could win. Here it serves one
//! request at a time, which makes it as atomic as S3 is. See also store/tests/conformance/s3.rs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

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

/// A bucket that lives as long as this.
pub struct Bucket {
    pub(super) url: String,
    pub(super) envs: Vec<(&'static str, String)>,
    server: Option<Child>,
}

impl Bucket {
    /// ANTIPHON_TEST_S3_URL, or else moto. Nothing where there is neither, and ANTIPHON_REQUIRE_S3 is not 1.
    pub fn start() -> Option<Self> {
        if let Ok(url) = std::env::var("ANTIPHON_TEST_S3_URL") {
            let url = format!("{}/{:016x}", url.trim_end_matches('/'), rand::random::<u64>());
            return Some(Self { url, envs: Vec::new(), server: None });
        }
        let started = start_moto();
        let is_required = std::env::var("ANTIPHON_REQUIRE_S3").is_ok_and(|value| value == "1");
        assert!(
            started.is_some() || !is_required,
            "ANTIPHON_REQUIRE_S3=1, but python3 with moto[server] did not start"
        );
        started
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // It may have ended by itself.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn start_moto() -> Option<Bucket> {
    let mut command = Command::new("python3");
    command.args(["-c", MOTO]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().ok()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take()?).read_line(&mut line).ok()?;
    let bucket = |port: u16| {
        let envs = vec![
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ];
        Bucket { url: "s3://bucket/prefix".to_owned(), envs, server: Some(server) }
    };
    let port: u16 = line.trim().parse().ok()?;
    let bucket = bucket(port);
    create_bucket(port)?;
    Some(bucket)
}

fn create_bucket(port: u16) -> Option<()> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request =
        format!("PUT /bucket HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1).filter(|code| *code == "200").map(drop)
}
