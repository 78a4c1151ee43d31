//! A server run as a child process of the same binary. It does not outlive the demo, unless the demo is killed by force.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::failure::Failure;

/// How long the server may take to be ready.
const START: Duration = Duration::from_secs(60);
/// How long it may take to stop before it is killed, which costs nothing acknowledged.
const STOP: Duration = Duration::from_secs(30);
/// The line it prints when it is ready begins so; an address follows.
const READY: &str = "antiphon: listening on ";

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: String,
    /// Kept open: a server that can't write to its stdout might take that amiss.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a server over a folder and waits until it is ready.
    ///
    /// # Errors
    /// A server that can't be started, ends, or is not ready in time.
    pub(super) async fn start(data: &Path, listen: SocketAddr) -> Result<Self, Failure> {
        let failed = |error: &std::io::Error| Failure::of("can't start the server", error);
        let binary = std::env::current_exe().map_err(|error| failed(&error))?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("--data").arg(data).arg("--listen").arg(listen.to_string());
        // The demo's server takes its settings from here alone.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANTIPHON_")) {
            command.env_remove(name);
        }
        command.args(["--log", "warn"]).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let stdout = child.stdout.take().ok_or_else(|| Failure::new("can't start the server: it has no stdout"))?;
        let mut stdout = BufReader::new(stdout);
        let address = timeout(START, read_address(&mut stdout)).await;
        let address =
            address.map_err(|_| Failure::new(format!("the server was not ready within {} s", START.as_secs())))?;
        match address.map_err(|error| failed(&error))? {
            Some(address) => Ok(Self { child, address, _stdout: stdout }),
            None => Err(ended(&mut child).await),
        }
    }

    /// Where it listens, as a URL.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Waits for an end that nobody asked for.
    pub(super) async fn ended(&mut self) -> Failure {
        ended(&mut self.child).await
    }

    /// Stops it in order, or by force where it takes too long.
    ///
    /// # Errors
    /// A process that can't be waited for.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        if let Some(id) = self.child.id() {
            // The standard library knows only the signal that kills.
            let _ = Command::new("kill").arg("-TERM").arg(id.to_string()).status().await;
        }
        let failed = |error: &std::io::Error| Failure::of("can't stop the server", error);
        match timeout(STOP, self.child.wait()).await {
            Ok(ended) => ended.map(drop).map_err(|error| failed(&error)),
            Err(_) => self.child.kill().await.map_err(|error| failed(&error)),
        }
    }
}

async fn ended(child: &mut Child) -> Failure {
    match child.wait().await {
        Ok(status) => Failure::new(format!("the server ended ({status}); its words are above")),
        Err(error) => Failure::of("the server can't be waited for", &error),
    }
}

/// The address in the line that says it is ready; none if the output ends before.
async fn read_address(stdout: &mut BufReader<ChildStdout>) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    while stdout.read_line(&mut line).await? > 0 {
        if let Some(address) = line.trim_end().strip_prefix(READY) {
            return Ok(Some(address.to_owned()));
        }
        line.clear();
    }
    Ok(None)
}
