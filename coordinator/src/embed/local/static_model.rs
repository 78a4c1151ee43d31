//! Static embeddings: a vector for each token, a text's vector is their mean. Two layouts:
//!
//! - **model2vec** (tensor `embeddings`, perhaps `weights` and `mapping`; `config.json`): unknown tokens don't count, a text
//!   is read up to `max_length` tokens (512 unless the config says otherwise), normalised where the config says so.
//! - **WordLlama** and sentence-transformers' StaticEmbedding (tensor `embedding.weight`): every token counts.

use serde_json::Value;

use super::folder::{Folder, malformed};
use super::runner::TextModel;
use super::tokens::Tokens;
use super::weights::{Matrix, Weights};
use crate::embed::StartError;
use crate::embed::config::LocalConfig;

/// Tokens that a model2vec model reads unless its config says otherwise.
const MODEL2VEC_MAX_TOKENS: u64 = 512;

/// A model of static embeddings.
pub(in crate::embed) struct StaticModel {
    tokens: Tokens,
    embeddings: Matrix,
    /// By token: a factor.
    weights: Option<Vec<f32>>,
    /// By token: the row.
    mapping: Option<Vec<u64>>,
    left_out: Option<u32>,
    max_tokens: Option<usize>,
    max_chars: Option<usize>,
    normalize: bool,
    dimensions: usize,
}

impl StaticModel {
    /// Loads a model.
    ///
    /// # Errors
    /// [`StartError`]: a file that is missing or damaged, or dimensions that the model does not have.
    pub(in crate::embed) fn load(config: &LocalConfig) -> Result<Self, StartError> {
        let folder = Folder(&config.folder);
        let file = Weights::load(&folder.weights()?)?;
        let (name, embeddings) = file
            .matrix(&["embeddings", "embedding.weight"])?
            .ok_or_else(|| malformed(file.path(), "there is no tensor `embeddings` or `embedding.weight`"))?;
        let is_model2vec = name == "embeddings";
        let tokens = Tokens::load(&folder.tokenizer()?, None)?;
        let json = folder.json("config.json")?;
        let column = |name| Ok::<_, StartError>(file.matrix(&[name])?.map(|(_, matrix)| matrix));
        let weights = match column("weights")? {
            Some(matrix) => Some(matrix.numbers().ok_or_else(|| malformed(file.path(), "`weights` is no column"))?),
            None => None,
        };
        let mapping = match column("mapping")? {
            Some(matrix) => {
                Some(matrix.integers().ok_or_else(|| malformed(file.path(), "`mapping` holds no row numbers"))?)
            }
            None => None,
        };
        let rows = mapping.as_ref().map_or(embeddings.rows, Vec::len);
        // WordLlama's tokenizers may know more tokens than there are rows: those beyond count as the last one.
        let too_few = is_model2vec && (rows < tokens.bound() || weights.as_ref().is_some_and(|all| all.len() < rows));
        let astray = mapping.iter().flatten().any(|row| *row >= embeddings.rows as u64);
        if embeddings.rows == 0 || embeddings.columns == 0 || too_few || astray {
            let words = format!("{rows} rows don't fit the tokenizer's {} tokens", tokens.bound());
            return Err(malformed(file.path(), words));
        }
        let dimensions = config.dimensions.unwrap_or(embeddings.columns);
        if !(1..=embeddings.columns).contains(&dimensions) {
            let words = format!("dimensions: {dimensions} were asked for, the model has {}", embeddings.columns);
            return Err(StartError::Settings(words));
        }
        let max_tokens = match &json["max_length"] {
            _ if !is_model2vec => None,
            Value::Null if json.get("max_length").is_some() => None,
            length => Some(length.as_u64().unwrap_or(MODEL2VEC_MAX_TOKENS).max(1) as usize),
        };
        Ok(Self {
            left_out: tokens.unknown().filter(|_| is_model2vec),
            max_chars: max_tokens.map(|most| most.saturating_mul(tokens.median_chars())),
            max_tokens,
            normalize: json["normalize"].as_bool().unwrap_or(false),
            tokens,
            embeddings,
            weights,
            mapping,
            dimensions,
        })
    }

    fn row(&self, token: u32) -> usize {
        let row = match &self.mapping {
            Some(mapping) => mapping.get(token as usize).copied().unwrap_or(0) as usize,
            None => token as usize,
        };
        row.min(self.embeddings.rows - 1)
    }
}

impl TextModel for StaticModel {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn vector_of(&self, text: &str) -> Result<Option<Vec<f32>>, String> {
        let end = self.max_chars.and_then(|chars| text.char_indices().nth(chars)).map_or(text.len(), |(end, _)| end);
        let mut ids = self.tokens.of(&text[..end], false)?;
        if let Some(most) = self.max_tokens {
            ids.truncate(most);
        }
        ids.retain(|id| Some(*id) != self.left_out);
        if ids.is_empty() {
            return Ok(None);
        }
        let mut vector = vec![0.0_f32; self.dimensions];
        for id in &ids {
            let factor = self.weights.as_ref().and_then(|all| all.get(*id as usize)).copied().unwrap_or(1.0);
            self.embeddings.add_row(self.row(*id), factor, &mut vector);
        }
        let count = ids.len() as f32;
        vector.iter_mut().for_each(|value| *value /= count);
        let length = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
        if length == 0.0 {
            return Ok(None);
        }
        if self.normalize {
            vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
        }
        Ok(Some(vector))
    }
}

#[cfg(test)]
#[path = "static_model_tests.rs"]
mod tests;
