//! Who holds a shard and who owns it: pure functions of the members and the shard.
//!
//! Nodes are ranked for a shard by rendezvous hashing: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous"
//! (1996). The node with the highest weight of (node, shard) comes first, so a node that goes or comes moves only its own
//! shards. Weights are of names, not of addresses: a node keeps its shards when it comes back elsewhere.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use crate::member::{Member, ShardKey};
use crate::members::Members;

/// Sorts nodes by their rank for a shard, the first one first; ties go to the lesser name.
pub fn rank<T>(shard: &ShardKey, nodes: &mut [T], name: impl Fn(&T) -> &str) {
    nodes.sort_by(|a, b| {
        let key = |node| (Reverse(weight(shard, name(node))), name(node));
        key(a).cmp(&key(b))
    });
}

/// The members that are to hold a shard of `copies` copies, by rank.
///
/// A member that was lost within `patience` keeps its place, so that a restart moves nothing: its copy is made elsewhere only
/// where no other is left, or later. So does one that is about to stop.
pub fn holders(members: &Members, shard: &ShardKey, copies: usize, patience: Duration) -> Vec<Arc<Member>> {
    let mut known: Vec<(&Arc<Member>, bool)> = members.nodes().map(|member| (member, member.takes_shards())).collect();
    known.extend(members.lost_nodes(patience).map(|member| (member, false)));
    rank(shard, &mut known, |(member, _)| &member.id);
    let chosen = spread(&known, copies);
    if chosen.iter().any(|(_, takes_shards)| *takes_shards) {
        return chosen.into_iter().filter(|(_, takes_shards)| *takes_shards).map(|(member, _)| member).collect();
    }
    known.retain(|(_, takes_shards)| *takes_shards);
    spread(&known, copies).into_iter().map(|(member, _)| member).collect()
}

/// The first `copies` by rank, but one of each zone before a second one of any. No zone is a zone too.
fn spread(ranked: &[(&Arc<Member>, bool)], copies: usize) -> Vec<(Arc<Member>, bool)> {
    let mut chosen: Vec<usize> = Vec::new();
    for round in 0..ranked.len() {
        for (index, (member, _)) in ranked.iter().enumerate() {
            let in_zone = chosen.iter().filter(|other| ranked[**other].0.zone == member.zone).count();
            if chosen.len() < copies && in_zone == round && !chosen.contains(&index) {
                chosen.push(index);
            }
        }
        if chosen.len() == copies.min(ranked.len()) {
            break;
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|index| (Arc::clone(ranked[index].0), ranked[index].1)).collect()
}

/// The live members that answer for a shard, those that are about to stop last, each by rank. The first one is its owner:
/// it takes the writes, seals and merges.
pub fn serving(members: &Members, shard: &ShardKey) -> Vec<Arc<Member>> {
    let mut serving: Vec<&Arc<Member>> = members.nodes().filter(|member| member.serves(shard)).collect();
    rank(shard, &mut serving, |member| &member.id);
    let (mut staying, leaving): (Vec<_>, Vec<_>) =
        serving.into_iter().cloned().partition(|member| member.takes_shards());
    staying.extend(leaving);
    staying
}

/// FNV-1a over the parts (Fowler, Noll, Vo), finished by SplitMix64 (Steele, Lea, Flood), whose bits all depend on each
/// other.
fn weight((uid, shard): &ShardKey, name: &str) -> u64 {
    let parts = [uid.as_bytes(), &shard.to_le_bytes(), name.as_bytes()];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.iter().chain(&[0xff])) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
