//! How a member takes part.

use std::net::SocketAddr;
use std::time::Duration;

use crate::member::Role;
use crate::secret::Secret;

/// What a member tells of itself, and how it finds the others.
#[derive(Debug, Clone)]
pub struct MembershipConfig {
    /// The cluster's name: members of another are refused.
    pub cluster: String,
    /// This member's name, unique in the cluster and the same after a restart: shards are placed by it.
    pub id: String,
    /// What it does.
    pub role: Role,
    /// What fails together, such as a data centre; may be empty.
    pub zone: String,
    /// Its release.
    pub version: String,
    /// URL at which other members call it.
    pub address: String,
    /// Where it listens for gossip (UDP); port 0 means any that is free.
    pub gossip_listen: SocketAddr,
    /// Where others reach that; none: the address that it listens on.
    pub gossip_advertise: Option<SocketAddr>,
    /// Members to begin with, as host:port. Names are resolved anew every minute, and may stand for many addresses.
    pub seeds: Vec<String>,
    /// What members prove themselves by.
    pub secret: Secret,
    /// How often a member gossips. A member that was not heard of for some ten times that is taken for lost.
    pub interval: Duration,
}
