//! What each character is to the analyzers: part of a word, of a CJK run, of a script without spaces, or none of them.
//!
//! Letters and digits are Rust's `char::is_alphanumeric` (Unicode's Alphabetic, Nd, Nl and No). Marks that are not
//! Alphabetic (combining accents, viramas, tone marks) are in [`MARKS`]: they belong to the character before them.

/// What a character is in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// White space, punctuation, symbols: stands between words.
    Separator,
    /// A picture: a word by itself.
    Emoji,
    /// Invisible and without meaning for a search (soft hyphen, joiners, variation selectors): never parts a word,
    /// never stays in a term.
    Ignorable,
    /// Belongs to the character before it.
    Mark,
    /// A letter or digit of a script that puts spaces between words.
    Plain,
    /// Han, Hiragana, Katakana, Bopomofo or Hangul.
    Cjk,
    /// Thai, Lao, Khmer or Myanmar: words without spaces, found by dictionary.
    Complex,
}

impl Class {
    pub(super) fn of(c: char) -> Self {
        if c.is_ascii() {
            return if c.is_ascii_alphanumeric() { Class::Plain } else { Class::Separator };
        }
        if is_ignorable(c) {
            Class::Ignorable
        } else if is_mark(c) && !c.is_alphanumeric() {
            Class::Mark
        } else if is_emoji(c) {
            Class::Emoji
        } else if !c.is_alphanumeric() {
            Class::Separator
        } else if is_cjk(c) {
            Class::Cjk
        } else if is_complex(c) {
            Class::Complex
        } else {
            Class::Plain
        }
    }

    /// Whether a character of this class stays with what precedes it.
    pub(super) fn is_attached(self) -> bool {
        matches!(self, Class::Mark | Class::Ignorable)
    }

    /// Whether a character of this class is a letter or digit.
    pub(super) fn is_of_word(self) -> bool {
        matches!(self, Class::Plain | Class::Cjk | Class::Complex)
    }
}

/// Whether a character is an ideograph, which is often a word on its own.
pub(super) fn is_han(c: char) -> bool {
    matches!(c, '\u{3005}' | '\u{3007}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether two of these in a row are a flag.
pub(super) fn is_flag_half(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

/// Pictures, without skin tones, which say how and not what, and without signs that are part of writing.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{2600}'..='\u{26ff}' | '\u{2702}'..='\u{275a}' | '\u{2763}'..='\u{2767}' | '\u{2b50}' | '\u{2b55}'
        | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f300}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}' | '\u{1f7e0}'..='\u{1f7eb}' | '\u{1f900}'..='\u{1f9ff}'
        | '\u{1fa70}'..='\u{1faff}')
}

fn is_cjk(c: char) -> bool {
    is_han(c)
        || matches!(c,
            '\u{1100}'..='\u{11ff}'     // Hangul Jamo
            | '\u{3031}'..='\u{312f}'   // Hiragana, Katakana, Bopomofo
            | '\u{3131}'..='\u{318e}'   // Hangul compatibility Jamo
            | '\u{31a0}'..='\u{31ff}'   // Bopomofo and Katakana extensions
            | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' // Hangul
            | '\u{ff66}'..='\u{ffdc}'   // half width
            | '\u{1aff0}'..='\u{1b16f}') // Kana extensions
}

fn is_complex(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'           // Thai, Lao
        | '\u{1000}'..='\u{109f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}' // Myanmar
        | '\u{1780}'..='\u{17ff}') // Khmer
}

fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}'
        | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_mark(c: char) -> bool {
    let after = MARKS.partition_point(|(first, _)| *first <= u32::from(c));
    after > 0 && u32::from(c) <= MARKS[after - 1].1
}

