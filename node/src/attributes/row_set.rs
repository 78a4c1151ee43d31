//! A set of a segment's rows, a bit each: made anew for every filter, asked for single rows in the midst of a search.
//!
//! Invariant: no bit beyond the segment's last row is set.

use roaring::RoaringBitmap;

/// Some rows of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSet {
    words: Vec<u64>,
    num_rows: u32,
}

impl RowSet {
    /// No row of `num_rows`.
    pub fn none(num_rows: u32) -> Self {
        Self { words: vec![0; num_rows.div_ceil(64) as usize], num_rows }
    }

    /// Every row of `num_rows`.
    pub fn all(num_rows: u32) -> Self {
        let mut set = Self { words: vec![u64::MAX; num_rows.div_ceil(64) as usize], num_rows };
        set.trim();
        set
    }

    fn trim(&mut self) {
        let beyond = self.num_rows % 64;
        if beyond != 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << beyond) - 1;
        }
    }

    /// Adds a row; one beyond the segment is passed over.
    pub fn insert(&mut self, row: u32) {
        if row < self.num_rows
            && let Some(word) = self.words.get_mut(row as usize / 64)
        {
            *word |= 1 << (row % 64);
        }
    }

    /// Takes a row out.
    pub fn remove(&mut self, row: u32) {
        if let Some(word) = self.words.get_mut(row as usize / 64) {
            *word &= !(1 << (row % 64));
        }
    }

    /// Bytes of memory that the bits take.
    pub fn size_bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// Whether a row is in the set.
    pub fn contains(&self, row: u32) -> bool {
        self.words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Leaves only rows that are in both.
    pub fn intersect(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Adds the other's rows.
    pub fn unite(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// Turns into the rows that are not in it.
    pub fn invert(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.trim();
    }

    /// Takes rows out.
    pub fn remove_all(&mut self, rows: &RoaringBitmap) {
        rows.iter().for_each(|row| self.remove(row));
    }

    /// Rows in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether no row is in it.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.words).flat_map(|(place, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(place * 64 + bit)
            })
        })
    }
}
