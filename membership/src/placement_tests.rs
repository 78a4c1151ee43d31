//! Ranks of members for shards: pure, spread over zones, and moved as little as can be.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::member::{Phase, Role, ShardReport, Stage};
use crate::members::LostMember;

const PATIENCE: Duration = Duration::from_secs(60);

fn node(id: usize, zone: &str, phase: Phase) -> Arc<Member> {
    Arc::new(Member {
        id: format!("node-{id}"),
        generation: 1,
        role: Role::Node,
        address: String::new(),
        zone: zone.to_owned(),
        version: String::new(),
        phase,
        problem: String::new(),
        shards: BTreeMap::new(),
    })
}

fn cluster(count: usize) -> Members {
    Members { live: (0..count).map(|id| node(id, "", Phase::Up)).collect(), lost: Vec::new() }
}

fn shard(number: u32) -> ShardKey {
    ("uid".to_owned(), number)
}

fn ids(members: &[Arc<Member>]) -> Vec<&str> {
    members.iter().map(|member| member.id.as_str()).collect()
}

#[test]
fn shards_spread_evenly() {
    let members = cluster(4);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..4000 {
        for holder in holders(&members, &shard(number), 2, PATIENCE) {
            *counts.entry(holder.id.clone()).or_default() += 1;
        }
    }
    assert!(counts.len() == 4 && counts.values().all(|count| (1850..2150).contains(count)), "{counts:?}");
}

#[test]
fn copies_are_in_as_many_zones_as_there_are() {
    let zones = ["a", "a", "a", "b", "c"];
    let live = zones.iter().enumerate().map(|(id, zone)| node(id, zone, Phase::Up)).collect();
    let members = Members { live, lost: Vec::new() };
    for number in 0..100 {
        for (copies, expected) in [(1, 1), (2, 2), (3, 3), (4, 3), (9, 3)] {
            let held = holders(&members, &shard(number), copies, PATIENCE);
            assert_eq!(held.len(), copies.min(5));
            let zones: BTreeSet<&str> = held.iter().map(|member| member.zone.as_str()).collect();
            assert_eq!(zones.len(), expected);
        }
    }
}

#[test]
fn the_owner_is_the_first_that_serves_and_stays() {
    let mut members = cluster(3);
    let shard = shard(0);
    assert!(serving(&members, &shard).is_empty());
    let report = ShardReport { stage: Stage::Serving, seq: 1, manifest_version: 1, problem: String::new() };
    for member in &mut members.live {
        Arc::make_mut(member).shards.insert(shard.clone(), report.clone());
    }
    let before = serving(&members, &shard);
    assert_eq!(ids(&before), ids(&holders(&members, &shard, 3, PATIENCE)));
    let first = members.live.iter_mut().find(|member| member.id == before[0].id).unwrap();
    Arc::make_mut(first).phase = Phase::Draining;
    let after = serving(&members, &shard);
    assert_eq!(ids(&after), [before[1].id.as_str(), &before[2].id, &before[0].id]);
    let second = members.live.iter_mut().find(|member| member.id == before[1].id).unwrap();
    Arc::make_mut(second).shards.get_mut(&shard).unwrap().stage = Stage::Opening;
    assert_eq!(ids(&serving(&members, &shard)), [before[2].id.as_str(), &before[0].id]);
}

/// What becomes of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Up,
    Draining,
    JustLost,
    LongLost,
}

fn fates() -> impl Strategy<Value = Vec<(Fate, u8)>> {
    let fate = prop_oneof![
        4 => Just(Fate::Up), 1 => Just(Fate::Draining), 1 => Just(Fate::JustLost), 1 => Just(Fate::LongLost),
    ];
    prop::collection::vec((fate, 0_u8..3), 1..8)
}

fn members_of(fates: &[(Fate, u8)]) -> Option<Members> {
    let long_ago = Instant::now().checked_sub(PATIENCE * 2)?;
    let mut members = Members::default();
    for (id, (fate, zone)) in fates.iter().enumerate() {
        let phase = if *fate == Fate::Draining { Phase::Draining } else { Phase::Up };
        let member = node(id, &zone.to_string(), phase);
        match fate {
            Fate::Up | Fate::Draining => members.live.push(member),
            Fate::JustLost => members.lost.push(LostMember { member, since: Instant::now() }),
            Fate::LongLost => members.lost.push(LostMember { member, since: long_ago }),
        }
    }
    Some(members)
}

proptest! {
    #[test]
    fn holders_are_distinct_nodes_that_take_shards_and_there_is_one_where_any_does(
        fates in fates(), number in 0_u32..50, copies in 1_usize..5,
    ) {
        let Some(members) = members_of(&fates) else { return Ok(()) };
        let held = holders(&members, &shard(number), copies, PATIENCE);
        let up = fates.iter().filter(|(fate, _)| *fate == Fate::Up).count();
        prop_assert!(held.iter().all(|member| members.find(&member.id).is_some_and(|found| found.takes_shards())));
        prop_assert!(held.len() <= copies.min(up) && (up == 0) == held.is_empty());
        let mut names = ids(&held);
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), held.len());
        if fates.iter().all(|(fate, _)| matches!(fate, Fate::Up | Fate::LongLost)) {
            prop_assert_eq!(held.len(), copies.min(up));
        }
    }

    #[test]
    fn a_node_that_is_lost_for_a_moment_moves_nothing_where_a_copy_is_left(
        count in 2_usize..8, lost in 0_usize..8, number in 0_u32..50, copies in 2_usize..5,
    ) {
        let before = cluster(count);
        let held = holders(&before, &shard(number), copies, PATIENCE);
        let mut after = before.clone();
        let member = after.live.remove(lost % count);
        after.lost.push(LostMember { member: Arc::clone(&member), since: Instant::now() });
        let kept = holders(&after, &shard(number), copies, PATIENCE);
        let expected: Vec<_> = held.iter().filter(|holder| holder.id != member.id).cloned().collect();
        prop_assert_eq!(ids(&kept), ids(&expected));
    }

    #[test]
    fn a_node_that_comes_or_goes_for_good_moves_one_copy_at_most(
        count in 1_usize..8, number in 0_u32..50, copies in 1_usize..5,
    ) {
        let (small, large) = (cluster(count), cluster(count + 1));
        let before = holders(&small, &shard(number), copies, PATIENCE);
        let after = holders(&large, &shard(number), copies, PATIENCE);
        let newcomer = format!("node-{count}");
        let moved = after.iter().filter(|holder| !ids(&before).contains(&holder.id.as_str())).count();
        prop_assert!(moved <= 1);
        let stayed = after.iter().filter(|holder| holder.id != newcomer).all(|holder| ids(&before).contains(&holder.id.as_str()));
        prop_assert!(stayed);
    }
}
