//! A server as a child process: the release binary as users run it, over a folder, on a free port of the loopback.
//!
//! It does not outlive this process's handle: dropping the handle kills it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;

/// The line that says the server is ready begins so.
const READY: &str = "antiphon: listening on ";
/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(60);

/// How a server is started.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerArgs {
    /// The `antiphon` binary [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
    /// A setting of the server, as sealing.seal_age_s=5; the defaults are what is to be measured. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Where temporary folders with the server's data are made [default: the system's place].
    #[arg(long, value_name = "FOLDER")]
    pub work: Option<PathBuf>,
}

impl ServerArgs {
    fn binary(&self) -> Outcome<PathBuf> {
        let binary = match &self.server {
            Some(path) => path.clone(),
            None => std::env::current_exe()?.with_file_name("antiphon"),
        };
        if binary.exists() {
            Ok(binary)
        } else {
            Err(format!("{} is not there: build it with cargo build --release -p antiphon", binary.display()).into())
        }
    }

    /// A new temporary folder.
    ///
    /// # Errors
    /// Where it can't be made.
    pub fn temp_dir(&self) -> Outcome<tempfile::TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("antiphon-bench-");
        Ok(match &self.work {
            Some(work) => builder.tempdir_in(work)?,
            None => builder.tempdir()?,
        })
    }

    /// Starts a server over a folder and waits until it is ready.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(&self, data: &Path) -> Outcome<ChildServer> {
        let binary = self.binary()?;
        let begun = Instant::now();
        let mut command = Command::new(binary);
        command.arg("serve").arg("--data").arg(data).args(["--listen", "127.0.0.1:0", "--log", "warn"]);
        for set in &self.set {
            command.arg("--set").arg(set);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANTIPHON_")) {
            command.env_remove(name);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("the server has no stdout")?);
        let mut line = String::new();
        while stdout.read_line(&mut line)? > 0 {
            if let Some(url) = line.trim_end().strip_prefix(READY) {
                let (url, start_time) = (url.to_owned(), begun.elapsed());
                return Ok(ChildServer { child, url, start_time, _stdout: stdout });
            }
            line.clear();
        }
        Err(format!("the server ended before it was ready: {}", child.wait()?).into())
    }
}

/// A running server.
#[derive(Debug)]
pub struct ChildServer {
    child: Child,
    /// Where it listens.
    pub url: String,
    /// From starting the process to the line that says it is ready.
    pub start_time: Duration,
    _stdout: BufReader<ChildStdout>,
}

impl ChildServer {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop (SIGTERM) and waits, while connections to it go on to be served. Returns how long that took.
    ///
    /// # Errors
    /// Where it does not end in time or in order.
    pub async fn stop(mut self) -> Outcome<Duration> {
        let begun = Instant::now();
        Command::new("kill").arg("-TERM").arg(self.pid().to_string()).status()?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return if status.success() {
                    Ok(begun.elapsed())
                } else {
                    Err(format!("it ended with {status}").into())
                };
            }
            if begun.elapsed() > STOP {
                return Err(format!("the server did not stop within {} s", STOP.as_secs()).into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        // A process that ended already is none to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
