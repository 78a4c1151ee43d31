//! The only place that maps files and the only one that holds the `unsafe` which that takes.
//!
//! Invariant INV-7: a file is mapped only after its checksum was compared, under a name that is never written again.

mod archive;
mod blob;

pub use archive::Archive;
pub use blob::{AlignedBytes, Blob, MapError};
