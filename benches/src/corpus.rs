//! A data folder: `corpus.jsonl.gz` (or `corpus.jsonl`) and `docs.npy`, row for row.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use crate::Outcome;
use crate::npy::Matrix;

/// One document.
#[derive(Debug, Clone, Deserialize)]
pub struct Entry {
    /// Its key.
    #[serde(rename = "_id")]
    pub id: String,
    /// A short text.
    #[serde(default)]
    pub title: String,
    /// A longer text.
    #[serde(default)]
    pub text: String,
    /// Part of speech, where the data says so.
    #[serde(default)]
    pub pos: String,
    /// Lexicographer file, where the data says so.
    #[serde(default)]
    pub lexfile: i64,
}

/// Documents with their vectors.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// The documents.
    pub entries: Vec<Entry>,
    /// Their vectors, in the same order.
    pub vectors: Matrix,
}

impl Corpus {
    /// Reads a data folder; only the first `limit` documents where that is given.
    ///
    /// # Errors
    /// Where a file is missing, damaged or does not fit the other.
    pub fn read(dir: &Path, limit: Option<usize>) -> Outcome<Self> {
        let limit = limit.unwrap_or(usize::MAX);
        let packed = dir.join("corpus.jsonl.gz");
        let plain = dir.join("corpus.jsonl");
        let reader: Box<dyn Read> = if packed.exists() {
            Box::new(MultiGzDecoder::new(File::open(packed)?))
        } else {
            Box::new(File::open(&plain).map_err(|error| format!("{}: {error}", plain.display()))?)
        };
        let mut entries = Vec::new();
        let mut num_lines = 0;
        for line in BufReader::new(reader).lines() {
            let line = line?;
            num_lines += 1;
            if entries.len() < limit {
                entries.push(serde_json::from_str(&line).map_err(|error| format!("line {num_lines}: {error}"))?);
            }
        }
        let mut vectors = Matrix::read(&dir.join("docs.npy"))?;
        if vectors.rows != num_lines {
            return Err(format!("{num_lines} documents, but {} vectors", vectors.rows).into());
        }
        vectors.rows = entries.len();
        vectors.values.truncate(vectors.rows * vectors.dims);
        Ok(Self { entries, vectors })
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first documents.
    pub fn head(&self, len: usize) -> Self {
        let len = len.min(self.len());
        let dims = self.vectors.dims;
        let values = self.vectors.values[..len * dims].to_vec();
        Self { entries: self.entries[..len].to_vec(), vectors: Matrix { rows: len, dims, values } }
    }
}
