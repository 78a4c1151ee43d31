//! A tokenizer that counts what passes, since tantivy keeps a document's length only quantised.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tantivy::tokenizer::{BoxTokenStream, TextAnalyzer, Token, TokenStream, Tokenizer};

/// Tokens since they were last taken.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenCount(Arc<AtomicU32>);

impl TokenCount {
    /// The count, which begins again at 0.
    pub(super) fn take(&self) -> u32 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// A tokenizer with a count.
#[derive(Clone)]
pub(super) struct Counted {
    pub(super) inner: TextAnalyzer,
    pub(super) count: TokenCount,
}

/// A token stream with a count.
pub(super) struct CountedStream<'a> {
    inner: BoxTokenStream<'a>,
    count: &'a AtomicU32,
}

impl Tokenizer for Counted {
    type TokenStream<'a> = CountedStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> CountedStream<'a> {
        CountedStream { inner: self.inner.token_stream(text), count: &self.count.0 }
    }
}

impl TokenStream for CountedStream<'_> {
    fn advance(&mut self) -> bool {
        let is_token = self.inner.advance();
        self.count.fetch_add(u32::from(is_token), Ordering::Relaxed);
        is_token
    }

    fn token(&self) -> &Token {
        self.inner.token()
    }

    fn token_mut(&mut self) -> &mut Token {
        self.inner.token_mut()
    }

    fn process(&mut self, sink: &mut dyn FnMut(&Token)) {
        let mut count = 0;
        while self.inner.advance() {
            count += 1;
            sink(self.inner.token());
        }
        self.count.fetch_add(count, Ordering::Relaxed);
    }
}
