//! The directory of a local store: which of its directories are known to be on disk, and the sweep of what a crash left.
//!
//! Several processes may use one directory. A sweep can never cost another's acknowledged write (see [`crate::local`]), but
//! it can make one fail: so everything is swept only when nobody else has the directory open, else only old leftovers.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path as FsPath, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use object_store::path::Path;

/// Held shared by whoever has the directory open. No object can have this name.
const LOCK_NAME: &str = ".antiphon.lock";
/// A leftover of this age is swept though others have the directory open.
const OLD_LEFTOVER: Duration = Duration::from_secs(3600);
/// Directories remembered as durable; beyond, all are forgotten and synced again.
const MAX_REMEMBERED: usize = 65_536;

/// An open directory of a local store.
#[derive(Debug)]
pub(crate) struct LocalDir {
    root: PathBuf,
    /// Directories whose entry in their parent was synced by this process.
    durable: Mutex<HashSet<PathBuf>>,
    _lock: Option<File>,
}

impl LocalDir {
    /// Opens the directory, makes it where it is absent, and sweeps leftovers.
    pub(crate) fn open(root: &FsPath) -> io::Result<Self> {
        make_root(root)?;
        let root = root.canonicalize()?;
        let lock = File::options().create(true).truncate(false).write(true).open(root.join(LOCK_NAME))?;
        let alone = lock.try_lock().is_ok();
        sweep(&root, &|age| alone || age >= OLD_LEFTOVER)?;
        if alone {
            lock.unlock()?;
        }
        // Where locks don't work everybody looks like a stranger to everybody, and only old leftovers are swept.
        let held = lock.try_lock_shared().is_ok();
        Ok(Self { root, durable: Mutex::default(), _lock: held.then_some(lock) })
    }

    /// The directory, absolute and without links.
    pub(crate) fn root(&self) -> &FsPath {
        &self.root
    }

    /// Where an object is. Paths of ours need no escaping (see [`crate::path`]).
    pub(crate) fn file(&self, path: &Path) -> PathBuf {
        self.root.join(path.as_ref())
    }

    /// Makes `dir` (at or below the root) and its parents, and sees to it once that their entries are on disk.
    pub(crate) fn make_dirs(&self, dir: &FsPath) -> io::Result<()> {
        if dir == self.root || self.durable().contains(dir) {
            return Ok(());
        }
        let Some(parent) = dir.parent().filter(|parent| parent.starts_with(&self.root)) else {
            return Err(io::Error::other("a directory outside the store's"));
        };
        self.make_dirs(parent)?;
        match std::fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                self.forget(parent);
                return Err(error);
            }
            _ => {}
        }
        self.sync(parent)?;
        let mut durable = self.durable();
        if durable.len() >= MAX_REMEMBERED {
            durable.clear();
        }
        durable.insert(dir.to_owned());
        Ok(())
    }

    /// Forgets that `dir` and what is below and above it were made.
    pub(crate) fn forget(&self, dir: &FsPath) {
        self.durable().retain(|known| !known.starts_with(dir) && !dir.starts_with(known));
    }

    /// Writes the entries of a directory to disk.
    pub(crate) fn sync(&self, dir: &FsPath) -> io::Result<()> {
        sync_dir(dir)
    }

    /// Removes leftovers and empty directories at and below a path whose objects were deleted.
    pub(crate) fn prune(&self, path: &Path) -> io::Result<()> {
        let dir = self.file(path);
        let pruned = match dir.is_dir() {
            true => sweep(&dir, &|_| true).and_then(|()| remove_empty(&dir)),
            false => Ok(()),
        };
        self.forget(&dir);
        pruned
    }

    fn durable(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        // A set of names cannot be left half changed in a way that matters.
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the root and its parents where they are absent, durably.
fn make_root(root: &FsPath) -> io::Result<()> {
    let Some(parent) = root.parent() else {
        return Ok(());
    };
    if root.is_dir() {
        // Perhaps made by a process that was killed before it came to this; not ours to insist on.
        let _ = sync_dir(parent);
        return Ok(());
    }
    make_root(parent)?;
    match std::fs::create_dir(root) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_dir(parent),
    }
}

#[cfg(unix)]
fn sync_dir(dir: &FsPath) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Directories can't be opened to be synced elsewhere.
#[cfg(not(unix))]
fn sync_dir(_dir: &FsPath) -> io::Result<()> {
    Ok(())
}

/// Whether a file's name is a staging name: `name#N`.
fn is_leftover(name: &str) -> bool {
    name.split_once('#').is_some_and(|(_, digits)| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Removes staging files below `dir` whose age `due` says so. Links are not followed; what vanishes meanwhile is fine.
fn sweep(dir: &FsPath, due: &dyn Fn(Duration) -> bool) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "compared with file times, which are the wall clock's")]
    let now = SystemTime::now();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let file_type = entry.file_type()?;
            if file_type.is_dir() {
                dirs.push(entry.path());
            } else if file_type.is_file() && entry.file_name().to_str().is_some_and(is_leftover) {
                let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else {
                    continue;
                };
                if due(now.duration_since(modified).unwrap_or_default()) {
                    let removed = std::fs::remove_file(entry.path());
                    tracing::info!(file = %entry.path().display(), ok = removed.is_ok(), "swept a leftover");
                }
            }
        }
    }
    Ok(())
}

/// Removes `dir` and the directories below it as far as they are empty.
fn remove_empty(dir: &FsPath) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty(&entry.path())?;
        }
    }
    match std::fs::remove_dir(dir) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "local_dir_tests.rs"]
mod tests;
