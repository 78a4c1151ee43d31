//! Members that find each other, tell of each other and go.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use super::*;
use crate::member::{Role, Stage};
use crate::secret::Secret;

fn config(id: &str, seeds: &[SocketAddr], secret: &str) -> MembershipConfig {
    MembershipConfig {
        cluster: "test".into(),
        id: id.into(),
        role: Role::Node,
        zone: String::new(),
        version: "1".into(),
        address: format!("http://{id}:1"),
        gossip_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        gossip_advertise: None,
        seeds: seeds.iter().map(SocketAddr::to_string).collect(),
        secret: Secret::of_name(secret),
        interval: Duration::from_millis(50),
    }
}

async fn until(membership: &Membership, what: &str, is_met: impl Fn(&Members) -> bool) {
    let mut members = membership.members();
    let met = members.wait_for(|members| is_met(members));
    assert!(tokio::time::timeout(Duration::from_secs(20), met).await.is_ok(), "{what}: {:?}", membership.now());
}

fn live(members: &Members) -> Vec<&str> {
    members.live.iter().map(|member| member.id.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_find_each_other_tell_of_shards_and_are_missed() {
    let a = Membership::start(config("a", &[], "s")).await.unwrap();
    let b = Membership::start(config("b", &[a.gossip_address()], "s")).await.unwrap();
    let c = Membership::start(config("c", &[a.gossip_address()], "s")).await.unwrap();
    for member in [&a, &b, &c] {
        until(member, "three", |members| live(members) == ["a", "b", "c"]).await;
    }
    let shard = ("uid".to_owned(), 1);
    let report = ShardReport { stage: Stage::Serving, seq: 5, manifest_version: 2, problem: String::new() };
    b.announce(vec![(shard.clone(), Some(report))]).await;
    b.set_phase(Phase::Draining).await;
    b.set_problem("the disk is full").await;
    until(&c, "b serves", |members| {
        members.find("b").is_some_and(|b| b.serves(&shard) && !b.takes_shards() && b.problem == "the disk is full")
    })
    .await;
    b.announce(vec![(shard.clone(), None)]).await;
    until(&c, "b lets go", |members| members.find("b").is_some_and(|b| b.shards.is_empty())).await;
    drop(b);
    until(&c, "b is missed", |members| live(members) == ["a", "c"] && members.lost.len() == 1).await;
    let b = Membership::start(config("b", &[a.gossip_address()], "s")).await.unwrap();
    until(&c, "b is back", |members| live(members) == ["a", "b", "c"] && members.lost.is_empty()).await;
    b.leave().await;
    until(&c, "b has left", |members| live(members) == ["a", "c"] && members.lost.len() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_not_heard() {
    let a = Membership::start(config("a", &[], "one secret")).await.unwrap();
    let stranger = Membership::start(config("x", &[a.gossip_address()], "another")).await.unwrap();
    let noise = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for len in [0_usize, 1, 31, 32, 33, 500, 60_000] {
        noise.send_to(&vec![7; len], a.gossip_address()).unwrap();
    }
    // That a joins b afterwards shows that a has read what came before.
    let b = Membership::start(config("b", &[a.gossip_address()], "one secret")).await.unwrap();
    until(&a, "b joins", |members| live(members) == ["a", "b"]).await;
    until(&b, "a is found", |members| live(members) == ["a", "b"]).await;
    assert_eq!(live(&stranger.now()), ["x"]);
}
