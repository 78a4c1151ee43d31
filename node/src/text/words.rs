//! The tokenizer under all analyzers but `exact`: runs of letters and digits, folded.
//!
//! The rule, which is the same for documents and queries and depends on nothing but the run itself (docs/analyzers.md says
//! it for users):
//! - Characters and letters are spelled one way, as `spelling.rs` says.
//! - A word is a run of letters and digits with the marks on them. Everything else parts words: `76.132` gives `76` and
//!   `132`, `foo_bar` gives `foo` and `bar`.
//! - An `s` after an apostrophe at the end of a word is left out: `Rust's` gives `rust`. So are the articles that a language
//!   elides before one.
//! - `++` and `#` at the end of a word belong to it: `C++` asks for `c++`, and a document that holds it is found by `c` too.
//! - An emoji is a term, without its skin tone; two regional indicators, a flag, are one.
//! - A run of Han, Kana or Hangul gives its overlapping pairs: `北京大学` gives `北京`, `京大`, `大学`. A single such
//!   character is a term by itself. In documents, not in queries, each ideograph of a longer run is a term too, so that
//!   the query `猫` finds `猫が好き` and the query `大学` does not find every `大`.
//! - Under `zh`, a run with ideographs gives jieba's words instead, long ones and the words in them: `清华大学` gives `清华`,
//!   `大学` and `清华大学`. (jieba alone would take other scripts apart into letters.)
//! - Thai, Lao, Khmer and Myanmar runs are cut by ICU's dictionary.
//! - Where scripts of these kinds meet, a word ends: `iPhone手机` gives `iphone` and `手机`.
//! - Soft hyphens, joiners and variation selectors are left out and part nothing.
//! - A term longer than 255 bytes is cut at the last character boundary within them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use icu_segmenter::options::WordBreakInvariantOptions;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy_jieba::JiebaTokenizer;

use super::analyzer::Purpose;
use super::chars::{Class, is_flag_half, is_han};
use super::spelling::{Case, Spelling, normalized};

/// Longest term in bytes.
pub const MAX_TERM_BYTES: usize = 255;

static DICTIONARY: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()));

/// Cuts a term to what an index keeps.
pub(super) fn cut(term: &mut String) {
    term.truncate(term.floor_char_boundary(MAX_TERM_BYTES));
}

/// Splits texts into folded words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    pub(super) spelling: Spelling,
    pub(super) cjk: CjkRule,
    pub(super) purpose: Purpose,
}

/// What becomes of a run of CJK characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CjkRule {
    /// Overlapping pairs.
    Pairs,
    /// Overlapping pairs, and the ideographs by themselves.
    PairsAndIdeographs,
    /// Words of a Chinese dictionary.
    Jieba,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        WordStream {
            rule: *self,
            text: normalized(text),
            at: 0,
            run: None,
            pieces: Vec::new(),
            signed: None,
            token: empty_token(),
        }
    }
}

/// A token whose position never grows: positions are not indexed.
pub(super) fn empty_token() -> Token {
    Token { position: 0, ..Token::default() }
}

/// What is left of a run of CJK characters.
#[derive(Debug)]
struct CjkRun {
    rest: Range<usize>,
    is_whole: bool,
    single_done: bool,
}

/// The words of one text.
#[derive(Debug)]
pub(super) struct WordStream<'a> {
    rule: Words,
    /// Normalised; offsets of tokens are places in it.
    text: Cow<'a, str>,
    at: usize,
    run: Option<CjkRun>,
    /// Words of a dictionary run that are still to come, last first.
    pieces: Vec<Range<usize>>,
    /// A word with the sign at its end, to come after the word without.
    signed: Option<Token>,
    token: Token,
}

