//! One stretch of a ranking, made by [`PageLaw`](super::PageLaw), and cutting it out.
//!
//! Invariants: `start <= end`; beyond the first page, `window() <= W`.

/// Where a page starts and ends in the ranking, and what follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCut {
    start: usize,
    end: usize,
    last_page: u32,
    next_is_legal: bool,
}

/// A page of a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'r, T> {
    /// At most a page size of matches, best first; fewer only where the ranking ends.
    pub matches: &'r [T],
    /// Whether the next page can be asked for and holds a match.
    pub has_more: bool,
}

impl PageCut {
    /// Only the law makes cuts, so that every one of them is legal.
    pub(super) fn new(start: u64, end: u64, last_page: u32, next_is_legal: bool) -> Self {
        let clamp = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        Self { start: clamp(start), end: clamp(end), last_page, next_is_legal }
    }

    /// How many matches stand before the page. The page's first match has rank `start() + 1`.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// How many matches stand on the page and before it.
    #[must_use]
    pub fn end(&self) -> usize {
        self.end
    }

    /// How many matches the page holds at most.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.end - self.start
    }

    /// The last page that can be asked for with this page size, at least 1.
    #[must_use]
    pub fn last_page(&self) -> u32 {
        self.last_page
    }

    /// How many first matches every channel must give when channels take turns: the page, what stands before it,
    /// and the one match that tells whether there is more.
    ///
    /// It is enough as long as no channel repeats a match: the first n matches of one channel alone fill n places.
    #[must_use]
    pub fn window(&self) -> usize {
        self.end.saturating_add(1)
    }

    /// How many first matches every channel must give to a score fusion: W, whatever the page.
    ///
    /// A window that grew with the page would change scores between pages, and so repeat and lose matches. Only a
    /// first page that does not fit into W goes deeper, and it has no second page to contradict it.
    #[must_use]
    pub fn fusion_window(&self, max_result_window: u32) -> usize {
        self.window().max(usize::try_from(max_result_window).unwrap_or(usize::MAX))
    }

    /// Cuts the page out of a ranking that is complete, or holds at least [`Self::window`] matches.
    #[must_use]
    pub fn cut<'r, T>(&self, ranking: &'r [T]) -> Page<'r, T> {
        let end = self.end.min(ranking.len());
        Page { matches: &ranking[self.start.min(end)..end], has_more: self.next_is_legal && ranking.len() > self.end }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::PageLaw;

    const LAW: PageLaw = PageLaw { max_result_window: 10, max_page_size: 100 };
    const RANKING: [char; 7] = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

    #[test]
    fn one_match_beyond_the_page_means_more() {
        let second = LAW.resolve(2, 3, 0).unwrap();
        assert_eq!(second.cut(&RANKING).matches, ['d', 'e', 'f']);
        assert!(second.cut(&RANKING).has_more);
        assert!(!second.cut(&RANKING[..6]).has_more);
    }

    #[test]
    fn the_last_page_has_no_more_whatever_stands_beyond() {
        let last = LAW.resolve(3, 2, 2);
        assert!(last.is_err());
        let last = LAW.resolve(4, 2, 0).unwrap();
        assert_eq!(last.last_page(), 4);
        assert!(!last.cut(&[0; 50]).has_more);
    }

    #[test]
    fn a_page_beyond_what_was_found_is_empty() {
        let page = LAW.resolve(0, 2, 7).unwrap().cut(&RANKING);
        assert!(page.matches.is_empty() && !page.has_more);
        assert!(LAW.resolve(0, 2, 6).unwrap().cut(&RANKING).matches == ['g']);
    }

    #[test]
    fn only_a_first_page_larger_than_the_window_goes_deeper() {
        let window = |page, size| LAW.resolve(page, size, 0).unwrap().fusion_window(10);
        assert_eq!([window(1, 3), window(3, 3), window(1, 9), window(1, 10), window(1, 50)], [10, 10, 10, 11, 51]);
    }
}
