//! Why a page cannot be given.

/// What is wrong with the page asked for. Asking again with the same numbers never helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The page, or the stretch behind `skip`, lies outside what this page size can reach.
    #[error("the page is out of range: with this page size, pages go from 1 to {last_page}")]
    OutOfRange {
        /// The last page that can be asked for, at least 1.
        last_page: u32,
    },
    /// `page` and `skip` both say where to start.
    #[error("give either page or skip, not both")]
    PageAndSkip,
    /// One page may not hold that many matches.
    #[error("a page of {page_size} matches is too large: {max} is the most")]
    PageSizeTooLarge {
        /// The page size asked for.
        page_size: u32,
        /// The largest that the server gives.
        max: u32,
    },
}
