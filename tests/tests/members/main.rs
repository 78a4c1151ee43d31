//! The binary and its processes: command line, tokens, cluster, cache, backups, metrics; and the engine over S3.
//!
//! One program for many files: each program is linked with all there is, and runs by itself.

#[path = "../../../store/tests/conformance/s3.rs"]
#[allow(dead_code, unreachable_pub, clippy::print_stdout, clippy::unwrap_used)]
mod s3;

mod access;
mod backup;
mod cache;
mod cli;
mod cluster;
mod engine_on_s3;
mod metrics;
mod processes;
mod traces;
