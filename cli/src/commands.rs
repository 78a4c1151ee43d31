//! Client commands that ask once and print the answer.

mod alias;
mod backup;
mod collection;
mod count;
mod delete;
mod export;
mod generate;
mod get;
mod search;
mod search_output;
mod status;
mod token;

pub(crate) use alias::run as alias;
pub(crate) use backup::{restore, run as backup};
pub(crate) use collection::run as collection;
pub(crate) use count::run as count;
pub(crate) use delete::run as delete;
pub(crate) use export::run as export;
pub(crate) use generate::{completions, man};
pub(crate) use get::run as get;
pub(crate) use search::run as search;
pub(crate) use search_output::{Shown, render as render_matches};
pub(crate) use status::run as status;
pub(crate) use token::run as token;
