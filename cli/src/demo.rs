//! `antiphon demo`: a server of its own over an empty folder, real paragraphs in three languages, questions, and two pages
//! of each answer.
//!
//! Everything goes through the public API, by the same code that the other commands use.

mod data;
mod half;
mod server;
mod story;

use std::path::{Path, PathBuf};

use ulid::Ulid;

use crate::args::DemoArgs;
use crate::failure::Failure;
use server::Server;

/// Runs the demo.
///
/// # Errors
/// A folder that can't be used, a server that doesn't start, a call that fails.
pub(crate) async fn run(args: &DemoArgs) -> Result<(), Failure> {
    let folder = folder(args.data.as_deref())?;
    let mut server = Server::start(&folder, args.listen).await?;
    let address = server.address().to_owned();
    tokio::select! {
        told = story::tell(&address, &folder, args.keep) => told?,
        ended = server.ended() => return Err(ended),
        // The server got the same signal from the terminal.
        _ = tokio::signal::ctrl_c() => return server.stop().await,
    }
    if args.keep {
        tokio::select! {
            ended = server.ended() => return Err(ended),
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    server.stop().await
}

/// An empty folder: the one named, or a new one among the temporary files.
fn folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::temp_dir().join(format!("antiphon-demo-{}", Ulid::generate().to_string().to_lowercase())),
    };
    let failed = |error: &std::io::Error| Failure::of(format!("can't use the folder {}", path.display()), error);
    std::fs::create_dir_all(&path).map_err(|error| failed(&error))?;
    if std::fs::read_dir(&path).map_err(|error| failed(&error))?.next().is_some() {
        return Err(Failure::new(format!("the folder {} is not empty; the demo needs one of its own", path.display())));
    }
    Ok(path)
}
