//! What one key is: the fold under which keys are the same, in routing, upsert, get, delete, merge and order.
//!
//! INV-1: whoever compares keys compares what [`KeyRule::fold`] gives, by bytes.

use std::borrow::Cow;

use icu_casemap::CaseMapper;

use crate::v1::KeyCase;

/// Most bytes of a key.
pub const MAX_KEY_BYTES: usize = 1024;

/// Whether letter case tells keys apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyRule {
    /// Keys are the same when their folds are.
    CaseInsensitive,
    /// Keys are the same when their bytes are.
    CaseSensitive,
}

impl KeyRule {
    /// The rule that a schema's `key_case` names; unspecified means case-insensitive.
    pub fn of(key_case: KeyCase) -> Self {
        match key_case {
            KeyCase::Unspecified | KeyCase::CaseInsensitive => KeyRule::CaseInsensitive,
            KeyCase::CaseSensitive => KeyRule::CaseSensitive,
        }
    }

    /// The form under which keys are compared.
    pub fn fold(self, key: &str) -> Cow<'_, str> {
        match self {
            KeyRule::CaseInsensitive => fold(key),
            KeyRule::CaseSensitive => Cow::Borrowed(key),
        }
    }
}

/// Upper case by the Unicode simple (one-to-one) mapping, code point by code point, except that a non-ASCII character
/// never becomes an ASCII one. Borrows where nothing changes.
///
/// Source: Unicode Character Database, `Simple_Uppercase_Mapping`.
pub fn fold(key: &str) -> Cow<'_, str> {
    if key.is_ascii() {
        return if key.bytes().any(|byte| byte.is_ascii_lowercase()) {
            Cow::Owned(key.to_ascii_uppercase())
        } else {
            Cow::Borrowed(key)
        };
    }
    Cow::Owned(key.chars().map(fold_char).collect())
}

fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_uppercase();
    }
    let upper = CaseMapper::new().simple_uppercase(c);
    if upper.is_ascii() { c } else { upper }
}

/// Whether a key consists of white space alone, or of nothing. Such keys name no document.
pub fn is_blank(key: &str) -> bool {
    key.chars().all(char::is_whitespace)
}

/// Whether a key can name a document: not blank, at most [`MAX_KEY_BYTES`].
pub fn is_valid(key: &str) -> bool {
    !is_blank(key) && key.len() <= MAX_KEY_BYTES
}

/// The shard of a key: a stable hash of its fold, spread evenly.
///
/// CRC-32 (IEEE) mixed by the finalizer of MurmurHash3 (Appleby), so that shard counts that share factors with the
/// polynomial do no harm. The rule is part of the store's format: changing it loses documents.
pub fn shard_of(folded_key: &str, num_shards: u32) -> u32 {
    let mut h = crc32fast::hash(folded_key.as_bytes());
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^= h >> 16;
    h % num_shards.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_one_to_one_and_never_into_ascii() {
        for (key, folded) in [
            ("Doc-1", "DOC-1"),
            ("straße", "STRAßE"),
            ("ı", "ı"),
            ("ſ", "ſ"),
            ("документ", "ДОКУМЕНТ"),
            ("Ωμέγα", "ΩΜΈΓΑ"),
            ("ς", "Σ"),
            ("ᾳ", "ᾼ"),
            ("é", "É"),
            ("北京", "北京"),
        ] {
            assert_eq!(fold(key), folded, "{key}");
        }
    }

    #[test]
    fn folding_twice_changes_nothing() {
        for c in ('\u{0}'..=char::MAX).filter(|c| fold_char(*c) != *c) {
            assert_eq!(fold_char(fold_char(c)), fold_char(c), "{c:?}");
        }
    }

    #[test]
    fn shards_are_even_and_fixed() {
        let mut counts = [0; 8];
        for n in 0..8000 {
            counts[shard_of(&format!("DOC-{n}"), 8) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_eq!(
            (shard_of("DOC-1", 8), shard_of("北京", 3), shard_of("", 5)),
            (shard_of("DOC-1", 8), shard_of("北京", 3), 0)
        );
    }
}
