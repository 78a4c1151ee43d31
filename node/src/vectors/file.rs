//! Reads the vectors file of one field of one segment: the float32 rows as sent, mapped, with their norms and with what
//! a graph needs to know of equal vectors.
//!
//! Not for writing ([`crate::vectors::VectorFileBuilder`]). A *slot* is a vector's place in the file, in row order; where
//! every row has a vector, slot and row are one. Invariant: after [`VectorFile::open`] every section lies within the
//! bytes and every row and slot that is listed exists.

use std::io;

use crate::attributes::{NodeSet, RowSet};
use crate::mapped::Blob;
use crate::vectors::floats::as_floats;
use crate::vectors::layout::{HEADER_LEN, Header};
use crate::vectors::{ElementType, Extent, Metric};

/// Why a vectors file could not be written or opened.
#[derive(Debug, thiserror::Error)]
pub enum VectorFileError {
    /// The writer failed.
    #[error("the vectors file could not be written")]
    Io {
        /// What the system said.
        #[from]
        source: io::Error,
    },
    /// A vector that validation should have kept out.
    #[error("the vector of row {row} cannot be stored: {reason}")]
    Invalid {
        /// The row.
        row: u32,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More than the format holds.
    #[error("more vectors or dimensions than a vectors file holds")]
    TooLarge,
    /// The bytes are no vectors file, or a damaged one.
    #[error("the vectors file is damaged: {reason}")]
    Corrupt {
        /// What was found.
        reason: &'static str,
    },
    /// The file is whole but another than expected.
    #[error("the vectors file has another {what}: expected {expected}, found {found}")]
    Mismatch {
        /// What differs.
        what: &'static str,
        /// What the segment says.
        expected: u64,
        /// What the file says.
        found: u64,
    },
    /// The host's byte order is not the file's.
    #[error("vectors files cannot be read on a big-endian host")]
    ByteOrder,
}

/// An open vectors file. Cheap to clone.
#[derive(Debug, Clone)]
pub struct VectorFile {
    header: Header,
    dims: usize,
    vectors: Blob,
    norms: Blob,
    row_ids: Blob,
    /// Slots of duplicates, ascending.
    duplicates: Blob,
    /// The nodes, then the slots, of the pairs ordered by both.
    pair_nodes: Blob,
    pair_slots: Blob,
}

impl VectorFile {
    /// Opens a file of vectors of `dims` elements for a segment of `num_rows` rows. Reads the small sections once.
    ///
    /// # Errors
    /// [`VectorFileError::Corrupt`], [`VectorFileError::Mismatch`], [`VectorFileError::ByteOrder`].
    pub fn open(blob: Blob, dims: usize, num_rows: u32) -> Result<Self, VectorFileError> {
        if cfg!(target_endian = "big") {
            return Err(VectorFileError::ByteOrder);
        }
        let (header, sections) = Header::read(&blob)?;
        let mismatch = |what, expected, found| Err(VectorFileError::Mismatch { what, expected, found });
        if header.dims as usize != dims {
            return mismatch("number of dimensions", dims as u64, u64::from(header.dims));
        }
        if header.num_rows != num_rows {
            return mismatch("number of rows", u64::from(num_rows), u64::from(header.num_rows));
        }
        let part = |from: u64, to: u64| {
            let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
            let blob = range.and_then(|(from, to)| blob.slice(from..to));
            blob.ok_or(VectorFileError::Corrupt { reason: "a section lies outside the file" })
        };
        let duplicates_len = u64::from(header.num_duplicates) * 4;
        let pair_nodes = sections.duplicates + duplicates_len;
        let file = Self {
            header,
            dims,
            vectors: part(HEADER_LEN as u64, sections.norms)?,
            norms: part(sections.norms, sections.row_ids)?,
            row_ids: part(sections.row_ids, sections.duplicates)?,
            duplicates: part(sections.duplicates, pair_nodes)?,
            pair_nodes: part(pair_nodes, pair_nodes + duplicates_len)?,
            pair_slots: part(pair_nodes + duplicates_len, sections.end)?,
        };
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), VectorFileError> {
        let corrupt = |reason| Err(VectorFileError::Corrupt { reason });
        if as_floats(&self.vectors).is_none() || as_floats(&self.norms).is_none() {
            return corrupt("the vectors are not aligned");
        }
        let count = self.header.count;
        if !u32s(&self.row_ids).is_sorted_by(|a, b| a < b)
            || u32s(&self.row_ids).last().is_some_and(|row| row >= self.header.num_rows)
        {
            return corrupt("row ids do not ascend, or lie beyond the segment");
        }
        if !u32s(&self.duplicates).is_sorted_by(|a, b| a < b)
            || u32s(&self.duplicates).last().is_some_and(|slot| slot >= count)
        {
            return corrupt("duplicates do not ascend, or lie beyond the file");
        }
        let pairs = || u32s(&self.pair_nodes).zip(u32s(&self.pair_slots));
        if !pairs().is_sorted_by(|a, b| a < b)
            || pairs().any(|(node, slot)| node >= slot || slot >= count || self.is_graph_node(slot))
            || pairs().any(|(node, _)| !self.is_graph_node(node))
        {
            return corrupt("pairs of duplicates do not ascend, or contradict the list");
        }
        Ok(())
    }

