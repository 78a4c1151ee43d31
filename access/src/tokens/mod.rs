//! Bearer tokens (RFC 6750): random, stored as hashes, each with what it may do, for how long, and how much of it.

mod file;
mod scope;
mod secret;
mod token;

pub use file::{TokenEntry, with_token};
pub use scope::{Right, Scope};
pub use secret::TokenSecret;
pub use token::Token;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::error::AccessError;
use crate::watched::Watched;

/// All tokens that are known.
#[derive(Debug, Default)]
pub struct Tokens(HashMap<[u8; 32], Arc<Token>>);

impl Tokens {
    /// Reads a file of tokens and follows it. Calls under way and rates go on counting for tokens that stay as they were.
    ///
    /// # Errors
    /// [`AccessError::File`], which names the token at fault.
    pub fn start(path: &Path) -> Result<Watched<Self>, AccessError> {
        let path = path.to_owned();
        let make = {
            let path = path.clone();
            move |bytes: &[Vec<u8>], former: Option<&Self>| Self::read(&path, bytes, former)
        };
        Watched::start("the tokens", vec![path], Box::new(make))
    }

    fn read(path: &Path, bytes: &[Vec<u8>], former: Option<&Self>) -> Result<Self, AccessError> {
        let bytes = bytes.first().map(Vec::as_slice).unwrap_or_default();
        let mut tokens = file::parse(bytes).map_err(|reason| AccessError::file(path, reason))?;
        for token in tokens.values_mut() {
            if let Some(same) =
                former.and_then(|former| former.0.get(token.hash())).filter(|former| ***former == **token)
            {
                *token = Arc::clone(same);
            }
        }
        Ok(Self(tokens))
    }

    /// The token that a caller sent.
    pub fn find(&self, sent: &[u8]) -> Option<&Arc<Token>> {
        // By its hash, so that the time it takes tells nothing of the tokens that there are.
        self.0.get(&secret::hash(sent))
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
