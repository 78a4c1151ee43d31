//! Queries with syntax: what a person wrote becomes terms with scores and a condition on rows.
//!
//! tantivy's own grammar reads the text; its queries are not used, so that scores stay canonical (INV-15). Served are
//! words, `+` and `-`, AND, OR and NOT, parentheses, `field:word` and single words in quotes. What else the grammar knows
//! is refused by name. The grammar is recursive, so the text is bounded in length and nesting before it is read.

use std::collections::HashSet;

use tantivy::query_grammar::{
    Delimiter, Occur, UserInputAst, UserInputLeaf, UserInputLiteral, parse_query, parse_query_lenient,
};

use super::{Analyzer, Formula};

/// Longest query with syntax, in bytes.
const MAX_BYTES: usize = 4_096;
/// Most opening parentheses, and most NOTs: what the grammar may recurse over.
const MAX_NESTING: usize = 32;
/// Most distinct terms.
const MAX_TERMS: usize = 64;
/// What quotes around several words ask for, and what can be had instead.
const PHRASES: &str = "phrases of several words (+word +word finds both, in any order)";

/// A text field that a query may name.
pub struct SyntaxField<'a> {
    /// Its index in the schema.
    pub index: usize,
    /// Its name.
    pub name: &'a str,
    /// Turns words into terms.
    pub analyzer: Analyzer,
}

/// What a query with syntax asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxQuery {
    /// Terms that score, each with its field and the word of the query that it is from; in the query's order, each once.
    pub terms: Vec<ScoredTerm>,
    /// What a row must meet besides holding one of them; none where no word has a term.
    pub formula: Option<Formula>,
}

/// A term that scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredTerm {
    /// Index of the text field.
    pub field: usize,
    /// The term as the index holds it.
    pub text: String,
    /// Which word of the query it is from, from 0.
    pub word: u32,
}

/// Why a query with syntax cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxFault {
    /// It is not of the grammar.
    #[error("{what} at character {at}")]
    Malformed {
        /// What is wrong.
        what: String,
        /// Where, in characters from 1.
        at: usize,
    },
    /// It is of the grammar and not served.
    #[error("{what} are not supported: {piece}")]
    Unsupported {
        /// The kind of thing.
        what: &'static str,
        /// The piece of the query.
        piece: String,
    },
    /// It names a field that is not searched.
    #[error("{name:?} is not a text field that is searched; a colon that is none of the syntax is written \\:")]
    UnknownField {
        /// The name.
        name: String,
    },
    /// It is longer or more nested than is read.
    #[error("a query with syntax has at most {most} {what}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How many.
        most: usize,
    },
    /// Every word is excluded.
    #[error("the query only excludes: add a word that documents should hold")]
    OnlyExcludes,
}

/// Reads a query. Words without + or - are optional, or required where `all`.
///
/// # Errors
/// Every [`SyntaxFault`].
pub fn parse(text: &str, fields: &[SyntaxField<'_>], all: bool) -> Result<SyntaxQuery, SyntaxFault> {
    let bounds = [
        ("bytes", text.len(), MAX_BYTES),
        ("opening parentheses", text.matches('(').count(), MAX_NESTING),
        ("NOTs", text.matches("NOT").count(), MAX_NESTING),
    ];
    if let Some((what, _, most)) = bounds.into_iter().find(|(_, found, most)| found > most) {
        return Err(SyntaxFault::TooMuch { what, most });
    }
    let tree = parse_query(text).map_err(|_| where_it_fails(text))?;
    let mut reader = Reader { fields, all, terms: Vec::new(), seen: HashSet::new(), num_words: 0, num_excluded: 0 };
    let formula = reader.read(&tree, true)?;
    if reader.terms.len() > MAX_TERMS {
        return Err(SyntaxFault::TooMuch { what: "terms", most: MAX_TERMS });
    }
    if reader.terms.is_empty() && reader.num_excluded > 0 {
        return Err(SyntaxFault::OnlyExcludes);
    }
    Ok(SyntaxQuery { formula: formula.filter(|_| !reader.terms.is_empty()), terms: reader.terms })
}

fn where_it_fails(text: &str) -> SyntaxFault {
    let (_, errors) = parse_query_lenient(text);
    let first = errors.into_iter().min_by_key(|error| error.pos);
    let (what, at) = first.map_or(("the query cannot be read".to_owned(), 0), |error| (error.message, error.pos));
    let at = text.floor_char_boundary(at.min(text.len()));
    SyntaxFault::Malformed { what, at: text[..at].chars().count() + 1 }
}

struct Reader<'f> {
    fields: &'f [SyntaxField<'f>],
    all: bool,
    terms: Vec<ScoredTerm>,
    seen: HashSet<(usize, String)>,
    num_words: u32,
    num_excluded: usize,
}

