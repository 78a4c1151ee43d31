//! Static models against what the Python programs of both layouts compute over the same files (`coordinator/tests/models`),
//! and damaged files.

#![allow(clippy::unwrap_used)]
use std::path::Path;

use super::super::golden::{compare, config, folder, package};
use super::*;

fn load(folder: &Path, dimensions: Option<usize>) -> Result<StaticModel, StartError> {
    StaticModel::load(&config(folder, dimensions))
}

#[test]
fn made_models_give_what_the_python_programs_give() {
    for name in ["model2vec", "model2vec-weighted", "model2vec-int8", "wordllama"] {
        let model = load(&folder(name), None).unwrap();
        assert_eq!(model.dimensions(), 8);
        assert!(compare(&model, &format!("{name}/golden.json"), 2e-6) >= 8, "{name}");
    }
}

#[test]
fn a_model_can_be_cut_to_its_first_dimensions() {
    let whole = load(&folder("wordllama"), None).unwrap().vector_of("bicycle wheel").unwrap().unwrap();
    let cut = load(&folder("wordllama"), Some(3)).unwrap();
    assert_eq!(cut.vector_of("bicycle wheel").unwrap().unwrap(), whole[..3]);
    for wrong in [0, 9] {
        assert!(matches!(load(&folder("wordllama"), Some(wrong)), Err(StartError::Settings(_))));
    }
}

/// Damaged and missing files are errors that name the file, never panics.
#[test]
fn damaged_models_do_not_start() {
    let copy = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(copy.path().join(name), bytes).unwrap();
    let read = |name: &str| std::fs::read(folder("model2vec").join(name)).unwrap();
    let start = || load(copy.path(), None);
    assert!(matches!(start(), Err(StartError::NoFile { .. })));
    let (weights, tokenizer) = (read("model.safetensors"), read("tokenizer.json"));
    put("model.safetensors", &weights);
    assert!(matches!(start(), Err(StartError::NoFile { .. })));
    put("tokenizer.json", &tokenizer);
    assert!(start().is_ok());
    put("config.json", b"{");
    assert!(matches!(start(), Err(StartError::Malformed { .. })));
    put("config.json", b"{}");
    for end in [0, 7, 8, 40, weights.len() / 2, weights.len() - 1] {
        put("model.safetensors", &weights[..end]);
        assert!(matches!(start(), Err(StartError::Malformed { .. })), "{end}");
    }
    let mut longer = weights.clone();
    longer[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    put("model.safetensors", &longer);
    assert!(matches!(start(), Err(StartError::Malformed { .. })));
    put("model.safetensors", &weights);
    for end in [0, 1, tokenizer.len() / 2] {
        put("tokenizer.json", &tokenizer[..end]);
        assert!(matches!(start(), Err(StartError::Malformed { .. })), "{end}");
    }
    // A tokenizer of another model: more tokens than rows.
    put("tokenizer.json", &std::fs::read(folder("wordllama/tokenizers/made_tokenizer_config.json")).unwrap());
    assert!(matches!(start(), Err(StartError::Malformed { .. })));
}

/// Real weights: WordLlama's package, where a folder is given. CI requires it.
#[test]
fn wordllama_gives_what_its_python_program_gives() {
    let Some(package) = package("wordllama") else { return };
    let model = load(&package, None).unwrap();
    assert!(compare(&model, "wordllama-l2-supercat.golden.json", 1e-5) >= 8);
}
