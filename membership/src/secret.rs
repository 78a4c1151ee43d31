//! What members of a cluster prove themselves by: to each other by gossip, and in calls.

use std::path::Path;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use crate::error::MembershipError;

/// The metadata key of calls between members.
pub const CLUSTER_METADATA: &str = "antiphon-member";
/// Bytes of a message's code.
pub(crate) const CODE_BYTES: usize = 32;
/// Fewest bytes of a secret in a file.
const MIN_BYTES: usize = 16;
/// Most bytes read of it.
const MAX_BYTES: u64 = 4096;

/// A key that all members of one cluster have. HMAC-SHA-256 (RFC 2104) everywhere.
#[derive(Clone)]
pub struct Secret {
    key: hmac::Key,
    is_secret: bool,
}

impl Secret {
    /// Reads a secret from a file; white space around it does not count.
    ///
    /// # Errors
    /// [`MembershipError::Secret`] where it cannot be read or has fewer than 16 bytes.
    pub fn from_file(path: &Path) -> Result<Self, MembershipError> {
        let failed = |reason: String| MembershipError::Secret { path: path.display().to_string(), reason };
        let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
        if size > MAX_BYTES {
            return Err(failed(format!("has more than {MAX_BYTES} bytes")));
        }
        let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let trimmed = bytes.trim_ascii();
        if trimmed.len() < MIN_BYTES {
            return Err(failed(format!("has fewer than {MIN_BYTES} bytes")));
        }
        Ok(Self { key: hmac::Key::new(hmac::HMAC_SHA256, trimmed), is_secret: true })
    }

    /// The key of a cluster without a secret: keeps clusters apart, and nobody out who knows the name.
    pub fn of_name(cluster: &str) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, cluster.as_bytes()), is_secret: false }
    }

    /// Whether it keeps strangers out.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// The code of a message, [`CODE_BYTES`] long.
    pub(crate) fn code(&self, message: &[u8]) -> hmac::Tag {
        hmac::sign(&self.key, message)
    }

    /// Whether a message's code is right. Takes as long whether it is or not.
    pub(crate) fn verify(&self, message: &[u8], code: &[u8]) -> bool {
        hmac::verify(&self.key, message, code).is_ok()
    }

    /// What members send along with calls, as the value of [`CLUSTER_METADATA`].
    pub fn credential(&self) -> String {
        self.code(b"antiphon: a call between members").as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a caller is a member. Takes as long whether it is or not.
    pub fn is_credential(&self, sent: &[u8]) -> bool {
        verify_slices_are_equal(self.credential().as_bytes(), sent).is_ok()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn codes_and_credentials_are_those_of_one_key() {
        let (one, other) = (Secret::of_name("one"), Secret::of_name("other"));
        let code = one.code(b"message");
        assert!(one.verify(b"message", code.as_ref()));
        assert!(!one.verify(b"massage", code.as_ref()) && !other.verify(b"message", code.as_ref()));
        assert!(!one.verify(b"message", &code.as_ref()[1..]));
        assert!(one.is_credential(one.credential().as_bytes()));
        assert!(!one.is_credential(other.credential().as_bytes()) && !one.is_credential(b""));
    }

    #[test]
    fn a_secret_is_read_without_the_white_space_around_it_and_is_not_printed() {
        let folder = std::env::temp_dir().join(format!("antiphon-secret-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("secret");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        let secret = Secret::from_file(&path).unwrap();
        std::fs::write(&path, "0123456789abcdef").unwrap();
        assert_eq!(secret.credential(), Secret::from_file(&path).unwrap().credential());
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        std::fs::write(&path, " short \n").unwrap();
        assert!(Secret::from_file(&path).unwrap_err().to_string().contains("fewer than 16"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(Secret::from_file(&path).is_err());
    }
}
