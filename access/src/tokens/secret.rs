//! The secret part of a token.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::error::Unspecified;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What tokens begin with, so that scanners of source code find one that got into it.
const PREFIX: &str = "antiphon_";
/// Random bytes of a token.
const BYTES: usize = 32;

/// A new token, to be shown once.
pub struct TokenSecret(String);

impl TokenSecret {
    /// 256 random bits: more than can be guessed, which is why a plain SHA-256 keeps them.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub fn random() -> Result<Self, Unspecified> {
        let mut bytes = [0; BYTES];
        aws_lc_rs::rand::fill(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// One that was made elsewhere.
    pub fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// What the caller sends.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the server keeps: SHA-256 in hexadecimal digits.
    pub fn sha256(&self) -> String {
        hash(self.0.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// SHA-256 (FIPS 180-4).
pub(super) fn hash(sent: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, sent).as_ref());
    hash
}
