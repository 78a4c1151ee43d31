//! From a store's URL to a [`Store`].

use std::path::PathBuf;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::memory::InMemory;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig};
use url::Url;

use crate::error::StoreError;
use crate::local::LocalStore;
use crate::local_dir::LocalDir;
use crate::object::Store;
use crate::path;

/// Retries inside the S3 client, which know best what a request may be repeated for. Ours come on top.
const S3_RETRIES: usize = 3;
const S3_RETRY_SECONDS: u64 = 10;

impl Store {
    /// Opens the store at `url`. Makes no request; for a local directory it walks the whole of it, and blocks meanwhile.
    /// - `file:///absolute/path`: a local directory, made where it is absent. Leftovers of a crash are swept.
    /// - `memory://`: a new store in this process's memory, gone with its last clone.
    /// - `s3://bucket/prefix`: S3 and what speaks its protocol **and honours `If-None-Match: *` on puts**. Credentials,
    ///   region, endpoint and so on come from the usual variables (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    ///   `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, …) or from the instance's role.
    ///
    /// # Errors
    /// `Invalid` for a URL or option that can't be used, `LocalFile` where the directory can't be.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(url, &[])
    }

    /// [`Store::open`] with options that go before the environment, named as there (`("AWS_REGION", "eu-west-1")`).
    /// Only `s3://` knows any.
    pub fn open_with(url: &str, options: &[(&str, &str)]) -> Result<Self, StoreError> {
        let invalid = |reason: &str| StoreError::invalid(format!("store URL {url:?}"), reason);
        let parsed = Url::parse(url).map_err(|error| invalid(&error.to_string()))?;
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(invalid("neither a query nor a fragment means anything here"));
        }
        if parsed.scheme() != "s3" && !options.is_empty() {
            return Err(invalid("options are for s3:// only"));
        }
        match parsed.scheme() {
            "file" => {
                let root = parsed.to_file_path().map_err(|()| invalid("not an absolute path of this host"))?;
                Self::open_dir(root)
            }
            "memory" if parsed.host_str().is_none_or(str::is_empty) && parsed.path().is_empty() => {
                Ok(Self::with_object_store(Arc::new(InMemory::new())))
            }
            "memory" => Err(invalid("an in-memory store has no name: memory://")),
            "s3" => {
                let bucket = parsed.host_str().ok_or_else(|| invalid("no bucket"))?;
                Ok(Self::with_object_store(s3(bucket, parsed.path().trim_matches('/'), options)?))
            }
            other => Err(invalid(&format!("unknown scheme {other:?}: file, s3 or memory"))),
        }
    }

    /// Opens a local directory, like `file://`.
    pub fn open_dir(root: PathBuf) -> Result<Self, StoreError> {
        let dir = LocalDir::open(&root).map_err(|source| StoreError::local_file(&root, source))?;
        let dir = Arc::new(dir);
        let objects = LocalStore::new(Arc::clone(&dir))
            .map_err(|error| StoreError::from_library(root.display().to_string(), error))?;
        Ok(Self::over_dir(Arc::new(objects), dir))
    }
}

fn s3(bucket: &str, prefix: &str, options: &[(&str, &str)]) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let mut builder = AmazonS3Builder::from_env();
    for (name, value) in options {
        let key: AmazonS3ConfigKey = name
            .to_ascii_lowercase()
            .parse()
            .map_err(|error| StoreError::invalid(format!("store option {name}"), error))?;
        builder = builder.with_config(key, *value);
    }
    let client = builder
        .with_bucket_name(bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_retry(RetryConfig {
            max_retries: S3_RETRIES,
            retry_timeout: std::time::Duration::from_secs(S3_RETRY_SECONDS),
            ..RetryConfig::default()
        })
        .build()
        .map_err(|error| StoreError::invalid(format!("S3 configuration for bucket {bucket}"), error))?;
    if prefix.is_empty() { Ok(Arc::new(client)) } else { Ok(Arc::new(PrefixStore::new(client, path::parse(prefix)?))) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::error::StoreErrorKind;

    #[test]
    fn urls_that_mean_nothing_are_refused() {
        let bad = [
            "",
            "x",
            "ftp://a",
            "file://host/a",
            "memory://name",
            "memory:///a",
            "s3://",
            "s3://b/a%20b",
            "s3://b/a?x=1",
        ];
        for url in bad {
            let error = Store::open(url).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Invalid, "{url}: {error}");
        }
        assert!(Store::open_with("memory://", &[("AWS_REGION", "x")]).is_err());
        assert!(Store::open_with("s3://b/p", &[("AWS_NO_SUCH", "x")]).is_err());
    }

    #[test]
    fn urls_of_each_kind_are_opened() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("not/yet");
        let store = Store::open(&format!("file://{}", dir.display())).unwrap();
        assert!(store.is_local() && dir.is_dir());
        assert!(!Store::open("memory://").unwrap().is_local());
        let options = [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        Store::open_with("s3://bucket", &options).unwrap();
        Store::open_with("s3://bucket/a/b", &options).unwrap();
    }
}
