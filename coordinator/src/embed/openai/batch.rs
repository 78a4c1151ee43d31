//! Which texts travel together.

use std::ops::Range;

/// Cuts texts into batches, in order: at most so many texts in each, and at most so many characters, but for a single longer
/// text, which goes alone.
pub(super) fn batches(texts: &[String], max_texts: usize, max_chars: usize) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut start, mut chars) = (0, 0);
    for (index, text) in texts.iter().enumerate() {
        let more = text.chars().count();
        let is_full = index - start >= max_texts.max(1) || chars + more > max_chars;
        if is_full && index > start {
            batches.push(start..index);
            (start, chars) = (index, 0);
        }
        chars += more;
    }
    if start < texts.len() {
        batches.push(start..texts.len());
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn batches_are_full_and_within_bounds(
            lengths in proptest::collection::vec(0..20_usize, 0..40),
            max_texts in 0..8_usize,
            max_chars in 0..30_usize,
        ) {
            let texts: Vec<String> = lengths.iter().map(|length| "я".repeat(*length)).collect();
            let cut = batches(&texts, max_texts, max_chars);
            let all: Vec<usize> = cut.iter().cloned().flatten().collect();
            prop_assert_eq!(all, (0..texts.len()).collect::<Vec<_>>());
            let chars = |range: &Range<usize>| lengths[range.clone()].iter().sum::<usize>();
            for (index, batch) in cut.iter().enumerate() {
                prop_assert!(!batch.is_empty() && batch.len() <= max_texts.max(1));
                prop_assert!(batch.len() == 1 || chars(batch) <= max_chars);
                // Nothing that still fits is left to the next batch.
                if let Some(next) = cut.get(index + 1) {
                    let fits = chars(batch) + lengths[next.start] <= max_chars && batch.len() < max_texts.max(1);
                    prop_assert!(!fits);
                }
            }
        }
    }
}
