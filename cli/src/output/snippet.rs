//! The piece of a text around the first word of the query, about a terminal line long.
//!
//! For reading only: it guesses at word forms by their beginnings and knows nothing of the server's analyzers.

use super::width;

/// Finds snippets for one query.
#[derive(Debug)]
pub(crate) struct Snippets {
    /// Beginnings of words, in lower case, the telling ones alone.
    needles: Vec<Vec<char>>,
    columns: usize,
}

/// Words shorter than this are looked for only where no longer one is in the query.
const TELLING_CHARS: usize = 4;

impl Snippets {
    /// For a query's text, so many columns wide.
    pub(crate) fn new(query: &str, columns: usize) -> Self {
        let mut words: Vec<Vec<char>> = Vec::new();
        for word in query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let chars: Vec<char> = word.chars().map(lower).collect();
            for run in chars.chunk_by(|a, b| is_wide(*a) == is_wide(*b)) {
                if is_wide(run[0]) && run.len() > 1 {
                    words.extend(run.windows(2).map(<[char]>::to_vec));
                } else {
                    words.push(run.to_vec());
                }
            }
        }
        let is_telling = |word: &[char]| word.len() >= TELLING_CHARS || is_wide(word[0]) && word.len() > 1;
        if words.iter().any(|word| is_telling(word)) {
            words.retain(|word| is_telling(word));
        }
        for word in &mut words {
            // Word forms differ at their ends: oxygen, oxygens; кислород, кислорода.
            word.truncate(word.len().min(TELLING_CHARS.max(word.len().saturating_sub(2))));
        }
        Self { needles: words, columns }
    }

    /// Whether a text holds a word of the query.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.find(&text.chars().collect::<Vec<_>>()).is_some()
    }

    /// The piece around the first word of the query found in the text, or its beginning.
    pub(crate) fn cut(&self, text: &str) -> String {
        let text = width::plain(text);
        if width::of(&text) <= self.columns {
            return text;
        }
        let chars: Vec<char> = text.chars().collect();
        let found = self.find(&chars).unwrap_or(0);
        let mut start = found;
        let mut before = self.columns / 3;
        while let Some(c) = start.checked_sub(1).and_then(|place| chars.get(place)) {
            match before.checked_sub(width::of_char(*c)) {
                Some(rest) => before = rest,
                None => break,
            }
            start -= 1;
        }
        if start > 0 && !chars[start - 1].is_whitespace() {
            // Begin at a word where one begins before what was found.
            if let Some(space) = chars[start..found].iter().position(|c| c.is_whitespace()) {
                start += space + 1;
            }
        }
        let rest: String = chars[start..].iter().collect();
        if start == 0 {
            width::cut(&rest, self.columns)
        } else {
            format!("…{}", width::cut(&rest, self.columns.saturating_sub(1)))
        }
    }

    /// Where the first word of the query begins.
    fn find(&self, chars: &[char]) -> Option<usize> {
        let lower: Vec<char> = chars.iter().copied().map(lower).collect();
        (0..lower.len()).find(|place| {
            let starts_word = |needle: &[char]| {
                is_wide(needle[0]) || place.checked_sub(1).is_none_or(|before| !lower[before].is_alphanumeric())
            };
            self.needles.iter().any(|needle| lower[*place..].starts_with(needle) && starts_word(needle))
        })
    }
}

/// One-to-one lower case, so that places stay the same.
fn lower(c: char) -> char {
    let mut small = c.to_lowercase();
    match (small.next(), small.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

fn is_wide(c: char) -> bool {
    width::of_char(c) == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_surrounds_the_first_telling_word() {
        let text = "In the long history of the natural sciences there were many who studied the air, and Joseph Priestley \
                    found Oxygens in it in the year 1774, calling them dephlogisticated air";
        let snippet = Snippets::new("When did he find the oxygen?", 60).cut(text);
        assert!(snippet.contains("Oxygens in it") && snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
        assert!(width::of(&snippet) <= 60, "{snippet}");
    }

    #[test]
    fn russian_forms_and_chinese_bigrams_are_found() {
        let russian = "слово ".repeat(30) + "получение кислорода из воздуха";
        assert!(Snippets::new("Кто открыл кислород", 40).cut(&russian).contains("кислорода"));
        let chinese = "北京市的历史非常悠久而且有许多".repeat(5) + "氧气是重要的元素";
        let snippet = Snippets::new("谁发现了氧气？", 40).cut(&chinese);
        assert!(snippet.contains("氧气"), "{snippet}");
        assert!(width::of(&snippet) <= 40, "{snippet}");
    }

    #[test]
    fn without_a_word_found_the_beginning_is_shown() {
        assert_eq!(Snippets::new("", 5).cut("abcdefgh"), "abcd…");
        assert_eq!(Snippets::new("zebra", 5).cut("abc"), "abc");
        assert_eq!(Snippets::new("???", 5).cut(""), "");
        assert!(!Snippets::new("rose", 5).matches("prose"));
    }

    #[test]
    fn a_match_at_either_end_is_no_trouble() {
        for columns in 0..30 {
            let text = "zebra ".to_owned() + &"x".repeat(50) + " zebra";
            assert!(width::of(&Snippets::new("zebra", columns).cut(&text)) <= columns.max(2));
            let text = "x".repeat(50) + " zebra";
            assert!(width::of(&Snippets::new("zebra", columns).cut(&text)) <= columns.max(2));
        }
    }
}
