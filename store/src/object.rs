//! [`Store`]: the few operations on objects that everything here is made of.
//!
//! Not here: what the objects mean (log, manifest, catalog), whole files (`transfer.rs`), URLs (`open.rs`).
//!
//! Invariants: every call ends, by an answer or by [`Limits`]. What a call acknowledged is durable. Nothing but
//! [`Store::create_if_absent`] ever decides between writers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, ListResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::error::StoreError;
use crate::local_dir::LocalDir;
use crate::path;
use crate::retry::{retrying, within};

/// The largest object read or written in one piece, in bytes: a frame with its largest body.
pub const MAX_OBJECT_BYTES: u64 = crate::frame::MAX_BODY_BYTES + crate::frame::HEADER_BYTES as u64;
/// The most names one listing returns; more are an error, never a shorter list.
pub const MAX_LISTED: usize = 1_000_000;

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For one answer of the store: one put, one get, one page of a listing, one piece of a file.
    pub answer: Duration,
    /// For a call with its retries.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { answer: Duration::from_secs(20), patience: Duration::from_secs(30) }
    }
}

/// What became of [`Store::create_if_absent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The object is now there, with these bytes, durably.
    Yes,
    /// An object of that name was there already, and is durable. Perhaps it is this very write: a store's client may have
    /// retried a create that had succeeded. The nonce in a frame tells.
    AlreadyExists,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The last part of its path.
    pub name: String,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// When it was written, by the store's clock.
    pub last_modified: SystemTime,
}

/// An object store. Cheap to clone; clones are the same store.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) dir: Option<Arc<LocalDir>>,
    /// Whether whole files go straight to `dir`, and not through `objects`.
    pub(crate) direct_files: bool,
    pub(crate) limits: Limits,
}

impl Store {
    /// A store over any implementation. It must create atomically ([`PutMode::Create`]) and be strongly consistent in
    /// gets and lists, as S3 is.
    pub fn with_object_store(objects: Arc<dyn ObjectStore>) -> Self {
        Self { objects, dir: None, direct_files: false, limits: Limits::default() }
    }

    pub(crate) fn over_dir(objects: Arc<dyn ObjectStore>, dir: Arc<LocalDir>) -> Self {
        Self { objects, dir: Some(dir), direct_files: true, limits: Limits::default() }
    }

    /// The same store with something in between, such as [`crate::failing::FailingStore`]; whole files then go through it
    /// too. What [`Store::local_path`] names is read without it.
    pub fn wrapped(mut self, wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>) -> Self {
        self.objects = wrap(self.objects);
        self.direct_files = false;
        self
    }

    /// The same store with other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether the store is a local directory, so that its files can be mapped in place.
    pub fn is_local(&self) -> bool {
        self.dir.is_some()
    }

    /// Where the object is as a file, for a local store; it need not exist. Never write there, and map only what is never
    /// overwritten (segment files). Nothing for other stores and for an invalid path.
    pub fn local_path(&self, path: &str) -> Option<PathBuf> {
        let dir = self.dir.as_ref()?;
        Some(dir.file(&path::parse(path).ok()?))
    }

