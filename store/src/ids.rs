//! Names of things in the store, each its own type so that none is taken for another.
//!
//! Invariant: a value of these types is safe as one part of an object's path, and numbers are spelled with a fixed number
//! of digits, so that the order of names is the order of numbers.

use std::fmt;
use std::str::FromStr;

use ulid::Ulid;

use crate::error::StoreError;

/// Digits of a number in a name: every `u64` fits.
pub const NUMBER_DIGITS: usize = 20;
/// Digits of a shard's number in a name.
pub const SHARD_DIGITS: usize = 5;
/// Shards a collection may have in this layout.
pub const MAX_SHARDS: u32 = 100_000;
const MAX_UID_BYTES: usize = 64;

/// A collection's identity: given once, never given again, whatever its name becomes. 1 to 64 of `[A-Za-z0-9_-]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionUid(String);

impl CollectionUid {
    /// A new identity: a ULID in lower case.
    pub fn generate() -> Self {
        Self(Ulid::generate().to_string().to_ascii_lowercase())
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CollectionUid {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let fits = (1..=MAX_UID_BYTES).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(StoreError::invalid("collection uid", format!("{text:?} is not [A-Za-z0-9_-]{{1,64}}")))
        }
    }
}

impl fmt::Display for CollectionUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One shard of one collection: the unit of placement, with its own log and manifest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardId {
    uid: CollectionUid,
    shard: u32,
}

impl ShardId {
    /// Shard `shard` (from 0, below [`MAX_SHARDS`]) of the collection `uid`.
    pub fn new(uid: CollectionUid, shard: u32) -> Result<Self, StoreError> {
        if shard < MAX_SHARDS {
            Ok(Self { uid, shard })
        } else {
            Err(StoreError::invalid("shard", format!("{shard} is not below {MAX_SHARDS}")))
        }
    }

    /// The collection.
    pub fn uid(&self) -> &CollectionUid {
        &self.uid
    }

    /// The shard's number, from 0.
    pub fn shard(&self) -> u32 {
        self.shard
    }

    /// The path of everything of this shard.
    pub fn path(&self) -> String {
        format!("collections/{}/shards/{:0SHARD_DIGITS$}", self.uid, self.shard)
    }
}

/// `uid/shard`, as `FromStr` reads it.
impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.uid, self.shard)
    }
}

impl FromStr for ShardId {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let bad = || StoreError::invalid("shard id", format!("{text:?} is not UID/NUMBER"));
        let (uid, shard) = text.rsplit_once('/').ok_or_else(bad)?;
        Self::new(uid.parse()?, shard.parse().map_err(|_| bad())?)
    }
}

/// A position in a shard's log. The first entry has 1; 0 is "before everything".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// A version of a shard's manifest. The first has 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ManifestVersion(pub u64);

/// A version of the catalog. The first has 1; 0 is the empty catalog of an empty store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CatalogVersion(pub u64);

macro_rules! numbered {
    ($type:ident) => {
        impl $type {
            /// The number that follows. At the end of `u64`, which no store lives to see, it stays.
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }

            /// The name of the object with this number: 20 digits.
            pub fn name(self) -> String {
                number_name(self.0)
            }

            /// The number an object's name says; nothing when it is no such name.
            pub fn from_name(name: &str) -> Option<Self> {
                parse_number_name(name).map(Self)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
numbered!(Seq);
numbered!(ManifestVersion);
numbered!(CatalogVersion);

fn number_name(number: u64) -> String {
    format!("{number:0NUMBER_DIGITS$}")
}

fn parse_number_name(name: &str) -> Option<u64> {
    let digits = name.len() == NUMBER_DIGITS && name.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| name.parse().ok()).flatten()
}

/// A segment's identity: a ULID, in its 26 upper-case letters. Never used for a second segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId(String);

impl SegmentId {
    /// A new identity; later ones sort after earlier ones of the same clock.
    pub fn generate() -> Self {
        Self(Ulid::generate().to_string())
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of one file of this segment of `shard`. The name is checked when the path is used.
    pub fn file_path(&self, shard: &ShardId, file: &str) -> String {
        format!("{}/{file}", self.path(shard))
    }

    /// The path of everything of this segment of `shard`.
    pub fn path(&self, shard: &ShardId) -> String {
        format!("{}/segments/{}", shard.path(), self.0)
    }
}

impl FromStr for SegmentId {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        match Ulid::from_string(text) {
            // Only the canonical spelling: two spellings of one segment would be two names.
            Ok(ulid) if ulid.to_string() == text => Ok(Self(text.to_owned())),
            _ => Err(StoreError::invalid("segment id", format!("{text:?} is not a ULID in upper case"))),
        }
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_sort_as_numbers_and_come_back() {
        let numbers = [0, 1, 9, 10, 99_999, u64::from(u32::MAX), u64::MAX];
        let names: Vec<_> = numbers.iter().map(|n| Seq(*n).name()).collect();
        assert!(names.is_sorted());
        assert_eq!(names[1], "00000000000000000001");
        for (number, name) in numbers.iter().zip(&names) {
            assert_eq!(Seq::from_name(name), Some(Seq(*number)));
        }
        for bad in ["", "1", "0000000000000000000x", "99999999999999999999", "+0000000000000000001"] {
            assert_eq!(Seq::from_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_safe_uids_are_taken() {
        assert!(CollectionUid::from_str(CollectionUid::generate().as_str()).is_ok());
        for bad in ["", ".", "..", "a/b", "a b", "é", "a#1", &"a".repeat(65)] {
            assert!(CollectionUid::from_str(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shard_ids_spell_their_path() {
        let shard: ShardId = "abc/7".parse().unwrap();
        assert_eq!(shard.path(), "collections/abc/shards/00007");
        assert_eq!(shard.to_string(), "abc/7");
        assert!("abc/100000".parse::<ShardId>().is_err());
        assert!("abc".parse::<ShardId>().is_err());
    }

    #[test]
    fn segment_ids_have_one_spelling() {
        let id = SegmentId::generate();
        assert_eq!(id.as_str().parse::<SegmentId>().unwrap(), id);
        assert!(id.as_str().to_lowercase().parse::<SegmentId>().is_err());
        assert!("x".parse::<SegmentId>().is_err());
    }
}
