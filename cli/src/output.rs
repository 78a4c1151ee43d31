//! What commands print: tables, snippets, numbers, JSON.
//!
//! Text from a server is never written to a terminal as it is: control characters become spaces (`width::plain`).

mod json;
mod numbers;
mod snippet;
mod table;
mod width;

use std::io::{ErrorKind, Write as _};

pub(crate) use json::{CollectionJson, DocumentJson};
pub(crate) use numbers::{bytes, count, seconds};
pub(crate) use snippet::Snippets;
pub(crate) use table::Table;
pub(crate) use width::plain;

use crate::failure::Failure;

/// Writes to stdout. A reader that went away, as `head` does, is no failure.
///
/// # Errors
/// Any other fault of stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::of("can't write to stdout", &error)),
        _ => Ok(()),
    }
}

/// Writes a value as one JSON document, indented.
///
/// # Errors
/// Those of [`print`].
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Failure::of("can't write JSON", &error))?;
    text.push('\n');
    print(&text)
}

/// Writes a line to stderr; where that fails there is nobody to tell.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
