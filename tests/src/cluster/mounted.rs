//! A folder that can be made to refuse writes: a file system of its own, where mounting one is allowed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A mounted folder. Unmounted when dropped.
pub struct Mounted {
    folder: TempDir,
    is_mounted: bool,
}

impl Mounted {
    /// A fresh one in memory; an ordinary folder where nothing can be mounted.
    pub fn create() -> Self {
        let folder = tempfile::Builder::new().prefix("antiphon-store-").tempdir().unwrap();
        let is_mounted = run("mount", &["-t", "tmpfs", "-o", "size=4g", "tmpfs", folder.path().to_str().unwrap()]);
        Self { folder, is_mounted }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Whether it can be made to refuse writes.
    pub fn can_refuse(&self) -> bool {
        self.is_mounted
    }

    /// Has it refuse writes, or take them again. Says whether it does: not while a file is being written, which is waited
    /// for a little.
    pub async fn refuse_writes(&self, refuse: bool) -> bool {
        let mode = if refuse { "remount,ro" } else { "remount,rw" };
        let until = Instant::now() + Duration::from_secs(2);
        while !run("mount", &["-o", mode, path_of(self.folder.path())]) {
            if Instant::now() > until {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        true
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            run("umount", &["--lazy", path_of(self.folder.path())]);
        }
    }
}

fn path_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}
