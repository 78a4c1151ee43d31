//! Which stretch of a ranking a request asks for, and cutting it out.
//!
//! Pure functions on numbers and slices. It knows neither channels nor fusion: whoever calls it gets
//! from [`PageCut`] how deep every channel must answer, makes one ranking, and has the page cut from it.
//! Nothing is kept between two pages, for a page comes from the query and its number alone.

mod cut;
mod error;
mod law;

pub use cut::{Page, PageCut};
pub use error::PageError;
pub use law::{DEFAULT_PAGE_SIZE, PageLaw};
