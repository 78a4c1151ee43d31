//! From text to terms, the same way for documents and queries.
//!
//! An analyzer is named by the schema. `standard` splits and folds words (the rule is in `words.rs`); a language code
//! adds the Snowball stemmer of that language (`ru` also folds ё to е, `tr` knows its two letters i); `zh` cuts Chinese
//! by jieba's dictionary; `exact` takes a value as one term. No word is left out for being frequent.

use tantivy::tokenizer::{Language, Stemmer, TextAnalyzer, TokenFilter, TokenStream};

use super::whole::Whole;
use super::words::{CjkRule, Folding, Words};

/// One term of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnalyzedTerm {
    /// The term as the index holds it: folded, stemmed, at most 255 bytes (a stemmer may add a letter).
    pub text: String,
    /// Where its source begins in the text, in bytes. Several terms may begin at one place: `zh` gives a long word and
    /// the words in it.
    pub offset: usize,
}

/// Turns texts into terms. Cheap to copy; holds no state.
#[derive(Debug, Clone, Copy)]
pub struct Analyzer {
    name: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Words,
    Stemmed(Folding, Language),
    Jieba,
    Exact,
}

/// What the terms are for: documents hold a few more (single ideographs) than queries ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Document,
    Query,
}

impl Analyzer {
    /// The analyzer of a name: `standard` (also the empty name), `exact`, `zh`, or the code of a language with a
    /// Snowball stemmer: `en ru de fr es it pt nl sv da no fi hu ro tr el ar ta`.
    pub fn by_name(name: &str) -> Option<Self> {
        let lower = Folding::Lower;
        let (name, kind) = match name {
            "" | "standard" => ("standard", Kind::Words),
            "exact" => ("exact", Kind::Exact),
            "zh" => ("zh", Kind::Jieba),
            "en" => ("en", Kind::Stemmed(lower, Language::English)),
            "ru" => ("ru", Kind::Stemmed(Folding::Russian, Language::Russian)),
            "de" => ("de", Kind::Stemmed(lower, Language::German)),
            "fr" => ("fr", Kind::Stemmed(lower, Language::French)),
            "es" => ("es", Kind::Stemmed(lower, Language::Spanish)),
            "it" => ("it", Kind::Stemmed(lower, Language::Italian)),
            "pt" => ("pt", Kind::Stemmed(lower, Language::Portuguese)),
            "nl" => ("nl", Kind::Stemmed(lower, Language::Dutch)),
            "sv" => ("sv", Kind::Stemmed(lower, Language::Swedish)),
            "da" => ("da", Kind::Stemmed(lower, Language::Danish)),
            "no" => ("no", Kind::Stemmed(lower, Language::Norwegian)),
            "fi" => ("fi", Kind::Stemmed(lower, Language::Finnish)),
            "hu" => ("hu", Kind::Stemmed(lower, Language::Hungarian)),
            "ro" => ("ro", Kind::Stemmed(lower, Language::Romanian)),
            "tr" => ("tr", Kind::Stemmed(Folding::Turkish, Language::Turkish)),
            "el" => ("el", Kind::Stemmed(lower, Language::Greek)),
            "ar" => ("ar", Kind::Stemmed(lower, Language::Arabic)),
            "ta" => ("ta", Kind::Stemmed(lower, Language::Tamil)),
            _ => return None,
        };
        Some(Self { name, kind })
    }

    /// The name that the analyzer is kept by: `standard` for the empty name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The terms of a query text, in the order of the text. Each of them is a term of every document that holds the
    /// same words.
    pub fn terms(&self, text: &str) -> Vec<AnalyzedTerm> {
        self.terms_for(Purpose::Query, text)
    }

    /// The terms that a document with this text is indexed under, in the order of the text.
    pub fn document_terms(&self, text: &str) -> Vec<AnalyzedTerm> {
        self.terms_for(Purpose::Document, text)
    }

    fn terms_for(&self, purpose: Purpose, text: &str) -> Vec<AnalyzedTerm> {
        let mut terms = Vec::new();
        self.tokenizer(purpose).token_stream(text).process(&mut |token| {
            terms.push(AnalyzedTerm { text: token.text.clone(), offset: token.offset_from });
        });
        terms
    }

    pub(super) fn tokenizer(&self, purpose: Purpose) -> TextAnalyzer {
        let cjk = match (self.kind, purpose) {
            (Kind::Jieba, _) => CjkRule::Jieba,
            (_, Purpose::Document) => CjkRule::PairsAndIdeographs,
            (_, Purpose::Query) => CjkRule::Pairs,
        };
        let words = |folding| Words { folding, cjk };
        match self.kind {
            Kind::Words | Kind::Jieba => TextAnalyzer::from(words(Folding::Lower)),
            Kind::Stemmed(folding, language) => TextAnalyzer::from(Stemmer::new(language).transform(words(folding))),
            Kind::Exact => TextAnalyzer::from(Whole),
        }
    }
}
