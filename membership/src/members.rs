//! All members, as one of them sees them at a moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::member::Member;

/// A member that was heard of and is not any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostMember {
    /// What it told last.
    pub member: Arc<Member>,
    /// When it was missed.
    pub since: Instant,
}

/// The members. Lists are in order of id, and no id is in them twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// Those that live, this one included.
    pub live: Vec<Arc<Member>>,
    /// Those that were lost, or have gone, and did not come back.
    pub lost: Vec<LostMember>,
}

impl Members {
    /// A live member.
    pub fn find(&self, id: &str) -> Option<&Arc<Member>> {
        self.live.iter().find(|member| member.id == id)
    }

    /// Live members that hold shards.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.live.iter().filter(|member| member.role.holds_shards())
    }

    /// Members that hold shards and were lost within `recently`.
    pub fn lost_nodes(&self, recently: Duration) -> impl Iterator<Item = &Arc<Member>> {
        let lost = self.lost.iter().filter(move |lost| lost.since.elapsed() < recently);
        lost.map(|lost| &lost.member).filter(|member| member.role.holds_shards())
    }
}
