//! The object store in a local directory, so written that what it acknowledged survives power loss.
//!
//! `object_store`'s `LocalFileSystem` reads, lists and deletes. It does not write, for two reasons:
//! - It makes a directory's entry durable only where it made the directory itself. One made by a racing writer, or by a
//!   process that was killed in between, may vanish with everything acknowledged in it. Here every directory's entry is
//!   synced once by each process before the process acknowledges anything in it.
//! - Its staging names (`name#1`) are used again, so a sweep of leftovers could take the name from a writer that was
//!   stopped, and that writer would then publish another's bytes as its own. Here a staging name is random (`name#N`,
//!   N of 64 bits): whoever lost it to a sweep gets an error and has published nothing.
//!
//! Invariants: when a put returns, or says "already exists", the object's bytes and every directory entry on the way to it
//! are on disk. An object's bytes never change under its name, but by an overwrite, which replaces the whole file.
//! Deletions are not synced: a deleted object may come back by power loss, and the layout allows for that.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::local_dir::LocalDir;

/// An [`ObjectStore`] over a [`LocalDir`].
#[derive(Debug)]
pub(crate) struct LocalStore {
    dir: Arc<LocalDir>,
    files: LocalFileSystem,
}

impl LocalStore {
    /// A store over a directory that was opened.
    pub(crate) fn new(dir: Arc<LocalDir>) -> Result<Self> {
        let files = LocalFileSystem::new_with_prefix(dir.root())?.with_fsync(true);
        Ok(Self { dir, files })
    }
}

/// Puts a local file into the store, whole or not at all, replacing what has the name.
pub(crate) fn upload(dir: &LocalDir, from: &FsPath, to: &Path) -> io::Result<()> {
    publish(dir, to, Publish::Overwrite, |staging| {
        let mut file = File::options().write(true).create_new(true).open(staging)?;
        // Copies by reference where the file system can; never links, for the bytes must be the store's own.
        io::copy(&mut File::open(from)?, &mut file)?;
        Ok(file)
    })
}

fn put(dir: &LocalDir, to: &Path, payload: &PutPayload, how: Publish) -> io::Result<()> {
    publish(dir, to, how, |staging| {
        let mut file = File::options().write(true).create_new(true).open(staging)?;
        for bytes in payload {
            file.write_all(bytes)?;
        }
        Ok(file)
    })
}

#[derive(Clone, Copy)]
enum Publish {
    /// Fails with `AlreadyExists` where the name is taken; one winner among any number of racers.
    Create,
    Overwrite,
}

/// Writes a staging file by `write`, makes it durable and gives it its name.
fn publish(dir: &LocalDir, to: &Path, how: Publish, write: impl Fn(&FsPath) -> io::Result<File>) -> io::Result<()> {
    let dest = dir.file(to);
    let parent = dest.parent().unwrap_or(dir.root());
    let mut staging = Staging(staging_path(&dest));
    dir.make_dirs(parent)?;
    let file = match write(&staging.0) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The directory was removed since it was made: make it again. (Or `from` is absent: then fail again.)
            dir.forget(parent);
            dir.make_dirs(parent)?;
            staging = Staging(staging_path(&dest));
            write(&staging.0)?
        }
        other => other?,
    };
    file.sync_all()?;
    drop(file);
    let published = match how {
        Publish::Create => std::fs::hard_link(&staging.0, &dest),
        Publish::Overwrite => std::fs::rename(&staging.0, &dest),
    };
    match published {
        Ok(()) => dir.sync(parent),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // The winner may not have come to this yet, and the caller will build upon what it finds.
            dir.sync(parent)?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

fn staging_path(dest: &FsPath) -> PathBuf {
    let mut name = dest.as_os_str().to_owned();
    name.push(format!("#{}", rand::random::<u64>()));
    name.into()
}

/// A staging file, removed when dropped; after a rename there is nothing left to remove.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        // A leftover costs space only, until the next sweep.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
struct LocalError {
    path: String,
    source: io::Error,
}

fn library_error(path: &Path, source: io::Error) -> object_store::Error {
    let path = path.to_string();
    if source.kind() == io::ErrorKind::AlreadyExists {
        return object_store::Error::AlreadyExists { path, source: Box::new(source) };
    }
    object_store::Error::Generic { store: "local directory", source: Box::new(LocalError { path, source }) }
}

impl fmt::Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "local directory {}", self.dir.root().display())
    }
}

#[async_trait]
impl ObjectStore for LocalStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let how = match opts.mode {
            PutMode::Create => Publish::Create,
            PutMode::Overwrite => Publish::Overwrite,
            // Refuses, in the library's words.
            PutMode::Update(_) => return self.files.put_opts(location, payload, opts).await,
        };
        let (dir, to) = (Arc::clone(&self.dir), location.clone());
        let done = tokio::task::spawn_blocking(move || put(&dir, &to, &payload, how)).await?;
        done.map_err(|source| library_error(location, source))?;
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let (dir, to) = (Arc::clone(&self.dir), location.clone());
        let made = tokio::task::spawn_blocking(move || match dir.file(&to).parent() {
            Some(parent) => dir.make_dirs(parent),
            None => Ok(()),
        });
        made.await?.map_err(|source| library_error(location, source))?;
        self.files.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}
