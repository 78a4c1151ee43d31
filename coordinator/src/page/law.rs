//! The page law: which stretches of a ranking can be asked for.
//!
//! With W = `max_result_window` and pages of k matches:
//!
//! - A stretch of k matches behind `skip` others is legal if `skip` is 0 or `skip + k <= W - 1`. The first page
//!   is thus exempt from W, since its size is what the caller chose; it is bounded by `max_page_size` alone.
//! - Page p is the stretch behind `(p - 1) * k` others. Hence pages go from 1 to `max(1, (W - 1) / k)`.
//! - Another page is worth asking for if it would be legal and one match stands beyond this one.
//!
//! The 1 in W - 1 is the match beyond the page. No page but the first ever needs more than W matches of a channel.
//! Numbers come from strangers: every one of them is answered or refused, and none overflows.

use super::{PageCut, PageError};

/// The page size of a request that names none.
pub const DEFAULT_PAGE_SIZE: u32 = 10;

/// The server's limits on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLaw {
    /// W: how many matches a page beyond the first may need, per channel.
    pub max_result_window: u32,
    /// How many matches one page may hold, the first one included.
    pub max_page_size: u32,
}

impl PageLaw {
    /// The stretch that a request asks for.
    ///
    /// `page` counts from 1 and 0 means 1; a `page_size` of 0 means [`DEFAULT_PAGE_SIZE`], or the largest allowed
    /// if that is smaller. A `skip` above 0 stands in place of `page`.
    ///
    /// # Errors
    /// Every [`PageError`].
    pub fn resolve(&self, page: u32, page_size: u32, skip: u32) -> Result<PageCut, PageError> {
        let page_size = match page_size {
            0 => DEFAULT_PAGE_SIZE.min(self.max_page_size),
            asked => asked,
        };
        if page_size > self.max_page_size {
            return Err(PageError::PageSizeTooLarge { page_size, max: self.max_page_size });
        }
        if skip == 0 {
            return self.page(i64::from(page.max(1)), i64::from(page_size));
        }
        if page > 1 {
            return Err(PageError::PageAndSkip);
        }
        self.stretch(u64::from(skip), u64::from(page_size))
    }

    /// Page `page`, from 1, of any size: a page of less than one match is empty, and the only one.
    ///
    /// This is the law without the defaults and without `max_page_size`; requests go through [`Self::resolve`].
    ///
    /// # Errors
    /// [`PageError::OutOfRange`] if the page is not in `1..=last_page`.
    pub fn page(&self, page: i64, page_size: i64) -> Result<PageCut, PageError> {
        let last_page = self.last_page(page_size);
        if page < 1 || page > i64::from(last_page) {
            return Err(PageError::OutOfRange { last_page });
        }
        let page_size = page_size.max(0).unsigned_abs();
        // No overflow: page is 1, or page * page_size is at most W - 1 by what last_page is.
        self.stretch((page - 1).unsigned_abs() * page_size, page_size)
    }

    /// The last page of `page_size` matches that can be asked for, at least 1.
    #[must_use]
    pub fn last_page(&self, page_size: i64) -> u32 {
        let pages = i64::from(self.reach()).checked_div(page_size).unwrap_or(1).max(1);
        // At most W - 1, so it always fits.
        u32::try_from(pages).unwrap_or(u32::MAX)
    }

    /// The `page_size` matches behind the first `skip`: the one place where the law is applied.
    fn stretch(&self, skip: u64, page_size: u64) -> Result<PageCut, PageError> {
        let reach = u64::from(self.reach());
        let last_page = self.last_page(i64::try_from(page_size).unwrap_or(i64::MAX));
        let end = skip.saturating_add(page_size);
        if skip > 0 && end > reach {
            return Err(PageError::OutOfRange { last_page });
        }
        let next_is_legal = page_size > 0 && end.saturating_add(page_size) <= reach;
        Ok(PageCut::new(skip, end, last_page, next_is_legal))
    }

    /// W - 1: where pages beyond the first must end.
    fn reach(&self) -> u32 {
        self.max_result_window.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LAW: PageLaw = PageLaw { max_result_window: 100, max_page_size: 1_000 };

    #[test]
    fn zeros_mean_the_first_ten() {
        let cut = LAW.resolve(0, 0, 0).unwrap();
        assert_eq!((cut.start(), cut.end(), cut.window(), cut.last_page()), (0, 10, 11, 9));
        assert_eq!(cut, LAW.resolve(1, 10, 0).unwrap());
    }

    #[test]
    fn a_small_limit_lowers_the_default_size() {
        let law = PageLaw { max_page_size: 4, ..LAW };
        assert_eq!(law.resolve(1, 0, 0).unwrap().page_size(), 4);
    }

    #[test]
    fn the_first_page_may_be_larger_than_the_window_but_not_than_a_page() {
        let cut = LAW.resolve(1, 1_000, 0).unwrap();
        assert_eq!((cut.window(), cut.last_page()), (1_001, 1));
        assert_eq!(LAW.resolve(2, 1_000, 0), Err(PageError::OutOfRange { last_page: 1 }));
        assert_eq!(LAW.resolve(1, 1_001, 0), Err(PageError::PageSizeTooLarge { page_size: 1_001, max: 1_000 }));
    }

    #[test]
    fn skip_reaches_as_far_as_the_window() {
        assert_eq!(LAW.resolve(0, 10, 89).unwrap().window(), 100);
        assert_eq!(LAW.resolve(0, 10, 90), Err(PageError::OutOfRange { last_page: 9 }));
        assert_eq!(LAW.resolve(1, 10, 5).unwrap().start(), 5);
    }

    #[test]
    fn page_and_skip_are_not_mixed() {
        assert_eq!(LAW.resolve(2, 10, 10), Err(PageError::PageAndSkip));
    }

    #[test]
    fn the_largest_numbers_are_refused_or_answered() {
        let most = u32::MAX;
        let lawless = PageLaw { max_result_window: most, max_page_size: most };
        assert_eq!(lawless.resolve(most, most, 0), Err(PageError::OutOfRange { last_page: 1 }));
        assert_eq!(lawless.resolve(0, most, most), Err(PageError::OutOfRange { last_page: 1 }));
        assert_eq!(lawless.resolve(0, most, 0).unwrap().window(), 1 << 32);
        assert_eq!(lawless.resolve(most - 1, 1, 0).unwrap().end(), 4_294_967_294);
        assert!(lawless.page(i64::MIN, i64::MIN).is_err());
        assert!(lawless.page(i64::MAX, i64::MAX).is_err());
        assert!(lawless.page(1, i64::MAX).is_ok());
        let none = PageLaw { max_result_window: 0, max_page_size: 0 };
        assert_eq!(none.resolve(0, 0, 0).unwrap().page_size(), 0);
        assert!(none.resolve(0, 0, 1).is_err());
    }
}
