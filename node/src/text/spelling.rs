//! One spelling for what is written in several ways: forms of one character, accents, letter case.
//!
//! Not for stems. Two steps, the same for documents and queries:
//! - [`normalized`] makes a text's characters canonical (Unicode's NFC) and letters in another form the letters that they
//!   are: full and half width, ligatures, mathematical letters, superscripts. Signs keep theirs: `½` is no `1/2`, `™` no
//!   `tm`.
//! - [`Spelling::push`] lower-cases, and folds what people leave out when they type: accents on Latin and Greek letters,
//!   vowel signs of Arabic and Hebrew, stress marks. What a language's own letters are, its [`Spelling`] keeps.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};

use super::chars::Class;

/// How an analyzer spells its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// What lower-casing changes besides.
    pub(super) case: Case,
    /// Letters (lower case) that stay as they are: the language's own, or those that its stemmer needs.
    pub(super) kept: &'static str,
    /// Words that are left out before an apostrophe: the French and Italian articles that lost their vowel.
    pub(super) elided: &'static [&'static str],
}

/// What a language changes in lower-casing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// `char::to_lowercase`.
    Lower,
    /// Also ё to е.
    Russian,
    /// Dotted and dotless i: I to ı, İ to i.
    Turkish,
    /// Also ș and ț (comma below, as is right) to ş and ţ (cedilla, as the stemmer knows them).
    Romanian,
}

impl Spelling {
    /// Folds everything.
    pub(super) const PLAIN: Self = Self::keeping("");

    /// Keeps some letters.
    pub(super) const fn keeping(kept: &'static str) -> Self {
        Self { case: Case::Lower, kept, elided: &[] }
    }

    /// Adds a character of a word to its term.
    pub(super) fn push(&self, term: &mut String, c: char) {
        match (self.case, c) {
            (Case::Russian, 'ё' | 'Ё') => term.push('е'),
            (Case::Turkish, 'I') => term.push('ı'),
            (Case::Turkish, 'İ') => term.push('i'),
            (Case::Romanian, 'ș' | 'Ș') => term.push('ş'),
            (Case::Romanian, 'ț' | 'Ț') => term.push('ţ'),
            _ => c.to_lowercase().for_each(|c| self.fold(term, c)),
        }
    }

    /// Adds the letters that a lower-case character is folded to.
    pub(super) fn fold(&self, term: &mut String, c: char) {
        if c.is_ascii() || self.kept.contains(c) {
            term.push(c);
            return;
        }
        match c {
            'ß' => term.push_str("ss"),
            'æ' => term.push_str("ae"),
            'œ' => term.push_str("oe"),
            'þ' => term.push_str("th"),
            'ø' => term.push('o'),
            'ł' => term.push('l'),
            'đ' | 'ð' => term.push('d'),
            'ħ' => term.push('h'),
            'ı' => term.push('i'),
            'ς' => term.push('σ'),
            _ if is_left_out(c) => {}
            _ if has_accents(c) => term.push(base(c)),
            _ => term.push(c),
        }
    }
}

/// A text in which each character has one form.
pub(super) fn normalized(text: &str) -> Cow<'_, str> {
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    if text.is_ascii() || (nfc.is_normalized(text) && !text.chars().any(|c| letters_of(c).is_some())) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match letters_of(c) {
            Some(letters) => plain.push_str(&letters),
            None => plain.push(c),
        }
    }
    Cow::Owned(nfc.normalize(&plain).into_owned())
}

/// The letters or digits that a character is another form of.
fn letters_of(c: char) -> Option<String> {
    let is_width_form = matches!(c, '\u{ff01}'..='\u{ff5e}');
    // Scripts whose characters are no such forms, or are taken apart by them as their readers would not.
    let is_itself = matches!(c, '\0'..='\u{a0}' | '\u{370}'..='\u{1cff}' | '\u{3000}'..='\u{d7ff}');
    if is_itself || (!is_width_form && !c.is_alphanumeric()) {
        return None;
    }
    let mut whole = [0; 4];
    let form = ComposingNormalizerBorrowed::new_nfkc();
    let letters = form.normalize(c.encode_utf8(&mut whole)).into_owned();
    let are_letters = letters.chars().all(|c| !matches!(Class::of(c), Class::Separator | Class::Emoji));
    let is_other = !letters.starts_with(c);
    (is_other && (is_width_form || are_letters)).then_some(letters)
}

/// Whether a character of this block is a letter with marks that many leave out.
fn has_accents(c: char) -> bool {
    matches!(c,
        '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}'          // Latin
        | '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}'       // Greek
        | '\u{622}'..='\u{626}') // Arabic letters with hamza or madda
}

/// Marks and strokes that many leave out: combining accents that did not join a letter, vowel signs of Hebrew and Arabic.
fn is_left_out(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}')
}

fn base(mut c: char) -> char {
    let decomposition = CanonicalDecompositionBorrowed::new();
    loop {
        match decomposition.decompose(c) {
            Decomposed::Expansion(first, _) | Decomposed::Singleton(first) => c = first,
            Decomposed::Default => return c,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_letter_are_the_letter() {
        for (text, expected) in [
            ("plain", "plain"),
            ("Привет 北京 한글 ภำ", "Привет 北京 한글 ภำ"),
            ("ＡＢＣ＋＋　１２", "ABC++　12"),
            ("nai\u{308}ve", "naïve"),
            ("ﬁne 𝐛𝐨𝐥𝐝 m² Ⅷ", "fine bold m2 VIII"),
            ("ｶﾞｷﾞ", "ガギ"),
            ("6½ Foo™ ℃", "6½ Foo™ ℃"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("и\u{306}", "й"),
        ] {
            assert_eq!(normalized(text), expected, "{text:?}");
        }
    }

    #[test]
    fn accents_are_folded_unless_the_language_keeps_them() {
        let fold = |spelling: Spelling, text: &str| {
            let mut term = String::new();
            text.chars().for_each(|c| spelling.push(&mut term, c));
            term
        };
        for (text, expected) in [
            ("Naïve", "naive"),
            ("STRAẞE", "strasse"),
            ("Ὀδυσσεύς", "οδυσσευσ"),
            ("Łódź", "lodz"),
            ("Việt", "viet"),
            ("İstanbul", "istanbul"),
            ("йод ёлка", "йод ёлка"),
            ("за\u{301}мок", "замок"),
            ("مُحَمَّد", "محمد"),
            ("שָׁלוֹם", "שלום"),
        ] {
            assert_eq!(fold(Spelling::PLAIN, text), expected);
        }
        assert_eq!(fold(Spelling::keeping("åäö"), "Ångström é"), "ångström e");
    }
}
