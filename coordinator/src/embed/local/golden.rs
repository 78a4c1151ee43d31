//! For tests of models: golden vectors, and the folders of made and of real models.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::runner::TextModel;
use crate::embed::config::LocalConfig;

/// A made model of `coordinator/tests/models`.
pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name)
}

/// Settings of a model in a folder.
pub(super) fn config(folder: &Path, dimensions: Option<usize>) -> LocalConfig {
    LocalConfig { folder: folder.to_owned(), dimensions, threads: 1, queue: 1 }
}

/// Where a package with real weights is; none where nobody said so, which CI does not allow.
pub(super) fn package(name: &str) -> Option<PathBuf> {
    let Some(models) = std::env::var_os("ANTIPHON_TEST_MODELS") else {
        assert!(std::env::var_os("ANTIPHON_REQUIRE_MODELS").is_none(), "ANTIPHON_TEST_MODELS must name a folder");
        eprintln!("skipped: ANTIPHON_TEST_MODELS names no folder with packages of models");
        return None;
    };
    Some(Path::new(&models).join(name))
}

/// Compares with golden vectors, a list of {text, vector} in a file of the made models' folder; a vector of zeros stands for
/// none. Returns how many there are.
pub(super) fn compare(model: &impl TextModel, file: &str, tolerance: f32) -> usize {
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(folder(file)).unwrap()).unwrap();
    for case in golden.as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let wanted: Vec<f32> = case["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect();
        match model.vector_of(text).unwrap() {
            None => assert!(wanted.iter().all(|x| *x == 0.0), "{text:?}: {wanted:?}"),
            Some(found) => {
                assert_eq!(found.len(), wanted.len());
                let furthest = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(furthest <= tolerance, "{text:?} differs by {furthest}");
            }
        }
    }
    golden.as_array().unwrap().len()
}