    /// Writes an object if there is none of that name: of any number of callers exactly one gets `Yes`.
    ///
    /// Tries once (the S3 client may retry within). Idempotent only for who can tell its own bytes again.
    ///
    /// # Errors
    /// After `Unavailable` the outcome is unknown, and the write may still appear later.
    pub async fn create_if_absent(&self, path: &str, bytes: Bytes) -> Result<Created, StoreError> {
        let location = path::parse(path)?;
        if bytes.len() as u64 > MAX_OBJECT_BYTES {
            return Err(StoreError::invalid(path, format!("{} bytes are more than {MAX_OBJECT_BYTES}", bytes.len())));
        }
        let options = PutOptions::from(PutMode::Create);
        let put = self.objects.put_opts(&location, PutPayload::from(bytes), options);
        match within(self.limits.answer, path, put).await? {
            Ok(_) => Ok(Created::Yes),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Created::AlreadyExists),
            Err(error) => Err(StoreError::from_library(path, error)),
        }
    }

    /// Reads an object; nothing if there is none. Retries.
    pub async fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        let location = path::parse(path)?;
        retrying!(self.limits.patience, self.get_once(path, &location))
    }

    async fn get_once(&self, path: &str, location: &Path) -> Result<Option<Bytes>, StoreError> {
        let got = self.objects.get_opts(location, GetOptions::default());
        let got = match within(self.limits.answer, path, got).await? {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            got => got.map_err(|error| StoreError::from_library(path, error))?,
        };
        if got.meta.size > MAX_OBJECT_BYTES {
            return Err(StoreError::corrupt(path, format!("{} bytes are too many", got.meta.size)));
        }
        let bytes = within(self.limits.answer, path, got.bytes()).await?;
        bytes.map(Some).map_err(|error| StoreError::from_library(path, error))
    }

    /// Lists the objects directly under `prefix` whose name is greater than `after`, sorted by name. No such prefix is an
    /// empty list. Retries.
    pub async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Listed>, StoreError> {
        let parent = path::parse(prefix)?;
        let offset = match after {
            Some(name) => Some(path::parse(&format!("{prefix}/{name}"))?),
            None => None,
        };
        retrying!(self.limits.patience, self.list_once(prefix, &parent, offset.as_ref()))
    }

    async fn list_once(&self, prefix: &str, parent: &Path, offset: Option<&Path>) -> Result<Vec<Listed>, StoreError> {
        let mut stream = match offset {
            Some(offset) => self.objects.list_with_offset(Some(parent), offset),
            None => self.objects.list(Some(parent)),
        };
        let mut listed = Vec::new();
        while let Some(object) = within(self.limits.answer, prefix, stream.try_next())
            .await?
            .map_err(|error| StoreError::from_library(prefix, error))?
        {
            let Some(name) = direct_child(&object, parent) else {
                continue;
            };
            if listed.len() == MAX_LISTED {
                return Err(StoreError::invalid(prefix, format!("more than {MAX_LISTED} objects")));
            }
            listed.push(Listed { name, size_bytes: object.size, last_modified: object.last_modified.into() });
        }
        listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// Lists the parts that follow `prefix` in paths of objects deeper than directly under it, sorted. On a local store
    /// these are directories, and one may be empty. Retries.
    pub async fn list_dirs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let parent = path::parse(prefix)?;
        let listing = retrying!(self.limits.patience, self.list_dirs_once(prefix, &parent))?;
        let dirs = listing.common_prefixes.iter();
        let mut names: Vec<String> = dirs.filter_map(|dir| dir.filename().map(str::to_owned)).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    async fn list_dirs_once(&self, prefix: &str, parent: &Path) -> Result<ListResult, StoreError> {
        let listing = within(self.limits.answer, prefix, self.objects.list_with_delimiter(Some(parent))).await?;
        listing.map_err(|error| StoreError::from_library(prefix, error))
    }

    /// Deletes an object; that there is none is fine. On a local store the deletion may be undone by power loss. Retries.
    pub async fn delete(&self, path: &str) -> Result<(), StoreError> {
        let location = path::parse(path)?;
        retrying!(self.limits.patience, self.delete_once(path, &location))
    }

    async fn delete_once(&self, path: &str, location: &Path) -> Result<(), StoreError> {
        match within(self.limits.answer, path, self.objects.delete(location)).await? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::from_library(path, error)),
        }
    }

    /// Deletes every object below `prefix`, however deep, and on a local store the directories. Not atomic: objects go one
    /// after the other, and those written meanwhile may stay. Returns how many went. Retries.
    pub async fn delete_prefix(&self, prefix: &str) -> Result<u64, StoreError> {
        let parent = path::parse(prefix)?;
        let mut deleted = 0;
        retrying!(self.limits.patience, self.delete_prefix_once(prefix, &parent, &mut deleted))?;
        if let Some(dir) = self.dir.clone() {
            let pruned = tokio::task::spawn_blocking(move || dir.prune(&parent)).await;
            if let Ok(Err(error)) = pruned {
                // Only empty directories are left behind.
                tracing::warn!(prefix, %error, "could not remove the directories of deleted objects");
            }
        }
        Ok(deleted)
    }

    async fn delete_prefix_once(&self, prefix: &str, parent: &Path, deleted: &mut u64) -> Result<(), StoreError> {
        let found = self.objects.list(Some(parent)).map_ok(|object| object.location).boxed();
        let mut gone = self.objects.delete_stream(found);
        while let Some(result) = within(self.limits.answer, prefix, gone.next()).await? {
            match result {
                Ok(_) => *deleted += 1,
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(StoreError::from_library(prefix, error)),
            }
        }
        Ok(())
    }
}

/// The name of an object directly under `parent`.
fn direct_child(object: &ObjectMeta, parent: &Path) -> Option<String> {
    let mut parts = object.location.prefix_match(parent)?;
    let name = parts.next()?.as_ref().to_owned();
    parts.next().is_none().then_some(name)
}
