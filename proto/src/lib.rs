//! The contracts that everything else meets at: the public API, the protocol between coordinators and nodes, the
//! messages kept in the store, error kinds, and the rule for what one key is.
//!
//! Node and coordinator both depend on this crate and never on each other.

/// What the protos compile to; the modules mirror the packages, since generated code refers to its neighbours so.
#[allow(missing_docs, clippy::all, unreachable_pub)]
mod generated {
    pub mod internal {
        pub mod v1 {
            tonic::include_proto!("antiphon.internal.v1");
        }
    }
    pub mod store {
        pub mod v1 {
            tonic::include_proto!("antiphon.store.v1");
        }
    }
    pub mod v1 {
        tonic::include_proto!("antiphon.v1");
    }
}

/// The protocol between coordinators and nodes.
pub use generated::internal::v1 as internal;
/// Messages kept in the object store.
pub use generated::store::v1 as store;
/// The public API, package `antiphon.v1`.
pub use generated::v1;

pub mod analyzers;
pub mod attribute;
pub mod deadline;
pub mod error;
pub mod filter;
pub mod key;
pub mod vector;

/// Descriptors of the public API, for reflection: a serialized `google.protobuf.FileDescriptorSet`.
pub const PUBLIC_DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/public.bin"));

/// The same with the services that need an embedder.
pub const EMBEDDING_DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/public_embedding.bin"));
