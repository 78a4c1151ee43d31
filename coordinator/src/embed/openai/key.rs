//! The key of an endpoint, from a file or the environment; never shown.

use http::HeaderValue;

use crate::embed::StartError;
use crate::embed::config::OpenAiConfig;

/// The header that carries the key; none where the settings name none.
///
/// # Errors
/// [`StartError::Read`]; [`StartError::Settings`] for a variable that is not set, and a key that is empty or no header.
pub(super) fn authorization(config: &OpenAiConfig) -> Result<Option<Secret>, StartError> {
    let key = match (&config.api_key_file, &config.api_key_env) {
        (Some(path), _) => {
            std::fs::read_to_string(path).map_err(|source| StartError::Read { path: path.clone(), source })?
        }
        (None, Some(name)) => std::env::var(name).map_err(|_| {
            StartError::Settings(format!("api_key_env: the environment variable {name} is not set, or is no text"))
        })?,
        (None, None) => return Ok(None),
    };
    let key = key.trim();
    let header = HeaderValue::from_str(&format!("Bearer {key}")).ok().filter(|_| !key.is_empty());
    let Some(mut header) = header else {
        return Err(StartError::Settings("the key is empty, or has characters that no header can hold".into()));
    };
    header.set_sensitive(true);
    Ok(Some(Secret { header, key: key.to_owned() }))
}

/// A key.
pub(super) struct Secret {
    header: HeaderValue,
    key: String,
}

impl Secret {
    /// The value of `authorization`.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Words without the key, should they quote it.
    pub(super) fn redact(&self, words: &str) -> String {
        words.replace(&self.key, "[key]")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    fn config() -> OpenAiConfig {
        OpenAiConfig {
            base_url: String::new(),
            model: String::new(),
            dimensions: None,
            api_key_file: None,
            api_key_env: None,
            max_batch_texts: 1,
            max_batch_chars: 1,
            concurrency: 1,
            queue: 1,
            retries: 0,
            timeout: Duration::ZERO,
        }
    }

    #[test]
    fn keys_come_from_files_and_are_not_shown() {
        assert!(authorization(&config()).unwrap().is_none());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "  sk-secret\n").unwrap();
        let secret = authorization(&OpenAiConfig { api_key_file: Some(path.clone()), ..config() }).unwrap().unwrap();
        assert_eq!(secret.header(), "Bearer sk-secret");
        assert!(!format!("{:?}", secret.header()).contains("secret"));
        assert_eq!(secret.redact("bad key sk-secret"), "bad key [key]");
        std::fs::write(&path, "\n").unwrap();
        assert!(authorization(&OpenAiConfig { api_key_file: Some(path), ..config() }).is_err());
        let missing = Some("ANTIPHON_TEST_NOT_SET".to_owned());
        assert!(authorization(&OpenAiConfig { api_key_env: missing, ..config() }).is_err());
    }
}
