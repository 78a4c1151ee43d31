//! Who is in a cluster, what each member serves and how far it is, and who should serve what.
//!
//! Members gossip ([`Membership`], over chitchat); from what they tell each other every member computes by the same pure
//! functions who holds a shard and who owns it ([`placement`]). All of it is a hint: members may see different things for a
//! while, and two may believe that they own one shard. That is slow and not wrong, for the shard's log decides.
//!
//! Not here: what serving a shard means (the node's), which replica is asked (the coordinator's).

mod config;
mod dialer;
mod error;
mod member;
mod members;
mod membership;
pub mod placement;
mod secret;
mod signed_socket;

pub use config::MembershipConfig;
pub use dialer::{Dialer, NodeClient};
pub use error::MembershipError;
pub use member::{Member, Phase, Role, ShardKey, ShardReport, Stage};
pub use members::{LostMember, Members};
pub use membership::Membership;
pub use secret::{CLUSTER_METADATA, Secret};
