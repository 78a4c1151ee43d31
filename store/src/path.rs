//! Which paths the store takes: parts of `[A-Za-z0-9._-]`, joined by `/`.
//!
//! Invariant: a path that passed is the same on every store and file system (nothing is escaped), stays below the root,
//! and is never a staging name (`name#N`).

use object_store::path::Path;

use crate::error::StoreError;

const MAX_PART_BYTES: usize = 128;
const MAX_PATH_BYTES: usize = 512;

/// Checks a whole path.
pub(crate) fn parse(path: &str) -> Result<Path, StoreError> {
    let invalid = |reason: &str| StoreError::invalid(format!("path {path:?}"), reason);
    if path.len() > MAX_PATH_BYTES {
        return Err(invalid("longer than 512 bytes"));
    }
    if let Some(part) = path.split('/').find(|part| !is_part(part)) {
        return Err(invalid(&format!("the part {part:?} is not [A-Za-z0-9_-][A-Za-z0-9._-]{{0,127}}")));
    }
    Path::parse(path).map_err(|error| invalid(&error.to_string()))
}

/// Whether `part` may be one part of a path, such as a segment file's name.
pub(crate) fn is_part(part: &str) -> bool {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.';
    (1..=MAX_PART_BYTES).contains(&part.len()) && !part.starts_with('.') && part.bytes().all(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_are_taken() {
        for good in ["a", "catalog/00000000000000000001", "collections/u-1_x/shards/00000/segments/01J/text.bundle"] {
            assert!(parse(good).is_ok_and(|path| path.as_ref() == good), "{good}");
        }
        let long = "a".repeat(129);
        for bad in ["", "/", "a/", "/a", "a//b", "..", "a/../b", ".hidden", "a b", "a#1", "a%20", "ä", &long, "a\0"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(parse(&["a"; 300].join("/")).is_err());
    }
}
