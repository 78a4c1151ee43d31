//! Sentence encoders of BERT's type (MiniLM and its kin), in sentence-transformers' layout: the mean of the last layer's
//! tokens, of unit length where the model says so. The only place that knows `candle`.
//!
//! Each text is computed on its own, so no vector depends on what else was asked for, and nothing is padded.

use std::path::Path;

use candle_core::{DType, Device, Result as Computed, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear, Module, VarBuilder, ops::softmax_last_dim};
use serde::Deserialize;
use serde_json::Value;

use super::folder::{Folder, malformed, read_weights};
use super::runner::TextModel;
use super::tokens::Tokens;
use crate::embed::StartError;
use crate::embed::config::LocalConfig;

/// Most layers of a model that is loaded, and most numbers of a token.
const MAX_LAYERS: usize = 128;
const MAX_HIDDEN: usize = 16_384;

/// What of `config.json` matters.
#[derive(Debug, Deserialize)]
struct Shape {
    model_type: String,
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    hidden_act: String,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    layer_norm_eps: f64,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

/// A sentence encoder.
pub(in crate::embed) struct Bert {
    tokens: Tokens,
    words: Embedding,
    positions: Tensor,
    segment: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
    vocab_size: usize,
    normalize: bool,
    dimensions: usize,
}

impl Bert {
    /// Loads a model.
    ///
    /// # Errors
    /// [`StartError`]: a file that is missing or damaged, another kind of model, or other dimensions than the settings say.
    pub(in crate::embed) fn load(config: &LocalConfig) -> Result<Self, StartError> {
        let folder = Folder(&config.folder);
        let path = folder.weights()?;
        let shape = shape(&folder)?;
        let normalize = pooling(&folder)?;
        let max_tokens = folder.json("sentence_bert_config.json")?["max_seq_length"].as_u64().unwrap_or(u64::MAX);
        let max_tokens = shape.max_position_embeddings.min(usize::try_from(max_tokens).unwrap_or(usize::MAX));
        let tokens = Tokens::load(&folder.tokenizer()?, Some(max_tokens))?;
        if tokens.bound() > shape.vocab_size {
            let words = format!("{} tokens, the model knows {}", tokens.bound(), shape.vocab_size);
            return Err(malformed(&folder.tokenizer()?, words));
        }
        if config.dimensions.is_some_and(|wanted| wanted != shape.hidden_size) {
            let words = format!("dimensions: the model has {}, and can't be cut", shape.hidden_size);
            return Err(StartError::Settings(words));
        }
        let bytes = read_weights(&path)?;
        Self::build(&bytes, &shape, tokens, normalize).map_err(|error| malformed(&path, error))
    }

    fn build(bytes: &[u8], shape: &Shape, tokens: Tokens, normalize: bool) -> Computed<Self> {
        let tensors = candle_core::safetensors::load_buffer(bytes, &Device::Cpu)?;
        let prefixed = tensors.contains_key("bert.embeddings.word_embeddings.weight");
        let root = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
        let root = if prefixed { root.pp("bert") } else { root };
        let hidden = shape.hidden_size;
        let embeddings = root.pp("embeddings");
        let table = |rows, name: &str| embeddings.get((rows, hidden), &format!("{name}.weight"));
        let layers =
            (0..shape.num_hidden_layers).map(|layer| Layer::new(&root.pp(format!("encoder.layer.{layer}")), shape));
        Ok(Self {
            tokens,
            words: Embedding::new(table(shape.vocab_size, "word_embeddings")?, hidden),
            positions: table(shape.max_position_embeddings, "position_embeddings")?,
            segment: table(shape.type_vocab_size, "token_type_embeddings")?.narrow(0, 0, 1)?,
            norm: norm(&embeddings.pp("LayerNorm"), shape)?,
            layers: layers.collect::<Computed<_>>()?,
            vocab_size: shape.vocab_size,
            normalize,
            dimensions: hidden,
        })
    }

