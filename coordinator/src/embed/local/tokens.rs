//! A model's tokenizer: a text becomes the numbers of its tokens. The only place that knows `tokenizers`.

use std::path::Path;

use serde_json::Value;
use tokenizers::{Tokenizer, TruncationParams};

use super::folder::{malformed, read_json};
use crate::embed::StartError;

/// A tokenizer without padding.
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    unknown: Option<u32>,
}

impl Tokens {
    /// Reads a tokenizer; with a bound it gives at most so many tokens, the special ones included.
    ///
    /// # Errors
    /// [`StartError::Read`], [`StartError::Malformed`].
    pub(super) fn load(path: &Path, max_tokens: Option<usize>) -> Result<Self, StartError> {
        let bytes = read_json(path)?;
        let mut tokenizer = Tokenizer::from_bytes(&bytes).map_err(|error| malformed(path, error))?;
        tokenizer.with_padding(None);
        let truncation = max_tokens.map(|max_length| TruncationParams { max_length, ..TruncationParams::default() });
        tokenizer.with_truncation(truncation).map_err(|error| malformed(path, error))?;
        let json: Value = serde_json::from_slice(&bytes).map_err(|error| malformed(path, error))?;
        let model = &json["model"];
        let unknown = match model["unk_token"].as_str() {
            Some(token) => tokenizer.token_to_id(token),
            None => model["unk_id"].as_u64().and_then(|id| u32::try_from(id).ok()),
        };
        Ok(Self { tokenizer, unknown })
    }

    /// The number of the token that stands for what the tokenizer does not know.
    pub(super) fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// Numbers are below this.
    pub(super) fn bound(&self) -> usize {
        let highest = self.tokenizer.get_vocab(true).into_values().max();
        highest.map_or(0, |highest| highest as usize + 1)
    }

    /// The median of the tokens' lengths in characters, as numpy has it, cut to a whole number.
    pub(super) fn median_chars(&self) -> usize {
        let mut lengths: Vec<usize> =
            self.tokenizer.get_vocab(true).into_keys().map(|token| token.chars().count()).collect();
        lengths.sort_unstable();
        match lengths.as_slice() {
            [] => 0,
            lengths => (lengths[(lengths.len() - 1) / 2] + lengths[lengths.len() / 2]) / 2,
        }
    }

    /// The numbers of a text's tokens.
    ///
    /// # Errors
    /// The tokenizer's words.
    pub(super) fn of(&self, text: &str, with_special: bool) -> Result<Vec<u32>, String> {
        let encoding = self.tokenizer.encode_fast(text, with_special).map_err(|error| error.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }
}
