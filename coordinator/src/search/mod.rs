//! One search: scatter to the shards, gather their windows, merge, fuse, cut the page, fetch its documents.

mod clock;
mod gather;
mod lists;
mod merge;
mod rank;
mod request;
mod run;

pub use lists::{QueryPath, one_or_several, several};
pub(crate) use request::projection;
pub use request::{ListKind, ListQuery, Method, RequestBuilder, SearchRequest, When};
pub(crate) use run::check_size;
pub use run::run;
