//! Deadlines on the wire: the `grpc-timeout` header, read by each hop and passed on.
//!
//! Source: the gRPC over HTTP/2 protocol, section "Requests": an integer of at most 8 digits and a unit.

use std::time::{Duration, Instant};

use tonic::metadata::MetadataMap;

/// What each hop keeps of a caller's time, so that its answer, which says what was late, comes before the caller gives up.
const MARGIN: Duration = Duration::from_millis(20);

fn margin(timeout: Duration) -> Duration {
    MARGIN.min(timeout / 10)
}

/// When a call must be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline from now.
    pub fn after(timeout: Duration) -> Self {
        let now = Instant::now();
        Self(now.checked_add(timeout.min(Duration::from_secs(86_400))).unwrap_or(now))
    }

    /// The caller's deadline, or `default` from now where the caller set none, or a later one. A small margin is taken
    /// off, so that our answer comes before the transport gives up.
    pub fn of(metadata: &MetadataMap, default: Duration) -> Self {
        let timeout = metadata.get("grpc-timeout").and_then(|value| value.to_str().ok()).and_then(parse_timeout);
        match timeout {
            Some(timeout) => Self::after(timeout.saturating_sub(margin(timeout)).min(default)),
            None => Self::after(default),
        }
    }

    /// When a caller that set this `grpc-timeout` must have its answer at the latest, whatever holds up the work. None where
    /// the header is not of the protocol, which means no deadline.
    pub fn last_moment(grpc_timeout: &str) -> Option<Self> {
        parse_timeout(grpc_timeout).map(|timeout| Self::after(timeout.saturating_sub(margin(timeout) / 2)))
    }

    /// The moment itself.
    pub fn instant(self) -> Instant {
        self.0
    }

    /// What is left; zero when it has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

fn parse_timeout(value: &str) -> Option<Duration> {
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_the_protocol_writes_them() {
        assert_eq!(parse_timeout("100m"), Some(Duration::from_millis(100)));
        assert_eq!(parse_timeout("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(parse_timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for bad in ["", "m", "123456789S", "-1S", "1x", "1é"] {
            assert_eq!(parse_timeout(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_callers_deadline_never_exceeds_the_default() {
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", tonic::metadata::MetadataValue::from_static("99999999H"));
        assert!(Deadline::of(&metadata, Duration::from_secs(5)).left() <= Duration::from_secs(5));
    }
}
