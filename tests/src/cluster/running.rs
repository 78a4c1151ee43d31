//! A cluster that runs.

use std::path::PathBuf;

use tempfile::TempDir;

use super::process::ServerProcess;
use crate::client::Client;

/// A cluster's processes, by role. All are killed when it is dropped.
pub struct Cluster {
    pub serves: Vec<ServerProcess>,
    pub nodes: Vec<ServerProcess>,
    pub coordinators: Vec<ServerProcess>,
    /// The store's URL.
    pub store: String,
    /// The data folder; the store, unless another was asked for.
    pub data: PathBuf,
    pub(super) folder: Option<TempDir>,
}

impl Cluster {
    /// A client of the `index`th process that has the public API: a `serve`, or else a coordinator.
    pub fn client(&self, index: usize) -> Client {
        self.serves.iter().chain(&self.coordinators).nth(index).unwrap().client()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.serves.iter_mut().chain(&mut self.coordinators).chain(&mut self.nodes) {
            process.kill();
        }
        if let Some(folder) = self.folder.take()
            && std::thread::panicking()
        {
            eprintln!("--- the cluster's files are kept in {}", folder.keep().display());
        }
    }
}
