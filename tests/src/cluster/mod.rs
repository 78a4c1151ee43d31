//! Servers as their users have them: processes of the `antiphon` binary, on ports of their own, over one store.
//!
//! [`ClusterBuilder`] says what is wanted, [`ResolvedCluster`] is all that was decided from it (folders, command lines),
//! [`Cluster`] is what runs. Each process ([`ServerProcess`]) can be killed, told to stop, paused, and started again on the
//! port that it had. Whatever runs is killed when the cluster is dropped; where that is because a test failed, the
//! processes' logs are printed and the folder is kept.
//!
//! Not here: servers in the test's own process ([`crate::local`]), which start faster and take settings that the command
//! line does not have; what was promised to clients ([`crate::oracle`]).
//!
//! Rules for tests: wait for a condition with a deadline ([`crate::local::wait_until`]), never for time to pass; a sleep
//! may only choose the moment of a fault. A test that fails is not tried again.

mod binary;
mod bucket;
mod builder;
mod hosts;
mod internal;
mod mounted;
mod process;
mod running;
mod verify;
mod workload;

pub use binary::binary;
pub use bucket::Bucket;
pub use builder::{ClusterBuilder, ResolvedCluster};
pub use hosts::Host;
pub use internal::{all_rows, flush_writes, node_client, shard_ref};
pub use mounted::Mounted;
pub use process::ServerProcess;
pub use running::Cluster;
pub use verify::{State, read_state, verify_answers};
pub use workload::{DIMENSIONS, Target, Workload, document_of, generation_of, vector_of};
