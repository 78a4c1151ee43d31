//! Who may call a server, and how connections are kept from others.
//!
//! - [`tls`]: connections encrypted and their ends proved by certificates, on both sides.
//! - [`tokens`]: who callers are and what each may do, from a file.
//! - [`AccessLayer`] tells callers by their tokens and hands them to the services as [`Caller`]s, which say no where a scope
//!   is missing.
//!
//! Files are read again when they change ([`Watched`]). Not here: how members of a cluster know each other (membership's).

mod audit;
mod caller;
mod error;
mod layer;
pub mod tls;
pub mod tokens;
mod watched;

pub use audit::Audit;
pub use caller::Caller;
pub use error::AccessError;
pub use layer::{AccessLayer, AccessService};
pub use watched::Watched;
