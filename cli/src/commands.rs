//! Client commands that ask once and print the answer.

mod alias;
mod collection;
mod get;
mod search;
mod search_output;
mod status;

pub(crate) use alias::run as alias;
pub(crate) use collection::run as collection;
pub(crate) use get::run as get;
pub(crate) use search::run as search;
pub(crate) use search_output::render as render_matches;
pub(crate) use status::run as status;
