//! The public contract, over gRPC, of servers in this process.
//!
//! One program for many files: each program is linked with all there is, and runs by itself.

mod callers;
mod collections_change;
mod embed_endpoint;
mod embed_queries;
mod embed_search;
mod errors;
mod export;
mod failures;
mod hostile;
mod import;
mod keys;
mod many_fields;
mod query_syntax;
mod reflection;
mod smoke;
mod snapshots;
mod texts;
mod values;
