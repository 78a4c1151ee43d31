//! One member, as it tells of itself.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// A shard of a collection: the collection's uid, and the shard's number.
pub type ShardKey = (String, u32);

/// What a member does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Holds shards.
    Node,
    /// Takes the public API.
    Coordinator,
    /// Both, in one process.
    Serve,
}

impl Role {
    /// Whether it holds shards.
    pub fn holds_shards(self) -> bool {
        matches!(self, Self::Node | Self::Serve)
    }

    /// The role's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Coordinator => "coordinator",
            Self::Serve => "serve",
        }
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        [Self::Node, Self::Coordinator, Self::Serve].into_iter().find(|role| role.as_str() == word).ok_or(())
    }
}

/// Where a member is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// It takes part.
    #[default]
    Up,
    /// It is about to stop, and serves until others do.
    Draining,
    /// It has stopped, on purpose.
    Gone,
}

impl Phase {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Draining => "draining",
            Self::Gone => "gone",
        }
    }

    /// A word of a later release means that something ends.
    pub(crate) fn read(word: &str) -> Self {
        match word {
            "up" => Self::Up,
            "gone" => Self::Gone,
            _ => Self::Draining,
        }
    }
}

/// How ready a member is for a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It loads it.
    Opening,
    /// It answers for it.
    Serving,
}

/// A member's word on one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardReport {
    /// How ready it is.
    pub stage: Stage,
    /// The log position it has applied.
    pub seq: u64,
    /// The manifest it goes by.
    pub manifest_version: u64,
    /// What is wrong, in words; empty if nothing is.
    pub problem: String,
}

impl Display for ShardReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let stage = match self.stage {
            Stage::Opening => "opening",
            Stage::Serving => "serving",
        };
        write!(out, "{stage} {} {} {}", self.seq, self.manifest_version, self.problem)
    }
}

impl FromStr for ShardReport {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.splitn(4, ' ');
        let stage = match words.next() {
            Some("serving") => Stage::Serving,
            Some("opening") => Stage::Opening,
            _ => return Err(()),
        };
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or(());
        let (seq, manifest_version) = (number()?, number()?);
        Ok(Self { stage, seq, manifest_version, problem: words.next().unwrap_or_default().to_owned() })
    }
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub id: String,
    /// Greater each time it starts.
    pub generation: u64,
    /// What it does.
    pub role: Role,
    /// URL at which it is called.
    pub address: String,
    /// What fails together with it.
    pub zone: String,
    /// Its release.
    pub version: String,
    /// Where it is in its life.
    pub phase: Phase,
    /// What is wrong with it as a whole, in words; empty if nothing is.
    pub problem: String,
    /// The shards it holds.
    pub shards: BTreeMap<ShardKey, ShardReport>,
}

pub(crate) const ROLE: &str = "role";
pub(crate) const ADDRESS: &str = "address";
pub(crate) const ZONE: &str = "zone";
pub(crate) const VERSION: &str = "version";
pub(crate) const PHASE: &str = "phase";
pub(crate) const PROBLEM: &str = "problem";
const SHARD: &str = "shard/";

/// The key under which a shard is told of.
pub(crate) fn shard_key((uid, shard): &ShardKey) -> String {
    format!("{SHARD}{uid}/{shard}")
}

impl Member {
    /// Reads what a member told. Nothing where it does not say who it is; what a later release adds is passed over.
    pub(crate) fn read<'a>(id: &str, generation: u64, told: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let (mut role, mut address) = (None, None);
        let (mut zone, mut version, mut problem) = (String::new(), String::new(), String::new());
        let (mut phase, mut shards) = (Phase::Up, BTreeMap::new());
        for (key, value) in told {
            match key {
                ROLE => role = value.parse().ok(),
                ADDRESS => address = Some(value.to_owned()),
                ZONE => value.clone_into(&mut zone),
                VERSION => value.clone_into(&mut version),
                PROBLEM => value.clone_into(&mut problem),
                PHASE => phase = Phase::read(value),
                _ => {
                    let shard = key.strip_prefix(SHARD).and_then(|rest| rest.rsplit_once('/'));
                    if let Some((uid, shard)) = shard
                        && let (Ok(shard), Ok(report)) = (shard.parse(), value.parse())
                    {
                        shards.insert((uid.to_owned(), shard), report);
                    }
                }
            }
        }
        let (id, role, address) = (id.to_owned(), role?, address?);
        Some(Self { id, generation, role, address, zone, version, phase, problem, shards })
    }

    /// Whether it answers for a shard.
    pub fn serves(&self, shard: &ShardKey) -> bool {
        self.shards.get(shard).is_some_and(|report| report.stage == Stage::Serving)
    }

    /// Whether it may be given shards.
    pub fn takes_shards(&self) -> bool {
        self.role.holds_shards() && self.phase == Phase::Up
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_member_tells_comes_back_and_what_is_not_known_is_passed_over() {
        let report = ShardReport { stage: Stage::Serving, seq: 7, manifest_version: 2, problem: "a b c".into() };
        let key = shard_key(&("uid".to_owned(), 3));
        let value = report.to_string();
        let told = [
            (ROLE, "node"),
            (ADDRESS, "http://a:1"),
            (PHASE, "up"),
            (key.as_str(), value.as_str()),
            ("shard/uid/x", "serving 1 1"),
            ("shard/uid/4", "sleeping 1 1"),
            ("colour", "green"),
        ];
        let member = Member::read("a", 1, told.into_iter()).unwrap();
        assert_eq!(member.shards, [(("uid".to_owned(), 3), report)].into());
        assert!(member.serves(&("uid".to_owned(), 3)) && !member.serves(&("uid".to_owned(), 4)));
        assert!(member.takes_shards());
        assert_eq!(Member::read("a", 1, [(ADDRESS, "http://a:1")].into_iter()), None);
        assert_eq!(Member::read("a", 1, [(ROLE, "cook"), (ADDRESS, "http://a:1")].into_iter()), None);
    }
}
