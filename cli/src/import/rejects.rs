//! Documents that are not imported: said on stderr, and written to a file for whoever mends them.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::value::Value;

use super::batch::Origin;
use super::progress::Progress;
use crate::failure::Failure;
use crate::output::plain;

/// Rejects said on stderr; the others are counted, and written to the file.
const MAX_SAID: u64 = 100;

/// A document that is not imported.
#[derive(Debug)]
pub(crate) struct Rejected {
    /// Where it was read.
    pub(crate) origin: Origin,
    /// Why not.
    pub(crate) reason: String,
    /// The line as read, where rejects are written to a file.
    pub(crate) raw: Option<String>,
}

/// All rejects of an import.
#[derive(Debug, Default)]
pub(crate) struct Rejects {
    num_rejected: u64,
    file: Option<BufWriter<File>>,
}

impl Rejects {
    /// Rejects, written to a file if one is named. It is replaced.
    ///
    /// # Errors
    /// A file that can't be made.
    pub(crate) fn new(path: Option<&Path>) -> Result<Self, Failure> {
        let file = path
            .map(|path| {
                File::create(path).map_err(|error| Failure::of(format!("can't create {}", path.display()), &error))
            })
            .transpose()?;
        Ok(Self { num_rejected: 0, file: file.map(BufWriter::new) })
    }

    /// How many so far.
    pub(crate) fn num_rejected(&self) -> u64 {
        self.num_rejected
    }

    /// Adds one.
    ///
    /// # Errors
    /// A file that can't be written.
    pub(crate) fn add(&mut self, rejected: &Rejected, progress: &Progress) -> Result<(), Failure> {
        self.num_rejected += 1;
        if self.num_rejected <= MAX_SAID {
            progress.say(&format!("{}: {}", rejected.origin, plain(&rejected.reason)));
        }
        if self.num_rejected == MAX_SAID {
            let rest = if self.file.is_some() {
                "further rejects are only written to the file"
            } else {
                "further rejects are only counted; name a file for them with --rejects"
            };
            progress.say(rest);
        }
        if let Some(file) = &mut self.file {
            write_line(file, rejected).map_err(|error| Failure::of("can't write the file of rejects", &error))?;
        }
        Ok(())
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// A file that can't be written.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match &mut self.file {
            Some(file) => file.flush().map_err(|error| Failure::of("can't write the file of rejects", &error)),
            None => Ok(()),
        }
    }
}

/// `{"file", "line", "reason", "document"}`; the document as it was read, or as a string where it is no JSON.
fn write_line(file: &mut impl std::io::Write, rejected: &Rejected) -> std::io::Result<()> {
    let raw = rejected.raw.as_deref().unwrap_or("null");
    // The line itself is written rather than what was parsed of it, so that nothing is rounded or reordered.
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(raw).is_ok();
    let document = if is_json { raw.to_owned() } else { Value::from(raw).to_string() };
    let name = Value::from(rejected.origin.file.as_ref());
    let reason = Value::from(rejected.reason.as_str());
    writeln!(file, "{{\"file\":{name},\"line\":{},\"reason\":{reason},\"document\":{document}}}", rejected.origin.line)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn line(raw: &str) -> String {
        let origin = Origin { file: "a \"b\".jsonl".into(), line: 7 };
        let mut out = Vec::new();
        write_line(&mut out, &Rejected { origin, reason: "is\noff".into(), raw: Some(raw.into()) }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_document_is_written_as_it_was_read() {
        assert_eq!(
            line(r#"{"b":1.50,"a":18446744073709551616}"#),
            "{\"file\":\"a \\\"b\\\".jsonl\",\"line\":7,\"reason\":\"is\\noff\",\"document\":{\"b\":1.50,\"a\":18446744073709551616}}\n"
        );
        for raw in ["{\"a\":", "nonsense", "\u{fffd}"] {
            let value: Value = serde_json::from_str(&line(raw)).unwrap();
            assert_eq!(value["document"], raw);
        }
    }
}
