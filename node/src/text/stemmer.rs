//! Snowball's stemmer of a language, and the spelling of its stems.
//!
//! Stemmers need accents to tell endings apart, and leave some of them on what they give. Not everybody types them, so a
//! stem loses those that no letter of the language depends on: French `élevé` and `eleve` meet in `elev`.

use tantivy::tokenizer::{Language, Stemmer, TextAnalyzer, Token, TokenFilter, TokenStream, Tokenizer};

use super::spelling::Spelling;
use super::words::Words;

/// The analyzer of a language: words, stems, spelling of the stems.
pub(super) fn stemmed(words: Words, language: Language, stems: Spelling) -> TextAnalyzer {
    TextAnalyzer::from(Respell { stems }.transform(Stemmer::new(language).transform(words)))
}

/// Folds stems.
#[derive(Debug, Clone, Copy)]
struct Respell {
    stems: Spelling,
}

/// A tokenizer whose tokens are folded.
#[derive(Debug, Clone)]
struct Respelled<T> {
    inner: T,
    stems: Spelling,
}

/// Folded tokens.
struct RespelledStream<T> {
    inner: T,
    stems: Spelling,
    folded: String,
}

impl TokenFilter for Respell {
    type Tokenizer<T: Tokenizer> = Respelled<T>;

    fn transform<T: Tokenizer>(self, inner: T) -> Respelled<T> {
        Respelled { inner, stems: self.stems }
    }
}

impl<T: Tokenizer> Tokenizer for Respelled<T> {
    type TokenStream<'a> = RespelledStream<T::TokenStream<'a>>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        RespelledStream { inner: self.inner.token_stream(text), stems: self.stems, folded: String::new() }
    }
}

impl<T: TokenStream> TokenStream for RespelledStream<T> {
    fn advance(&mut self) -> bool {
        if !self.inner.advance() {
            return false;
        }
        let stem = &mut self.inner.token_mut().text;
        if !stem.is_ascii() {
            self.folded.clear();
            stem.chars().for_each(|c| self.stems.fold(&mut self.folded, c));
            std::mem::swap(stem, &mut self.folded);
        }
        true
    }

    fn token(&self) -> &Token {
        self.inner.token()
    }

    fn token_mut(&mut self) -> &mut Token {
        self.inner.token_mut()
    }
}
