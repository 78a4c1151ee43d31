//! A folder that one node has to itself, in a folder that several may be given.
//!
//! `<parent>/node-<n>`: whoever starts takes the first that nobody holds, and with it what lies there; those that nobody
//! holds further on are removed. A lock on a file in the folder says that it is held, and goes with the process that had it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// More nodes on one folder are a mistake.
const MAX_FOLDERS: usize = 1024;
/// Whole files of segments, `<uid>/<shard>/<segment>/<file>`.
pub(super) const SEGMENTS: &str = "segments";
/// Segments that are being built.
pub(super) const BUILDS: &str = "builds";
/// Downloads that are not whole, and segments on their way out.
pub(super) const TRASH: &str = "trash";

/// A node's own folder. Held until dropped.
#[derive(Debug)]
pub(super) struct CacheFolder {
    path: PathBuf,
    /// Removed when dropped, since nobody said where to keep it.
    turn: Option<PathBuf>,
    _lock: File,
}

impl CacheFolder {
    /// Takes a folder under `parent`, to be kept; or one among the temporary files, which is emptied now and removed when
    /// dropped.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn take(parent: Option<&Path>) -> io::Result<Self> {
        let is_kept = parent.is_some();
        let parent = parent.map_or_else(|| std::env::temp_dir().join("antiphon-cache"), Path::to_owned);
        std::fs::create_dir_all(&parent)?;
        let turn = parent.join("turn");
        // One at a time: nobody else looks at a folder that is made and not locked yet, or locked and half removed.
        let my_turn = File::create(&turn)?;
        my_turn.lock()?;
        let (number, lock) = first_free(&parent)?;
        for later in number + 1..MAX_FOLDERS {
            let path = folder(&parent, later);
            if !path.exists() {
                break;
            }
            if held(&path)?.is_some() {
                remove(&path);
            }
        }
        let path = folder(&parent, number);
        let leftovers: &[&str] = if is_kept { &[BUILDS, TRASH] } else { &[BUILDS, TRASH, SEGMENTS] };
        leftovers.iter().for_each(|name| remove(&path.join(name)));
        for name in [BUILDS, TRASH, SEGMENTS] {
            std::fs::create_dir_all(path.join(name))?;
        }
        Ok(Self { path, turn: (!is_kept).then_some(turn), _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CacheFolder {
    fn drop(&mut self) {
        let Some(turn) = &self.turn else { return };
        match File::create(turn).and_then(|turn| turn.lock().map(|()| turn)) {
            Ok(_my_turn) => remove(&self.path),
            Err(error) => tracing::debug!(%error, path = %self.path.display(), "the cache stays behind"),
        }
    }
}

fn folder(parent: &Path, number: usize) -> PathBuf {
    parent.join(format!("node-{number}"))
}

fn first_free(parent: &Path) -> io::Result<(usize, File)> {
    for number in 0..MAX_FOLDERS {
        let path = folder(parent, number);
        std::fs::create_dir_all(&path)?;
        if let Some(lock) = held(&path)? {
            return Ok((number, lock));
        }
    }
    Err(io::Error::other(format!("{} holds the caches of {MAX_FOLDERS} nodes already", parent.display())))
}

/// The lock of a folder; nothing where another has it.
fn held(path: &Path) -> io::Result<Option<File>> {
    let lock = File::options().create(true).write(true).truncate(false).open(path.join("lock"))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Removes a folder with all in it. What stays costs space only.
pub(super) fn remove(path: &Path) {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "a folder of the cache could not be removed");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_node_has_a_folder_of_its_own_and_the_next_finds_it() {
        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path().join("cache");
        let one = CacheFolder::take(Some(&parent)).unwrap();
        let other = CacheFolder::take(Some(&parent)).unwrap();
        assert_ne!(one.path(), other.path());
        for name in [SEGMENTS, BUILDS, TRASH] {
            std::fs::write(one.path().join(name).join("file"), "x").unwrap();
        }
        let (kept, second) = (one.path().to_owned(), other.path().to_owned());
        drop((one, other));
        let again = CacheFolder::take(Some(&parent)).unwrap();
        assert_eq!(again.path(), kept);
        assert!(kept.join(SEGMENTS).join("file").exists());
        assert!(!kept.join(BUILDS).join("file").exists() && !kept.join(TRASH).join("file").exists());
        assert!(!second.exists(), "nobody would ever look at it again");
    }

    #[test]
    fn a_folder_that_nobody_asked_to_keep_is_removed() {
        let folder = CacheFolder::take(None).unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join(SEGMENTS).join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.join(SEGMENTS).join("file").exists());
    }
}
