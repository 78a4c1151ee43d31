//! A model's folder: which files of it hold what, and reading them within bounds.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::embed::StartError;

/// Largest file of weights read.
const MAX_WEIGHTS_BYTES: u64 = 8 << 30;
/// Largest tokenizer or configuration read.
const MAX_JSON_BYTES: u64 = 256 << 20;

/// A model's folder.
pub(super) struct Folder<'f>(pub(super) &'f Path);

impl Folder<'_> {
    /// The first of these files that is there.
    fn first(&self, names: &[&str]) -> Option<PathBuf> {
        names.iter().map(|name| self.0.join(name)).find(|path| path.is_file())
    }

    /// The only file whose name ends so in one of these folders.
    fn only(&self, folders: &[&str], end: &str) -> Option<PathBuf> {
        folders.iter().find_map(|folder| {
            let entries = std::fs::read_dir(self.0.join(folder)).ok()?;
            let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
            let mut found = paths.by_ref().filter(|path| path.to_string_lossy().ends_with(end) && path.is_file());
            let path = found.next()?;
            found.next().is_none().then_some(path)
        })
    }

    /// The file of weights: model2vec's and sentence-transformers' name, else the only one there, as WordLlama keeps it.
    ///
    /// # Errors
    /// [`StartError::NoFile`].
    pub(super) fn weights(&self) -> Result<PathBuf, StartError> {
        self.first(&["model.safetensors", "0_StaticEmbedding/model.safetensors"])
            .or_else(|| self.only(&["", "weights"], ".safetensors"))
            .ok_or_else(|| self.no_file("weights: neither model.safetensors nor one other file *.safetensors"))
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// [`StartError::NoFile`].
    pub(super) fn tokenizer(&self) -> Result<PathBuf, StartError> {
        self.first(&["tokenizer.json", "0_StaticEmbedding/tokenizer.json"])
            .or_else(|| self.only(&["", "tokenizers"], "_tokenizer_config.json"))
            .ok_or_else(|| self.no_file("tokenizer: neither tokenizer.json nor one file *_tokenizer_config.json"))
    }

    fn no_file(&self, what: &'static str) -> StartError {
        StartError::NoFile { folder: self.0.to_owned(), what }
    }

    /// A file of JSON, an empty object where it is not there.
    ///
    /// # Errors
    /// [`StartError::Read`], [`StartError::Malformed`].
    pub(super) fn json(&self, name: &str) -> Result<Value, StartError> {
        let path = self.0.join(name);
        if !path.is_file() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let bytes = read(&path, MAX_JSON_BYTES)?;
        serde_json::from_slice(&bytes).map_err(|error| malformed(&path, error))
    }
}

/// The bytes of a file of weights.
///
/// # Errors
/// As for [`read_json`].
pub(super) fn read_weights(path: &Path) -> Result<Vec<u8>, StartError> {
    read(path, MAX_WEIGHTS_BYTES)
}

/// The bytes of a tokenizer or configuration.
///
/// # Errors
/// [`StartError::Read`]; [`StartError::Malformed`] where it is larger than any such file.
pub(super) fn read_json(path: &Path) -> Result<Vec<u8>, StartError> {
    read(path, MAX_JSON_BYTES)
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, StartError> {
    let failed = |source| StartError::Read { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    if bytes > most {
        return Err(malformed(path, format!("has {bytes} bytes; at most {most} are read")));
    }
    std::fs::read(path).map_err(failed)
}

/// A file that is not what it should be.
pub(super) fn malformed(path: &Path, words: impl ToString) -> StartError {
    StartError::Malformed { path: path.to_owned(), words: words.to_string() }
}
