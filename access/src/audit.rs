//! Who changed what: one line of the log for each call that did, or was not allowed to.

use std::net::SocketAddr;

use tonic::Code;

use crate::caller::Caller;
use crate::tokens::Right;
use antiphon_proto::error::code_name;

/// The log's target of these lines, for filters.
const TARGET: &str = "antiphon::audit";

/// What is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audit {
    /// Nothing.
    Nothing,
    /// Changes of collections and aliases.
    #[default]
    Collections,
    /// Those, and each call that writes or deletes documents.
    Documents,
}

impl Audit {
    /// Writes a call down that has ended, if it is one to be written down.
    pub(crate) fn note(self, caller: &Caller, method: &str, from: Option<SocketAddr>, code: Code) {
        let Some(asked) = caller.asked() else { return };
        let is_noted = match asked.right {
            Right::Read => false,
            Right::Write => self == Self::Documents,
            Right::Admin => self != Self::Nothing,
        };
        if !is_noted {
            return;
        }
        let from = from.map(|from| from.to_string()).unwrap_or_default();
        tracing::info!(
            target: TARGET,
            caller = caller.name().unwrap_or("anyone"),
            from,
            method,
            collection = asked.collection,
            code = code_name(code),
            "audit"
        );
    }
}
