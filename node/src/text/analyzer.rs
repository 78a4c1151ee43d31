//! From text to terms, the same way for documents and queries.
//!
//! An analyzer is named by the schema. `standard` splits and folds words (the rule is in `words.rs` and `spelling.rs`); a
//! language code adds the Snowball stemmer of that language and keeps the language's own letters; `zh` cuts Chinese by
//! jieba's dictionary; `exact` takes a value as one term. No word is left out for being frequent.

use tantivy::tokenizer::{Language, TextAnalyzer, TokenStream};

use super::spelling::{Case, Spelling};
use super::stemmer::stemmed;
use super::whole::Whole;
use super::words::{CjkRule, Words};

/// One term of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnalyzedTerm {
    /// The term as the index holds it: folded, stemmed, at most 255 bytes (a stemmer may add a letter).
    pub text: String,
    /// Where its source begins in the text once that is normalised, in bytes: the same for every analyzer but `exact`.
    /// Several terms may begin at one place: `zh` gives a long word and the words in it.
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
    Stemmed(&'static Stems),
    Jieba,
    Exact,
}

/// What the terms are for: documents hold a few more (single ideographs) than queries ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Document,
    Query,
}

/// How words and stems of one language are made.
#[derive(Debug)]
struct Stems {
    name: &'static str,
    language: Language,
    /// Before the stemmer, which knows the language's accents.
    words: Spelling,
    /// Letters of the stems that are letters of their own and not accents that one may leave out.
    kept: &'static str,
}

const FRENCH: &[&str] = &["l", "d", "j", "m", "t", "s", "n", "c", "qu", "jusqu", "lorsqu", "puisqu", "quoiqu"];
const ITALIAN: &[&str] =
    &["l", "un", "d", "c", "s", "m", "t", "v", "dell", "all", "dall", "nell", "sull", "coll", "quell", "quest"];

const fn stems(name: &'static str, language: Language, words: Spelling, kept: &'static str) -> Stems {
    Stems { name, language, words, kept }
}

const fn keeping(kept: &'static str) -> Spelling {
    Spelling::keeping(kept)
}

static STEMS: [Stems; 18] = [
    stems("en", Language::English, Spelling::PLAIN, ""),
    stems("ru", Language::Russian, Spelling { case: Case::Russian, ..Spelling::PLAIN }, ""),
    stems("de", Language::German, keeping("äöüß"), ""),
    stems("fr", Language::French, Spelling { elided: FRENCH, ..keeping("àâæçéèêëîïôœùûüÿ") }, ""),
    stems("es", Language::Spanish, keeping("áéíóúüñ"), "ñ"),
    stems("it", Language::Italian, Spelling { elided: ITALIAN, ..keeping("àèéìíîòóùú") }, ""),
    stems("pt", Language::Portuguese, keeping("áàâãçéêíóôõúü"), ""),
    stems("nl", Language::Dutch, keeping("äáéèëïíöóüú"), ""),
    stems("sv", Language::Swedish, keeping("åäö"), "åäö"),
    stems("da", Language::Danish, keeping("åæø"), "åæø"),
    stems("no", Language::Norwegian, keeping("åæø"), "åæø"),
    stems("fi", Language::Finnish, keeping("åäö"), "åäö"),
    stems("hu", Language::Hungarian, keeping("áéíóöőúüű"), "áéíóöőúüű"),
    stems("ro", Language::Romanian, Spelling { case: Case::Romanian, ..keeping("ăâîşţ") }, ""),
    stems("tr", Language::Turkish, Spelling { case: Case::Turkish, ..keeping("çğıöşü") }, "çğıöşü"),
    stems("el", Language::Greek, Spelling::PLAIN, ""),
    stems("ar", Language::Arabic, keeping("آأإؤئ"), ""),
    stems("ta", Language::Tamil, Spelling::PLAIN, ""),
];

impl Analyzer {
    /// The analyzer of a name: `standard` (also the empty name), `exact`, `zh`, or the code of a language with a
    /// Snowball stemmer: `en ru de fr es it pt nl sv da no fi hu ro tr el ar ta`.
    pub fn by_name(name: &str) -> Option<Self> {
        let (name, kind) = match name {
            "" | "standard" => ("standard", Kind::Words),
            "exact" => ("exact", Kind::Exact),
            "zh" => ("zh", Kind::Jieba),
            _ => {
                let stems = STEMS.iter().find(|stems| stems.name == name)?;
                (stems.name, Kind::Stemmed(stems))
            }
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
        let words = |spelling| Words { spelling, cjk, purpose };
        match self.kind {
            Kind::Words | Kind::Jieba => TextAnalyzer::from(words(Spelling::PLAIN)),
            Kind::Stemmed(stems) => stemmed(words(stems.words), stems.language, Spelling::keeping(stems.kept)),
            Kind::Exact => TextAnalyzer::from(Whole),
        }
    }
}
