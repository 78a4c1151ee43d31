//! `antiphon token`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use antiphon_access::tokens::{TokenEntry, TokenSecret, with_token};

use crate::args::{AddTokenArgs, TokenArgs, TokenCommand};
use crate::failure::Failure;
use crate::output;

/// Most bytes that a token may have.
const MAX_TOKEN_BYTES: u64 = 4096;

/// Runs it.
pub(crate) fn run(args: &TokenArgs) -> Result<(), Failure> {
    match &args.command {
        TokenCommand::Add(args) => add(args),
        TokenCommand::Hash => hash(),
    }
}

fn add(args: &AddTokenArgs) -> Result<(), Failure> {
    let secret = TokenSecret::random().map_err(|error| Failure::of("no random bytes", &error))?;
    let expires = args.expires.as_deref().map(|text| {
        text.parse().map_err(|_| Failure::new(format!("--expires `{text}` is no time, as 2027-01-31T00:00:00Z")))
    });
    let entry = TokenEntry {
        name: args.name.clone(),
        sha256: secret.sha256(),
        scopes: args.scopes.clone(),
        expires: expires.transpose()?,
        max_calls_per_s: args.max_calls_per_s,
        max_concurrent_calls: args.max_concurrent_calls,
        max_message_bytes: args.max_message_bytes,
    };
    let path = &args.file;
    let failed = |error: std::io::Error| Failure::of(path.display().to_string(), &error);
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.map_err(failed)?,
    };
    let whole = with_token(&text, entry).map_err(|why| Failure::new(format!("{}: {why}", path.display())))?;
    append(path, &whole[text.len()..]).map_err(failed)?;
    output::print(&format!("{}\n", secret.reveal()))
}

/// Adds to a file, for nobody else to read where it is new.
fn append(path: &Path, more: &str) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(more.as_bytes())?;
    file.sync_all()
}

fn hash() -> Result<(), Failure> {
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_TOKEN_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| Failure::of("can't read the token", &error))?;
    let token = text.trim();
    if token.is_empty() || text.len() as u64 > MAX_TOKEN_BYTES {
        return Err(Failure::new(format!("standard input must hold a token of at most {MAX_TOKEN_BYTES} bytes")));
    }
    output::print(&format!("{}\n", TokenSecret::of(token).sha256()))
}