    fn mean(&self, ids: &[u32]) -> Computed<Vec<f32>> {
        let ids = Tensor::new(ids, &Device::Cpu)?;
        let positions = self.positions.narrow(0, 0, ids.dim(0)?)?;
        let mut states = self.norm.forward(&(self.words.forward(&ids)? + positions)?.broadcast_add(&self.segment)?)?;
        for layer in &self.layers {
            states = layer.forward(&states)?;
        }
        states.mean(0)?.to_vec1()
    }
}

impl TextModel for Bert {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn vector_of(&self, text: &str) -> Result<Option<Vec<f32>>, String> {
        let ids = self.tokens.of(text, true)?;
        if ids.is_empty() || ids.iter().any(|id| *id as usize >= self.vocab_size) {
            return Ok(None);
        }
        let mut vector = self.mean(&ids).map_err(|error| error.to_string())?;
        if self.normalize {
            let length = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
        }
        Ok(Some(vector))
    }
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    wide: Linear,
    narrow: Linear,
    norm: LayerNorm,
    heads: usize,
}

impl Layer {
    fn new(root: &VarBuilder<'_>, shape: &Shape) -> Computed<Self> {
        let (hidden, wide) = (shape.hidden_size, shape.intermediate_size);
        let linear = |name: &str, from, to| {
            let root = root.pp(name);
            Ok::<_, candle_core::Error>(Linear::new(root.get((to, from), "weight")?, Some(root.get(to, "bias")?)))
        };
        Ok(Self {
            query: linear("attention.self.query", hidden, hidden)?,
            key: linear("attention.self.key", hidden, hidden)?,
            value: linear("attention.self.value", hidden, hidden)?,
            attended: linear("attention.output.dense", hidden, hidden)?,
            attended_norm: norm(&root.pp("attention.output.LayerNorm"), shape)?,
            wide: linear("intermediate.dense", hidden, wide)?,
            narrow: linear("output.dense", wide, hidden)?,
            norm: norm(&root.pp("output.LayerNorm"), shape)?,
            heads: shape.num_attention_heads,
        })
    }

    /// States of (tokens, hidden) to the next layer's.
    fn forward(&self, states: &Tensor) -> Computed<Tensor> {
        let (tokens, hidden) = states.dims2()?;
        let size = hidden / self.heads;
        let by_head = |tensor: Tensor| tensor.reshape((tokens, self.heads, size))?.transpose(0, 1)?.contiguous();
        let query = by_head(self.query.forward(states)?)?;
        let key = by_head(self.key.forward(states)?)?;
        let value = by_head(self.value.forward(states)?)?;
        let scores = (query.matmul(&key.t()?)? / (size as f64).sqrt())?;
        let context = softmax_last_dim(&scores)?.matmul(&value)?.transpose(0, 1)?.reshape((tokens, hidden))?;
        let attended = self.attended_norm.forward(&(self.attended.forward(&context)? + states)?)?;
        let wide = self.wide.forward(&attended)?.gelu_erf()?;
        self.norm.forward(&(self.narrow.forward(&wide)? + attended)?)
    }
}

fn norm(root: &VarBuilder<'_>, shape: &Shape) -> Computed<LayerNorm> {
    let hidden = shape.hidden_size;
    Ok(LayerNorm::new(root.get(hidden, "weight")?, root.get(hidden, "bias")?, shape.layer_norm_eps))
}

/// The model's shape, if it is one that this code computes.
fn shape(folder: &Folder<'_>) -> Result<Shape, StartError> {
    let path = folder.0.join("config.json");
    let shape: Shape = serde_json::from_value(folder.json("config.json")?).map_err(|error| malformed(&path, error))?;
    let by_position = shape.position_embedding_type.as_deref().unwrap_or("absolute") == "absolute";
    if shape.model_type != "bert" || shape.hidden_act != "gelu" || !by_position {
        return Err(malformed(&path, "is no model of type bert with gelu and absolute positions"));
    }
    let heads = shape.num_attention_heads;
    let is_good = (1..=MAX_HIDDEN).contains(&shape.hidden_size)
        && heads > 0
        && shape.hidden_size.is_multiple_of(heads)
        && (1..=MAX_LAYERS).contains(&shape.num_hidden_layers)
        && shape.type_vocab_size > 0
        && shape.max_position_embeddings >= 8;
    if is_good { Ok(shape) } else { Err(malformed(&path, format!("the numbers are out of bounds: {shape:?}"))) }
}

/// Whether vectors are brought to unit length. Without `modules.json` they are, as sentence encoders do.
fn pooling(folder: &Folder<'_>) -> Result<bool, StartError> {
    let of_module = |module: &Value, name: &str| module["type"].as_str().is_some_and(|kind| kind.ends_with(name));
    let modules = folder.json("modules.json")?;
    let Some(modules) = modules.as_array() else { return Ok(true) };
    let known = |module: &Value| ["Transformer", "Pooling", "Normalize"].iter().any(|name| of_module(module, name));
    if let Some(strange) = modules.iter().find(|module| !known(module)) {
        let words = format!("the module {} is none that this program computes", strange["type"]);
        return Err(malformed(&folder.0.join("modules.json"), words));
    }
    if let Some(pooling) = modules.iter().find(|module| of_module(module, "Pooling")) {
        let file = Path::new(pooling["path"].as_str().unwrap_or("1_Pooling")).join("config.json");
        let config = folder.json(&file.to_string_lossy())?;
        let only_mean = config.as_object().into_iter().flatten().all(|(name, value)| {
            !name.starts_with("pooling_mode_") || value.as_bool() == Some(name == "pooling_mode_mean_tokens")
        });
        if !only_mean {
            return Err(malformed(&folder.0.join(file), "pools otherwise than by the mean of the tokens"));
        }
    }
    Ok(modules.iter().any(|module| of_module(module, "Normalize")))
}

#[cfg(test)]
#[path = "bert_tests.rs"]
mod tests;