impl WordStream<'_> {
    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..).and_then(|rest| rest.chars().next())
    }

    /// Moves to the next character that begins a word.
    fn skip_separators(&mut self) -> Option<Class> {
        let bytes = self.text.as_bytes();
        loop {
            while bytes.get(self.at).is_some_and(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric()) {
                self.at += 1;
            }
            let c = self.text.get(self.at..)?.chars().next()?;
            match Class::of(c) {
                Class::Separator | Class::Mark | Class::Ignorable => self.at += c.len_utf8(),
                class => return Some(class),
            }
        }
    }

    fn begin(&mut self, at: usize) {
        self.token.text.clear();
        self.token.offset_from = at;
    }

    fn push_ascii(&mut self, range: Range<usize>) {
        let word = &self.text[range];
        if self.rule.spelling.case == Case::Turkish && word.contains('I') {
            word.chars().for_each(|c| self.rule.spelling.push(&mut self.token.text, c));
            return;
        }
        let from = self.token.text.len();
        self.token.text.push_str(word);
        self.token.text[from..].make_ascii_lowercase();
    }

    fn end(&mut self, at: usize) {
        self.token.offset_to = at;
        cut(&mut self.token.text);
    }

    /// Takes a word; false where nothing of it is a term.
    fn take_plain(&mut self) -> bool {
        self.begin(self.at);
        loop {
            let from = self.at;
            while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_alphanumeric) {
                self.at += 1;
            }
            if self.at > from {
                self.push_ascii(from..self.at);
            }
            let Some(c) = self.char_at(self.at).filter(|c| !c.is_ascii()) else { break };
            match Class::of(c) {
                Class::Plain | Class::Mark => self.rule.spelling.push(&mut self.token.text, c),
                Class::Ignorable => {}
                Class::Separator | Class::Emoji | Class::Cjk | Class::Complex => break,
            }
            self.at += c.len_utf8();
        }
        let is_elided = self.take_apostrophe();
        if is_elided || self.token.text.is_empty() {
            return false;
        }
        self.end(self.at);
        self.take_sign();
        true
    }

    /// Takes what belongs to a word after an apostrophe; says whether the word itself is one that is left out before it.
    fn take_apostrophe(&mut self) -> bool {
        let Some(mark) = self.char_at(self.at).filter(|c| matches!(c, '\'' | '’')) else { return false };
        let after = self.at + mark.len_utf8();
        let begins_word = |at| self.char_at(at).is_some_and(|c| Class::of(c).is_of_word());
        if !begins_word(after) {
            return false;
        }
        if self.rule.spelling.elided.contains(&self.token.text.as_str()) {
            return true;
        }
        if matches!(self.text.as_bytes().get(after), Some(b's' | b'S')) && !begins_word(after + 1) {
            self.at = after + 1;
        }
        false
    }

    /// Takes the sign at a word's end: in a query the word is one with it, in a document it is found without as well.
    fn take_sign(&mut self) {
        if !self.text[..self.at].ends_with(|c: char| c.is_ascii_alphanumeric()) {
            return;
        }
        let rest = &self.text[self.at..];
        let sign = if rest.starts_with("++") {
            "++"
        } else if rest.starts_with('#') && !rest[1..].chars().next().is_some_and(|c| Class::of(c).is_of_word()) {
            "#"
        } else {
            return;
        };
        let room = MAX_TERM_BYTES - sign.len();
        self.at += sign.len();
        let mut signed = self.token.clone();
        signed.text.truncate(signed.text.floor_char_boundary(room));
        signed.text.push_str(sign);
        signed.offset_to = self.at;
        match self.rule.purpose {
            Purpose::Document => self.signed = Some(signed),
            Purpose::Query => self.token = signed,
        }
    }

    /// Takes one emoji, or the two halves of a flag.
    fn take_emoji(&mut self) {
        let start = self.at;
        let mut chars = self.text[start..].chars();
        let first = chars.next();
        let mut end = start + first.map_or(0, char::len_utf8);
        if first.is_some_and(is_flag_half)
            && let Some(second) = chars.next().filter(|c| is_flag_half(*c))
        {
            end += second.len_utf8();
        }
        self.at = end;
        self.emit(start..end);
    }

    /// Takes characters of one class with what is attached to them.
    fn take_run(&mut self, class: Class) -> Range<usize> {
        let start = self.at;
        while let Some(c) = self.char_at(self.at) {
            let found = Class::of(c);
            if found != class && !found.is_attached() {
                break;
            }
            self.at += c.len_utf8();
        }
        start..self.at
    }

    /// Makes a part of the text the current term.
    fn emit(&mut self, part: Range<usize>) {
        self.begin(part.start);
        for c in self.text[part.clone()].chars() {
            if Class::of(c) != Class::Ignorable {
                self.rule.spelling.push(&mut self.token.text, c);
            }
        }
        self.end(part.end);
    }

    /// Where the first character of a range ends, with what is attached to it.
    fn first_char_end(&self, range: &Range<usize>) -> usize {
        let mut chars = self.text[range.clone()].char_indices();
        chars.next();
        let next = chars.find(|(_, c)| !Class::of(*c).is_attached());
        next.map_or(range.end, |(offset, _)| range.start + offset)
    }

    fn next_of_cjk(&mut self) -> bool {
        let Some(mut run) = self.run.take() else { return false };
        let first_end = self.first_char_end(&run.rest);
        let is_last = first_end == run.rest.end;
        if !run.single_done {
            run.single_done = true;
            let is_alone = run.is_whole && is_last;
            let is_ideograph = self.char_at(run.rest.start).is_some_and(is_han);
            if is_alone || (self.rule.cjk == CjkRule::PairsAndIdeographs && is_ideograph) {
                self.emit(run.rest.start..first_end);
                self.run = (!is_last).then_some(run);
                return true;
            }
        }
        if is_last {
            return false;
        }
        let rest = first_end..run.rest.end;
        let second_end = self.first_char_end(&rest);
        self.emit(run.rest.start..second_end);
        self.run = Some(CjkRun { rest, is_whole: false, single_done: false });
        true
    }

    fn cut_by_dictionary(&mut self, run: Range<usize>) {
        let breaks: Vec<usize> = DICTIONARY.segment_str(&self.text[run.clone()]).collect();
        self.pieces.extend(breaks.windows(2).rev().map(|pair| run.start + pair[0]..run.start + pair[1]));
    }

    fn cut_by_jieba(&mut self, run: Range<usize>) {
        let mut jieba = JiebaTokenizer::with_search_mode(true);
        let mut words = jieba.token_stream(&self.text[run.clone()]);
        while words.advance() {
            let word = words.token();
            self.pieces.push(run.start + word.offset_from..run.start + word.offset_to);
        }
        self.pieces.reverse();
    }

    fn next_of_dictionary(&mut self) -> bool {
        while let Some(piece) = self.pieces.pop() {
            if self.text[piece.clone()].chars().any(char::is_alphanumeric) {
                self.emit(piece);
                return true;
            }
        }
        false
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        if let Some(signed) = self.signed.take() {
            self.token = signed;
            return true;
        }
        loop {
            if self.next_of_cjk() || self.next_of_dictionary() {
                return true;
            }
            match self.skip_separators() {
                None => return false,
                Some(Class::Cjk) => {
                    let rest = self.take_run(Class::Cjk);
                    if self.rule.cjk == CjkRule::Jieba && self.text[rest.clone()].chars().any(is_han) {
                        self.cut_by_jieba(rest);
                        continue;
                    }
                    self.run = Some(CjkRun { rest, is_whole: true, single_done: false });
                }
                Some(Class::Complex) => {
                    let run = self.take_run(Class::Complex);
                    self.cut_by_dictionary(run);
                }
                Some(Class::Emoji) => {
                    self.take_emoji();
                    return true;
                }
                Some(Class::Plain | Class::Separator | Class::Mark | Class::Ignorable) => {
                    if self.take_plain() {
                        return true;
                    }
                }
            }
        }
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
