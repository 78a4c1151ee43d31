//! The tokenizer under `exact`: a value is one term.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::words::{MAX_TERM_BYTES, empty_token};

/// Makes each value one term, as it is, cut like every term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole;

/// The only term of a value, if it has one.
#[derive(Debug)]
pub(super) struct WholeStream<'a> {
    text: Option<&'a str>,
    token: Token,
}

impl Tokenizer for Whole {
    type TokenStream<'a> = WholeStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WholeStream<'a> {
        WholeStream { text: Some(text).filter(|text| !text.is_empty()), token: empty_token() }
    }
}

impl TokenStream for WholeStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(text) = self.text.take() else { return false };
        self.token.offset_to = text.len();
        self.token.text.push_str(&text[..text.floor_char_boundary(MAX_TERM_BYTES)]);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
