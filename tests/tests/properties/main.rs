//! What must hold of all pages, rankings and filters, whatever the data: against models and brute force.
//!
//! One program for many files: each program is linked with all there is, and runs by itself.

mod filters;
mod page_properties;
mod recall_of_the_living;
mod shard_invariance;
