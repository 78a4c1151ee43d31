//! How many columns a text takes in a terminal, in a simple way: East Asian wide characters take two, combining marks
//! none, all others one.
//!
//! Not a full implementation of UAX #11: enough to keep columns aligned.

/// Columns of a character.
pub(crate) fn of_char(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036F | 0x0483..=0x0489 | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F | 0xFE20..=0xFE2F => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0x33FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xA000..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE4F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F900..=0x1F9FF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// Columns of a text.
pub(crate) fn of(text: &str) -> usize {
    text.chars().map(of_char).sum()
}

/// A text that cannot move the cursor: white space and control characters become single spaces.
pub(crate) fn plain(text: &str) -> String {
    let is_space = |c: char| c.is_whitespace() || c.is_control() || ('\u{202A}'..='\u{202E}').contains(&c);
    text.split(is_space).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text cut to so many columns, with an ellipsis where something went.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if of(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = columns.saturating_sub(1);
    for c in text.chars() {
        match left.checked_sub(of_char(c)) {
            Some(rest) => left = rest,
            None => break,
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_takes_two_columns_and_marks_none() {
        assert_eq!((of("abc"), of("пять"), of("北京"), of("e\u{301}")), (3, 4, 4, 1));
    }

    #[test]
    fn cuts_keep_to_their_columns() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("北京市", 4), "北…");
        assert_eq!(cut("北京市", 0), "…");
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\n\t c\u{202e}d"), "a [31mb c d");
    }
}
