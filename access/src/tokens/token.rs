//! One token: who bears it, what it allows, and its limits.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antiphon_proto::error::{ApiError, ErrorKind};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::scope::{Right, Scope};

/// How long a caller with too many calls under way is told to wait.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What the file says of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenSpec {
    pub(super) name: String,
    pub(super) hash: [u8; 32],
    pub(super) scopes: Vec<Scope>,
    /// Seconds since 1970 at which it is no longer taken.
    pub(super) expires: Option<u64>,
    pub(super) max_calls_per_s: Option<NonZeroU32>,
    pub(super) max_concurrent_calls: Option<NonZeroU32>,
    pub(super) max_message_bytes: Option<u64>,
}

/// A token that is known.
#[derive(Debug)]
pub struct Token {
    spec: TokenSpec,
    rate: Option<DefaultDirectRateLimiter>,
    calls: Option<Arc<Semaphore>>,
}

impl PartialEq for Token {
    /// Whether the file says the same of both.
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl Token {
    pub(super) fn new(spec: TokenSpec) -> Self {
        let rate = spec.max_calls_per_s.map(|calls| RateLimiter::direct(Quota::per_second(calls)));
        let calls = spec.max_concurrent_calls.map(|calls| Arc::new(Semaphore::new(calls.get() as usize)));
        Self { spec, rate, calls }
    }

    pub(super) fn hash(&self) -> &[u8; 32] {
        &self.spec.hash
    }

    /// The name of whoever bears it.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Whether any of its scopes is about a collection.
    pub fn knows(&self, collection: &str) -> bool {
        self.spec.scopes.iter().any(|scope| scope.covers(collection))
    }

    /// Whether any of its scopes is about all collections.
    pub fn knows_all(&self) -> bool {
        self.spec.scopes.iter().any(Scope::covers_all)
    }

    /// Whether it allows something.
    ///
    /// # Errors
    /// TOKEN_INVALID where it has expired; TOKEN_SCOPE, whether there is such a collection or not.
    pub fn allows(&self, right: Right, collection: &str) -> Result<(), ApiError> {
        self.check_expiry()?;
        if self.spec.scopes.iter().any(|scope| scope.right() == right && scope.covers(collection)) {
            return Ok(());
        }
        let words = format!("the token of {:?} has no scope {}:{collection}", self.spec.name, right.as_str());
        Err(ApiError::new(ErrorKind::TokenScope, words))
    }

    /// Whether it is taken still.
    ///
    /// # Errors
    /// TOKEN_INVALID where it has expired.
    pub fn check_expiry(&self) -> Result<(), ApiError> {
        let Some(expires) = self.spec.expires else { return Ok(()) };
        // An instant of the calendar is what the operator wrote down.
        #[expect(clippy::disallowed_methods, reason = "an expiry is a time of the wall clock")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if now < expires {
            return Ok(());
        }
        Err(ApiError::new(ErrorKind::TokenInvalid, format!("the token of {:?} has expired", self.spec.name)))
    }

    /// Begins a call, and counts it until the permit is dropped.
    ///
    /// # Errors
    /// OVERLOADED, and when to retry, where the rate or the number of calls under way is above the token's limit.
    pub fn begin(&self) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        let over = |what: &str, limit: Option<NonZeroU32>, wait: Duration| {
            let limit = limit.map_or(0, NonZeroU32::get);
            let words = format!("the token of {:?} is at its limit of {limit} {what}", self.spec.name);
            ApiError::new(ErrorKind::Overloaded, words).with_retry_after(wait)
        };
        let permit = match &self.calls {
            None => None,
            Some(calls) => Some(
                Arc::clone(calls)
                    .try_acquire_owned()
                    .map_err(|_| over("calls at a time", self.spec.max_concurrent_calls, RETRY_AFTER))?,
            ),
        };
        if let Some(Err(not_until)) = self.rate.as_ref().map(RateLimiter::check) {
            let wait = not_until.wait_time_from(DefaultClock::default().now());
            return Err(over("calls a second", self.spec.max_calls_per_s, wait));
        }
        Ok(permit)
    }

    /// Whether a message may be so large.
    ///
    /// # Errors
    /// TOO_LARGE.
    pub fn check_size(&self, bytes: impl FnOnce() -> usize) -> Result<(), ApiError> {
        let Some(most) = self.spec.max_message_bytes else { return Ok(()) };
        let bytes = bytes() as u64;
        if bytes <= most {
            return Ok(());
        }
        let words = format!("the message has {bytes} bytes, the token of {:?} allows {most}", self.spec.name);
        Err(ApiError::new(ErrorKind::TooLarge, words))
    }
}