/// Code points of Unicode's general category M, as inclusive ranges. A range may run over letters, digits and
/// unassigned code points between marks; never over punctuation or symbols.
#[rustfmt::skip]
const MARKS: &[(u32, u32)] = &[
    (0x300, 0x34e), (0x350, 0x36f), (0x483, 0x489), (0x591, 0x5bd), (0x5bf, 0x5bf), (0x5c1, 0x5c2), (0x5c4, 0x5c5),
    (0x5c7, 0x5c7), (0x610, 0x61a), (0x64b, 0x65f), (0x670, 0x670), (0x6d6, 0x6dc), (0x6df, 0x6e8), (0x6ea, 0x6ed),
    (0x711, 0x7f3), (0x7fd, 0x7fd), (0x816, 0x82d), (0x859, 0x85b), (0x898, 0x8e1), (0x8e3, 0x963), (0x981, 0x9e3),
    (0x9fe, 0xa75), (0xa81, 0xae3), (0xafa, 0xb63), (0xb82, 0xbd7), (0xc00, 0xc63), (0xc81, 0xc83), (0xcbc, 0xd4d),
    (0xd57, 0xd63), (0xd81, 0xdf3), (0xe31, 0xe3a), (0xe47, 0xe4e), (0xeb1, 0xecd), (0xf18, 0xf19), (0xf35, 0xf35),
    (0xf37, 0xf37), (0xf39, 0xf39), (0xf3e, 0xf84), (0xf86, 0xfbc), (0xfc6, 0xfc6), (0x102b, 0x103e),
    (0x1056, 0x109d), (0x135d, 0x135f), (0x1712, 0x1734), (0x1752, 0x17d3), (0x17dd, 0x17dd), (0x1885, 0x193b),
    (0x1a17, 0x1a1b), (0x1a55, 0x1a7f), (0x1ab0, 0x1b44), (0x1b6b, 0x1b73), (0x1b80, 0x1bf3), (0x1c24, 0x1c37),
    (0x1cd0, 0x1cd2), (0x1cd4, 0x1dff), (0x20d0, 0x20f0), (0x2cef, 0x2cf1), (0x2d7f, 0x2dff), (0x302a, 0x302f),
    (0x3099, 0x309a), (0xa66f, 0xa672), (0xa674, 0xa67d), (0xa69e, 0xa6f1), (0xa802, 0xa827), (0xa82c, 0xa82c),
    (0xa880, 0xa8c5), (0xa8e0, 0xa8f1), (0xa8ff, 0xa92d), (0xa947, 0xa953), (0xa980, 0xa9c0), (0xa9e5, 0xaa4d),
    (0xaa7b, 0xaac1), (0xaaeb, 0xaaef), (0xaaf5, 0xaaf6), (0xabe3, 0xabea), (0xabec, 0xabed), (0xfb1e, 0xfb1e),
    (0xfe20, 0xfe2f), (0x101fd, 0x1037a), (0x10a01, 0x10a3f), (0x10ae5, 0x10ae6), (0x10d24, 0x10eac),
    (0x10f46, 0x10f50), (0x10f82, 0x10f85), (0x11000, 0x11046), (0x11070, 0x110ba), (0x110c2, 0x110c2),
    (0x11100, 0x11134), (0x11145, 0x11173), (0x11180, 0x111c0), (0x111c9, 0x111cc), (0x111ce, 0x111cf),
    (0x1122c, 0x11237), (0x1123e, 0x1123e), (0x112df, 0x11446), (0x1145e, 0x114c3), (0x115af, 0x115c0),
    (0x115dc, 0x11640), (0x116ab, 0x116b7), (0x1171d, 0x1172b), (0x1182c, 0x1183a), (0x11930, 0x11943),
    (0x119d1, 0x119e0), (0x119e4, 0x11a3e), (0x11a47, 0x11a99), (0x11c2f, 0x11c3f), (0x11c92, 0x11ef6),
    (0x16af0, 0x16af4), (0x16b30, 0x16b36), (0x16f4f, 0x16f92), (0x16fe4, 0x16ff1), (0x1bc9d, 0x1bc9e),
    (0x1cf00, 0x1cf46), (0x1d165, 0x1d169), (0x1d16d, 0x1d172), (0x1d17b, 0x1d182), (0x1d185, 0x1d18b),
    (0x1d1aa, 0x1d1ad), (0x1d242, 0x1d244), (0x1da00, 0x1da36), (0x1da3b, 0x1da6c), (0x1da75, 0x1da75),
    (0x1da84, 0x1da84), (0x1da9b, 0x1e136), (0x1e2ae, 0x1e2ef), (0x1e8d0, 0x1e94a),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_the_class_that_words_need() {
        for (c, class) in [
            ('a', Class::Plain),
            ('7', Class::Plain),
            ('_', Class::Separator),
            ('é', Class::Plain),
            ('ß', Class::Plain),
            ('\u{301}', Class::Mark),
            ('\u{bcd}', Class::Mark),
            ('\u{94d}', Class::Mark),
            ('、', Class::Separator),
            ('・', Class::Separator),
            ('京', Class::Cjk),
            ('ー', Class::Cjk),
            ('ｱ', Class::Cjk),
            ('한', Class::Cjk),
            ('ก', Class::Complex),
            ('\u{e48}', Class::Mark),
            ('😀', Class::Emoji),
            ('🏽', Class::Separator),
            ('™', Class::Separator),
            ('\u{200b}', Class::Separator),
            ('\u{ad}', Class::Ignorable),
            ('।', Class::Separator),
        ] {
            assert_eq!(Class::of(c), class, "{c:?}");
        }
    }

    #[test]
    fn marks_are_in_order() {
        assert!(MARKS.windows(2).all(|pair| pair[0].1 < pair[1].0) && MARKS.iter().all(|(first, last)| first <= last));
    }
}