impl Reader<'_> {
    /// The condition of a part; none where nothing of it has a term, and so nothing to say. Its terms score where rows
    /// are to hold them.
    fn read(&mut self, tree: &UserInputAst, scores: bool) -> Result<Option<Formula>, SyntaxFault> {
        let unsupported = |what, piece: String| Err(SyntaxFault::Unsupported { what, piece });
        match tree {
            UserInputAst::Clause(parts) => self.read_clause(parts, scores),
            UserInputAst::Boost(..) => unsupported("boosts", format!("{tree:?}")),
            UserInputAst::Leaf(leaf) => match leaf.as_ref() {
                UserInputLeaf::Literal(literal) => self.read_word(literal, scores),
                UserInputLeaf::All | UserInputLeaf::Exists { .. } => unsupported("wildcards", format!("{leaf:?}")),
                UserInputLeaf::Range { .. } => unsupported("ranges", format!("{leaf:?}")),
                UserInputLeaf::Set { .. } => unsupported("sets", format!("{leaf:?}")),
                UserInputLeaf::Regex { .. } => unsupported("regular expressions", format!("{leaf:?}")),
            },
        }
    }

    fn read_clause(
        &mut self,
        parts: &[(Option<Occur>, UserInputAst)],
        scores: bool,
    ) -> Result<Option<Formula>, SyntaxFault> {
        let bare = if self.all { Occur::Must } else { Occur::Should };
        let (mut required, mut optional) = (Vec::new(), Vec::new());
        for (occur, part) in parts {
            match occur.unwrap_or(bare) {
                Occur::Must => required.extend(self.read(part, scores)?),
                Occur::Should => optional.extend(self.read(part, scores)?),
                Occur::MustNot => {
                    required.extend(self.read(part, !scores)?.map(|part| Formula::Not(Box::new(part))));
                }
            }
        }
        // Optional words beside required ones only score.
        let is_wanted = |part: &Formula| !matches!(part, Formula::Not(_));
        if !optional.is_empty() && !required.iter().any(is_wanted) {
            required.push(Formula::Any(optional));
        }
        Ok((!required.is_empty()).then_some(Formula::All(required)))
    }

    fn read_word(&mut self, literal: &UserInputLiteral, scores: bool) -> Result<Option<Formula>, SyntaxFault> {
        let piece = || format!("{literal:?}");
        let is_quoted = literal.delimiter != Delimiter::None;
        if literal.slop > 0 {
            return Err(SyntaxFault::Unsupported { what: "distances", piece: piece() });
        }
        if literal.prefix || (!is_quoted && literal.phrase.contains('*')) {
            return Err(SyntaxFault::Unsupported { what: "wildcards", piece: piece() });
        }
        let named = literal.field_name.as_deref();
        if let Some(name) = named.filter(|name| self.fields.iter().all(|field| field.name != *name)) {
            return Err(SyntaxFault::UnknownField { name: name.to_owned() });
        }
        let word = self.num_words;
        self.num_words += 1;
        let mut any = Vec::new();
        for field in self.fields.iter().filter(|field| named.is_none_or(|name| field.name == name)) {
            let mut places: Vec<(usize, Vec<Formula>)> = Vec::new();
            for term in field.analyzer.terms(&literal.phrase) {
                let formula = Formula::Term { field: field.index, text: term.text.clone() };
                match places.iter_mut().find(|(offset, _)| *offset == term.offset) {
                    Some((_, here)) => here.push(formula),
                    None => places.push((term.offset, vec![formula])),
                }
                if !scores {
                    self.num_excluded += 1;
                } else if self.seen.insert((field.index, term.text.clone())) {
                    self.terms.push(ScoredTerm { field: field.index, text: term.text, word });
                }
            }
            if is_quoted && places.len() > 1 {
                return Err(SyntaxFault::Unsupported { what: PHRASES, piece: piece() });
            }
            if !places.is_empty() {
                any.push(Formula::All(places.into_iter().map(|(_, here)| Formula::Any(here)).collect()));
            }
        }
        Ok((!any.is_empty()).then_some(Formula::Any(any)))
    }
}

#[cfg(test)]
#[path = "syntax_tests.rs"]
mod tests;
