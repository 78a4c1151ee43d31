//! Whether and when a request is tried again.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};

/// The first pause, before chance shortens it.
const FIRST: Duration = Duration::from_millis(250);
/// The longest pause of our own.
const LONGEST: Duration = Duration::from_secs(10);

/// Whether a request with this answer may do better later.
pub(super) fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS)
}

/// The pause before try `tries` + 1, twice as long each time; `chance`, from 0 to 1, takes up to half of it, so that those
/// who failed together don't return together. Never shorter than the endpoint asks.
pub(super) fn pause(tries: u32, asked: Option<Duration>, chance: f64) -> Duration {
    let grown = FIRST.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(LONGEST);
    let own = grown.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0);
    asked.map_or(own, |asked| asked.max(own))
}

/// What Retry-After says: seconds, or a date, which is read against the answer's own date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let asked = text(header::RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(asked).ok()?;
    let now = httpdate::parse_http_date(text(header::DATE)?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_are_never_shorter_than_asked() {
        let ms = |tries, asked: Option<u64>, chance| pause(tries, asked.map(Duration::from_millis), chance).as_millis();
        assert_eq!([1, 2, 3, 4].map(|tries| ms(tries, None, 0.0)), [250, 500, 1000, 2000]);
        assert_eq!([ms(1, None, 1.0), ms(40, None, 0.0), ms(u32::MAX, None, 0.0)], [125, 10_000, 10_000]);
        assert_eq!([ms(1, Some(3000), 0.5), ms(5, Some(3000), 0.0)], [3000, 4000]);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let headers = |pairs: &[(header::HeaderName, &str)]| -> HeaderMap {
            pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
        };
        assert_eq!(retry_after(&headers(&[])), None);
        assert_eq!(retry_after(&headers(&[(header::RETRY_AFTER, " 7 ")])), Some(Duration::from_secs(7)));
        let (now, then) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
        let dated = headers(&[(header::RETRY_AFTER, then), (header::DATE, now)]);
        assert_eq!(retry_after(&dated), Some(Duration::from_secs(30)));
        let past = headers(&[(header::RETRY_AFTER, now), (header::DATE, then)]);
        assert_eq!(retry_after(&past), Some(Duration::ZERO));
        assert_eq!(retry_after(&headers(&[(header::RETRY_AFTER, then)])), None);
        assert_eq!(retry_after(&headers(&[(header::RETRY_AFTER, "soon")])), None);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (status, again) in [(200, false), (400, false), (401, false), (404, false), (408, true), (429, true)] {
            assert_eq!(may_pass(StatusCode::from_u16(status).unwrap()), again, "{status}");
        }
        assert!(may_pass(StatusCode::BAD_GATEWAY) && may_pass(StatusCode::INTERNAL_SERVER_ERROR));
    }
}
