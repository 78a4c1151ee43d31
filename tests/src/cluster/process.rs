//! One server process: started, watched until it serves, killed, stopped, paused, started again on its port.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::binary;
use super::hosts::Host;
use crate::client::Client;
use crate::secure::{Secure, secure};

/// What a server prints when it serves, before its URL.
const READY: &str = "antiphon: listening on ";
/// How long a server may take until it serves. Generous, for tests share their machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Lines of a log that a failed test prints.
const LOG_LINES: usize = 200;

/// A server process, running or not. Killed when dropped.
pub struct ServerProcess {
    name: String,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    log: PathBuf,
    host: Option<Host>,
    url: Option<String>,
    child: Option<Child>,
    ready: Option<oneshot::Receiver<String>>,
}

impl ServerProcess {
    /// A process that is not started yet. `args` lack `--listen`; its log goes to `<name>.log` in `folder`.
    pub fn new(name: &str, args: Vec<String>, envs: Vec<(String, String)>, folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        Self { name: name.to_owned(), args, envs, log, host: None, url: None, child: None, ready: None }
    }

    /// The same on a host of its own.
    pub fn on(mut self, host: Option<Host>) -> Self {
        self.host = host;
        self
    }

    /// The host that it runs on, where it has one of its own.
    pub fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// Adds to its command line, from its next start on.
    pub fn add_args(&mut self, args: &[&str]) {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it serves, or did last. Panics before the first start.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or_else(|| panic!("{} was never started", self.name))
    }

    /// A client of it, connected when it is first used.
    pub fn client(&self) -> Client {
        Client::connect_lazy(self.url())
    }

    /// The number of its process. Panics where it does not run.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap_or_else(|| panic!("{} does not run", self.name)).id()
    }

    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Starts it, on the port that it had if it had one, and waits until it serves.
    pub async fn start(&mut self) {
        self.spawn();
        self.ready().await;
    }

    /// Starts it without waiting.
    pub fn spawn(&mut self) {
        assert!(self.child.is_none(), "{} runs already", self.name);
        let any = self.host.as_ref().map_or("127.0.0.1:0".to_owned(), |host| format!("{}:0", host.address()));
        let listen = self.url.as_ref().map_or(any, |url| url.split_once("://").unwrap().1.to_owned());
        let mut log = File::options().create(true).append(true).open(&self.log).unwrap();
        writeln!(log, "=== {} starts on {listen}", self.name).unwrap();
        let mut command = self.host.as_ref().map_or_else(|| Command::new(binary()), |host| host.command(binary()));
        // Before the test's own, which count.
        let (role, args) = self.args.split_first().unwrap();
        command.arg(role);
        for (key, value) in secure().map(Secure::settings).unwrap_or_default() {
            command.args(["--set", &format!("{key}={value}")]);
        }
        command.args(args).args(["--listen", &listen]);
        // Settings of whoever runs the tests are not the tests'.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANTIPHON_")) {
            command.env_remove(name);
        }
        command.envs(self.envs.iter().cloned()).env("RUST_BACKTRACE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        let (announce, ready) = oneshot::channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || read_output(stdout, log, announce));
        self.child = Some(child);
        self.ready = Some(ready);
    }

    /// Waits until it says that it serves. Panics where it ends instead, or takes too long.
    pub async fn ready(&mut self) {
        let ready = self.ready.take().expect("not started, or known to serve");
        match tokio::time::timeout(START_TIMEOUT, ready).await {
            Ok(Ok(url)) => self.url = Some(url),
            Ok(Err(_)) => panic!("{} ended before it served:\n{}", self.name, self.log_tail()),
            Err(_) => panic!("{} does not serve after {START_TIMEOUT:?}:\n{}", self.name, self.log_tail()),
        }
    }

    /// Kills it as a crash or the system would (SIGKILL), at whatever it is doing.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Fails where it ended by itself, which is what was wanted.
            let _ = child.kill();
            child.wait().unwrap();
        }
        self.ready = None;
    }

    /// Asks it to stop (SIGTERM).
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Waits until it has ended, and gives its exit status.
    pub async fn ended(&mut self, timeout: Duration) -> ExitStatus {
        let deadline = Instant::now() + timeout;
        loop {
            let child = self.child.as_mut().expect("not running");
            if let Some(status) = child.try_wait().unwrap() {
                self.child = None;
                self.ready = None;
                return status;
            }
            assert!(Instant::now() < deadline, "{} has not ended after {timeout:?}:\n{}", self.name, self.log_tail());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops it in its tracks (SIGSTOP), as a suspended machine or an overloaded host would.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        // The child is not reaped before it is let go of here, so its id is not another's.
        let id = self.child.as_ref().expect("not running").id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap();
        assert!(sent.success(), "SIG{signal} to {}: {sent}", self.name);
    }

    /// The end of its log, over all its lives.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() && self.log.exists() {
            eprintln!("--- the log of {} ({})\n{}\n---", self.name, self.log.display(), self.log_tail());
        }
    }
}

fn read_output(stdout: ChildStdout, mut log: File, announce: oneshot::Sender<String>) {
    let mut announce = Some(announce);
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        // A log that cannot be written shows in what the test prints.
        let _ = writeln!(log, "{line}");
        if let Some(url) = line.strip_prefix(READY)
            && let Some(announce) = announce.take()
        {
            // Nobody listens where the process was killed before.
            let _ = announce.send(url.to_owned());
        }
    }
}
