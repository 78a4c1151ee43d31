//! What can go wrong with membership.

/// Why a member cannot join, or a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// The secret cannot be read, or is too short to be one.
    #[error("the cluster's secret in {path}: {reason}")]
    Secret {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The address for gossip cannot be bound.
    #[error("gossip on {address}: {reason}")]
    Gossip {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        reason: String,
    },
    /// A member's address is no URL.
    #[error("the address {address:?} is no URL: {reason}")]
    Address {
        /// The address.
        address: String,
        /// Why.
        reason: String,
    },
}
