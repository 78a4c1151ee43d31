//! What was made of files, made anew when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::task::JoinHandle;

use crate::error::AccessError;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most bytes of a file.
const MAX_BYTES: u64 = 4 << 20;

/// A value made of files. Read again when any of them changes: mounted secrets and renewed certificates come without a word.
#[derive(Debug)]
pub struct Watched<T> {
    value: Arc<ArcSwap<T>>,
    follower: JoinHandle<()>,
}

/// Makes a value of the bytes of files, and of the value that it takes the place of.
pub(crate) type Make<T> = Box<dyn Fn(&[Vec<u8>], Option<&T>) -> Result<T, AccessError> + Send>;

impl<T: Send + Sync + 'static> Watched<T> {
    /// Reads the files and follows them; `what` names the value in the log. What is wrong with a later version is logged
    /// once, and the former value stays.
    ///
    /// # Errors
    /// [`AccessError`] where a file can't be read, has more than 4 MiB, or `make` says no.
    pub(crate) fn start(what: &'static str, paths: Vec<PathBuf>, make: Make<T>) -> Result<Self, AccessError> {
        let seen = read_all(&paths)?;
        let value = Arc::new(ArcSwap::from_pointee(make(&seen, None)?));
        let follower = tokio::spawn(follow(what, paths, seen, make, Arc::clone(&value)));
        Ok(Self { value, follower })
    }

    /// The value of the newest files that were right.
    pub fn current(&self) -> Arc<T> {
        self.value.load_full()
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

async fn follow<T: Send + Sync + 'static>(
    what: &'static str,
    paths: Vec<PathBuf>,
    mut known: Vec<Vec<u8>>,
    make: Make<T>,
    value: Arc<ArcSwap<T>>,
) {
    if paths.is_empty() {
        return;
    }
    let paths = Arc::new(paths);
    let mut before = known.clone();
    let mut complaint = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let looked_at = Arc::clone(&paths);
        let read = tokio::task::spawn_blocking(move || read_all(&looked_at)).await;
        let outcome = match read {
            Ok(Ok(now)) => {
                // Seen twice alike: not in the midst of being written.
                let is_stable = now == before;
                before = now;
                if !is_stable || before == known {
                    continue;
                }
                known.clone_from(&before);
                make(&known, Some(&value.load()))
            }
            Ok(Err(error)) => Err(error),
            // The runtime stops.
            Err(_) => return,
        };
        match outcome {
            Ok(new) => {
                value.store(Arc::new(new));
                complaint = None;
                tracing::info!(what, "read again");
            }
            Err(error) => {
                let words = error.to_string();
                if complaint.as_ref() != Some(&words) {
                    tracing::error!(what, error = words, "cannot be used; what was read before stays in force");
                    complaint = Some(words);
                }
            }
        }
    }
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, AccessError> {
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, AccessError> {
    use std::io::Read as _;
    let read = || {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    let bytes = read().map_err(|error| AccessError::file(path, error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(AccessError::file(path, format!("has more than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn number(bytes: &[Vec<u8>], former: Option<&(u32, u32)>) -> Result<(u32, u32), AccessError> {
        let text = String::from_utf8_lossy(&bytes[0]);
        let number = text.trim().parse().map_err(|_| AccessError::Tls(format!("{text:?} is no number")))?;
        Ok((number, former.map_or(0, |former| former.1 + 1)))
    }

    async fn until(watched: &Watched<(u32, u32)>, wanted: (u32, u32)) {
        for _ in 0..600 {
            if *watched.current() == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{:?} instead of {wanted:?}", watched.current());
    }

    #[tokio::test]
    async fn a_changed_file_counts_once_it_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        assert!(Watched::start("a number", vec![path.clone()], Box::new(number)).is_err());
        std::fs::write(&path, "x").unwrap();
        assert!(Watched::start("a number", vec![path.clone()], Box::new(number)).is_err());
        std::fs::write(&path, "1").unwrap();
        let watched = Watched::start("a number", vec![path.clone()], Box::new(number)).unwrap();
        assert_eq!(*watched.current(), (1, 0));
        std::fs::write(&path, "2").unwrap();
        until(&watched, (2, 1)).await;
        std::fs::write(&path, "wrong").unwrap();
        tokio::time::sleep(LOOK_EVERY * 3).await;
        assert_eq!(*watched.current(), (2, 1));
        std::fs::remove_file(&path).unwrap();
        tokio::time::sleep(LOOK_EVERY * 2).await;
        std::fs::write(&path, "3").unwrap();
        until(&watched, (3, 2)).await;
    }
}
