//! An rkyv archive over a [`Blob`]: validated once, then read in place.

use std::marker::PhantomData;

use rkyv::Portable;
use rkyv::api::high::HighValidator;
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor;

use super::Blob;

/// Archived bytes of a `T`, validated when opened.
pub struct Archive<T> {
    blob: Blob,
    marker: PhantomData<fn() -> T>,
}

impl<T> Archive<T>
where
    T: rkyv::Archive,
    T::Archived: Portable + for<'a> CheckBytes<HighValidator<'a, rancor::Error>>,
{
    /// Validates the bytes.
    ///
    /// # Errors
    /// What rkyv found wrong with them.
    pub fn open(blob: Blob) -> Result<Self, rancor::Error> {
        rkyv::access::<T::Archived, rancor::Error>(&blob)?;
        Ok(Self { blob, marker: PhantomData })
    }

    /// The archived value.
    pub fn get(&self) -> &T::Archived {
        // SAFETY: `open` validated these very bytes as a `T::Archived`, and a blob's bytes never change or move.
        unsafe { rkyv::access_unchecked::<T::Archived>(&self.blob) }
    }
}
