//! A status in one line for a person: code, reason, message, and the fields at fault. Never a dump.

use antiphon_proto::error::code_name;
use tonic::Status;
use tonic_types::StatusExt as _;

use crate::failure::Failure;

/// A failed call, as the end of a command.
pub(crate) fn failure(status: &Status) -> Failure {
    Failure::new(status_words(status))
}

/// `CODE REASON: message (field: what is wrong; …)`. A field that the message already names is not repeated.
pub(crate) fn status_words(status: &Status) -> String {
    let details = status.get_error_details();
    let mut words = code_name(status.code()).to_owned();
    let reason = details.error_info().map(|info| info.reason.as_str()).filter(|reason| !reason.is_empty());
    if let Some(reason) = reason.filter(|reason| *reason != words) {
        words.push(' ');
        words.push_str(reason);
    }
    let message = message(status);
    if !message.is_empty() {
        words.push_str(": ");
        words.push_str(&message);
    }
    let violations = details.bad_request().map(|request| request.field_violations.as_slice()).unwrap_or_default();
    let more: Vec<String> = violations
        .iter()
        .map(|violation| {
            if violation.field.is_empty() {
                violation.description.clone()
            } else {
                format!("{}: {}", violation.field, violation.description)
            }
        })
        .filter(|fault| !message.contains(fault.as_str()))
        .collect();
    if !more.is_empty() {
        words.push_str(&format!(" ({})", more.join("; ")));
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The message, with the cause where the transport hides it.
fn message(status: &Status) -> String {
    let mut words = status.message().to_owned();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let more = error.to_string();
        // The transport names itself before it says what happened.
        if more != "transport error" && !words.contains(&more) {
            words = if words.is_empty() { more } else { format!("{words}: {more}") };
        }
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use antiphon_proto::error::{ApiError, ErrorKind};

    use super::*;

    #[test]
    fn code_reason_message_and_violations_on_one_line() {
        let error = ApiError::new(ErrorKind::SchemaInvalid, "the collection\nis not well formed")
            .with_violation("collection.name", "is empty")
            .with_violation("collection.shard_count", "is above 256");
        assert_eq!(
            status_words(&error.to_status()),
            "INVALID_ARGUMENT SCHEMA_INVALID: the collection is not well formed (collection.name: is empty; \
             collection.shard_count: is above 256)"
        );
    }

    #[test]
    fn nothing_is_said_twice() {
        let error = ApiError::field(ErrorKind::QueryEmpty, "text", "is empty");
        assert_eq!(status_words(&error.to_status()), "INVALID_ARGUMENT QUERY_EMPTY: text: is empty");
        let error = ApiError::new(ErrorKind::Internal, "bug");
        assert_eq!(status_words(&error.to_status()), "INTERNAL: bug");
        assert_eq!(status_words(&Status::unavailable("gone")), "UNAVAILABLE: gone");
    }
}