    /// Vectors in the file.
    pub fn len(&self) -> u32 {
        self.header.count
    }

    /// Whether no row has a vector.
    pub fn is_empty(&self) -> bool {
        self.header.count == 0
    }

    /// Rows of the segment, those without a vector among them.
    pub fn num_rows(&self) -> u32 {
        self.header.num_rows
    }

    /// Elements of a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The metric that the file was written for.
    pub fn metric(&self) -> Metric {
        self.header.metric
    }

    /// The element type that duplicates were found for, if they were.
    pub fn graph_element(&self) -> Option<ElementType> {
        self.header.element
    }

    /// The greatest norm of a vector, 0 for an empty file.
    pub fn max_norm(&self) -> f32 {
        self.header.max_norm
    }

    /// How far the vectors reach, as the encoder of a graph has to know. Reads them all for [`ElementType::Int8`].
    pub fn extent(&self) -> Extent {
        match self.header.element {
            Some(ElementType::Int8) => {
                let vectors = (0..self.len()).filter_map(|slot| self.vector(slot).zip(self.norm(slot)));
                Extent::of(self.header.metric, vectors)
            }
            _ => Extent { max_norm: self.header.max_norm, max_element: 0.0 },
        }
    }

    /// Vectors that a graph holds: one for each group of equal ones.
    pub fn num_graph_nodes(&self) -> u32 {
        self.header.count - self.header.num_duplicates
    }

    /// The slot of a row's vector, or `None` for a row without one.
    pub fn slot_of_row(&self, row: u32) -> Option<u32> {
        if self.header.is_dense() {
            return (row < self.header.count).then_some(row);
        }
        let row_ids = self.row_ids.as_chunks::<4>().0;
        row_ids.binary_search_by_key(&row, |bytes| u32::from_le_bytes(*bytes)).ok().map(|slot| slot as u32)
    }

    /// The row whose vector stands in `slot`, or `None` beyond the last slot.
    pub fn row_of_slot(&self, slot: u32) -> Option<u32> {
        if self.header.is_dense() {
            return (slot < self.header.count).then_some(slot);
        }
        self.row_ids.as_chunks::<4>().0.get(slot as usize).map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The vector in `slot`, as sent.
    pub fn vector(&self, slot: u32) -> Option<&[f32]> {
        let start = (slot as usize).checked_mul(self.dims)?;
        self.vectors().get(start..start.checked_add(self.dims)?)
    }

    /// The Euclidean length of the vector in `slot`, as [`crate::vectors::norm`] computes it.
    pub fn norm(&self, slot: u32) -> Option<f32> {
        self.norms().get(slot as usize).copied()
    }

    /// All vectors, one after another in the order of slots.
    pub fn vectors(&self) -> &[f32] {
        as_floats(&self.vectors).unwrap_or_default()
    }

    /// The lengths of all vectors in the order of slots.
    pub fn norms(&self) -> &[f32] {
        as_floats(&self.norms).unwrap_or_default()
    }

    /// Whether a graph holds the vector of `slot` itself, and not an earlier one that is equal to it in the graph.
    pub fn is_graph_node(&self, slot: u32) -> bool {
        let duplicates = self.duplicates.as_chunks::<4>().0;
        slot < self.header.count && duplicates.binary_search_by_key(&slot, |bytes| u32::from_le_bytes(*bytes)).is_err()
    }

    /// The graph's nodes that stand for one of `rows` at least.
    pub fn nodes_of_rows(&self, rows: &RowSet) -> NodeSet {
        let mut slots = if self.header.is_dense() {
            rows.clone()
        } else {
            let mut slots = RowSet::none(self.header.count);
            let held = (0u32..).zip(u32s(&self.row_ids)).filter(|(_, row)| rows.contains(*row));
            held.for_each(|(slot, _)| slots.insert(slot));
            slots
        };
        for (node, slot) in u32s(&self.pair_nodes).zip(u32s(&self.pair_slots)) {
            if slots.contains(slot) {
                slots.insert(node);
            }
        }
        u32s(&self.duplicates).for_each(|slot| slots.remove(slot));
        let len = slots.len();
        NodeSet { slots, len }
    }

    /// The slots that the graph's node `slot` stands for, ascending: itself and its duplicates.
    pub fn group_of(&self, slot: u32) -> impl Iterator<Item = u32> + '_ {
        let nodes = self.pair_nodes.as_chunks::<4>().0;
        let from = nodes.partition_point(|bytes| u32::from_le_bytes(*bytes) < slot);
        let len = nodes[from..].partition_point(|bytes| u32::from_le_bytes(*bytes) == slot);
        let slots = self.pair_slots.as_chunks::<4>().0.get(from..from + len).unwrap_or_default();
        let own = (slot < self.header.count).then_some(slot);
        own.into_iter().chain(slots.iter().map(|bytes| u32::from_le_bytes(*bytes)))
    }
}

fn u32s(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
}
