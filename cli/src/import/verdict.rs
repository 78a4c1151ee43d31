//! What to do when the server ends a stream with an error.

use std::time::Duration;

use antiphon_proto::error::{ApiError, DOMAIN, ErrorKind};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// What an error asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send again what was not acknowledged, after so long at least.
    Retry {
        /// What the server asks for, or nothing.
        after: Duration,
    },
    /// These documents of the message are at fault, by their place in it, each with the reason.
    Refused(Vec<(usize, String)>),
    /// Something in the message is at fault and not named, or it is too large: send less at a time.
    Smaller,
    /// No document can help it.
    Fatal,
}

impl Verdict {
    /// The verdict on a status.
    pub(crate) fn of(status: &Status) -> Self {
        let details = status.get_error_details();
        let after = details.retry_info().and_then(|info| info.retry_delay).unwrap_or_default();
        let retry = Verdict::Retry { after };
        if details.error_info().is_none_or(|info| info.domain != DOMAIN) {
            // Made by the transport or by something in between.
            return match status.code() {
                Code::Unavailable
                | Code::Unknown
                | Code::Internal
                | Code::Cancelled
                | Code::Aborted
                | Code::DeadlineExceeded => retry,
                // tonic's word for a message over the limit.
                Code::OutOfRange => Verdict::Smaller,
                Code::ResourceExhausted if details.retry_info().is_some() => retry,
                Code::ResourceExhausted => Verdict::Smaller,
                _ => Verdict::Fatal,
            };
        }
        let error = ApiError::from_status(status);
        match error.kind() {
            kind if kind.is_retryable() => retry,
            ErrorKind::TooLarge | ErrorKind::MessageMalformed => Verdict::Smaller,
            kind if kind.code() == Code::InvalidArgument => {
                let faults: Vec<(usize, String)> = error
                    .violations()
                    .iter()
                    .filter_map(|violation| {
                        let (place, path) = place(&violation.field)?;
                        let words = if path.is_empty() {
                            violation.description.clone()
                        } else {
                            format!("{path}: {}", violation.description)
                        };
                        Some((place, words))
                    })
                    .collect();
                if faults.is_empty() { Verdict::Fatal } else { Verdict::Refused(faults) }
            }
            _ => Verdict::Fatal,
        }
    }
}

/// `documents[3].vectors["body"]` to 3 and `vectors["body"]`.
fn place(field: &str) -> Option<(usize, &str)> {
    let (number, path) = field.strip_prefix("documents[")?.split_once(']')?;
    Some((number.parse().ok()?, path.trim_start_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_waits_as_long_as_asked() {
        let error = ApiError::new(ErrorKind::Overloaded, "busy").with_retry_after(Duration::from_millis(300));
        assert_eq!(Verdict::of(&error.to_status()), Verdict::Retry { after: Duration::from_millis(300) });
        let error = ApiError::new(ErrorKind::StoreUnavailable, "gone");
        assert_eq!(Verdict::of(&error.to_status()), Verdict::Retry { after: Duration::ZERO });
    }

    #[test]
    fn a_broken_connection_is_tried_again() {
        for status in
            [Status::unavailable("x"), Status::unknown("transport error"), Status::internal("h2 protocol error")]
        {
            assert_eq!(Verdict::of(&status), Verdict::Retry { after: Duration::ZERO });
        }
    }

    #[test]
    fn refused_documents_are_those_named() {
        let error = ApiError::new(ErrorKind::DimensionMismatch, "2 documents are off")
            .with_violation("documents[3].vectors[\"body\"]", "has 2 dimensions")
            .with_violation("documents[12]", "is off")
            .with_violation("collection", "is odd");
        let faults = vec![(3, "vectors[\"body\"]: has 2 dimensions".to_owned()), (12, "is off".to_owned())];
        assert_eq!(Verdict::of(&error.to_status()), Verdict::Refused(faults));
    }

    #[test]
    fn what_no_document_can_help_is_fatal() {
        for kind in
            [ErrorKind::CollectionNotFound, ErrorKind::ArgumentInvalid, ErrorKind::Internal, ErrorKind::Corruption]
        {
            assert_eq!(Verdict::of(&ApiError::new(kind, "x").to_status()), Verdict::Fatal, "{kind:?}");
        }
        assert_eq!(Verdict::of(&Status::unimplemented("x")), Verdict::Fatal);
    }

    #[test]
    fn too_much_is_sent_in_smaller_parts() {
        for status in [
            ApiError::new(ErrorKind::TooLarge, "x").to_status(),
            Status::out_of_range("decoded message length too large"),
        ] {
            assert_eq!(Verdict::of(&status), Verdict::Smaller);
        }
    }
}
