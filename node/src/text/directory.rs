//! A tantivy directory over the files of a bundle: read only, nothing copied, no locks, nothing to watch.
//!
//! A segment's files are found by what their names end with, since a bundle holds exactly one segment.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr};
use tantivy::{Directory, TantivyError};

use super::{TextError, bundle};
use crate::mapped::Blob;

/// The name of tantivy's list of segments.
pub(super) const META: &str = "meta.json";

/// The files of one bundle.
#[derive(Debug, Clone)]
pub(super) struct BundleDirectory {
    files: Arc<Vec<(String, Blob)>>,
}

impl BundleDirectory {
    /// # Errors
    /// [`TextError::Damaged`].
    pub(super) fn open(bundle: &Blob) -> Result<Self, TextError> {
        Ok(Self { files: Arc::new(bundle::files(bundle)?) })
    }

    fn find(&self, path: &Path) -> Option<&Blob> {
        let name = if path == Path::new(META) { path.as_os_str() } else { path.extension()? };
        self.files.iter().find(|(file, _)| name == file.as_str()).map(|(_, blob)| blob)
    }

    fn require(&self, path: &Path) -> Result<&Blob, OpenReadError> {
        self.find(path).ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a text bundle is read only")
}

impl Directory for BundleDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(OwnedBytes::new(self.require(path)?.clone())))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath: path.to_owned() })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.find(path).is_some())
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.to_owned()))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        Ok(self.require(path)?.to_vec())
    }

    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        // Nothing ever changes here, so every lock can be had by all.
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _watch_callback: WatchCallback) -> Result<WatchHandle, TantivyError> {
        Ok(WatchHandle::empty())
    }
}
