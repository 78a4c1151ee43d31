//! What a graph holds of one vector, in the type of number that usearch takes it in.
//!
//! Not for making it, which is the encoder's. Invariant: usearch converts nothing, so what is read back is what was added.

use usearch::{Index, b1x8};

use crate::graph::{ElementType, GraphError, GraphParams};

/// An encoded vector or query.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Code {
    /// One float32 for each element, exact in the graph's float type.
    Floats(Vec<f32>),
    /// One whole number for each element.
    Bytes(Vec<i8>),
    /// Eight elements a byte, the first in the lowest bit.
    Bits(Vec<b1x8>),
}

impl Code {
    /// Space for a code of a graph.
    pub(super) fn empty(params: &GraphParams) -> Self {
        match params.element {
            ElementType::Float32 | ElementType::Float16 | ElementType::BFloat16 => Self::Floats(vec![0.0; params.dims]),
            ElementType::Int8 => Self::Bytes(vec![0; params.dims]),
            ElementType::Bit => Self::Bits(vec![b1x8(0); params.dims.div_ceil(8)]),
        }
    }

    /// Adds it as the node of a slot.
    pub(super) fn add_to(&self, index: &Index, slot: u32) -> Result<(), GraphError> {
        let key = u64::from(slot);
        let added = match self {
            Self::Floats(code) => index.add(key, code),
            Self::Bytes(code) => index.add(key, code),
            Self::Bits(code) => index.add(key, code),
        };
        added.map_err(GraphError::library("add a vector"))
    }

    /// The slots of up to `depth` nodes near it, nearest first.
    pub(super) fn search(&self, index: &Index, depth: usize) -> Result<Vec<u32>, GraphError> {
        slots(match self {
            Self::Floats(code) => index.search(code, depth),
            Self::Bytes(code) => index.search(code, depth),
            Self::Bits(code) => index.search(code, depth),
        })
    }

    /// The slots of up to `depth` nodes near it that are admitted, nearest first. A panic of `admits` ends the process.
    pub(super) fn filtered_search(
        &self,
        index: &Index,
        depth: usize,
        admits: impl Fn(u32) -> bool,
    ) -> Result<Vec<u32>, GraphError> {
        let admits = |key: u64| admits(key as u32);
        slots(match self {
            Self::Floats(code) => index.filtered_search(code, depth, admits),
            Self::Bytes(code) => index.filtered_search(code, depth, admits),
            Self::Bits(code) => index.filtered_search(code, depth, admits),
        })
    }

    /// Reads the code of a slot back, over what is here. The code is of the index's kind.
    pub(super) fn load(&mut self, index: &Index, slot: u32) -> Result<(), GraphError> {
        let key = u64::from(slot);
        let found = match self {
            Self::Floats(code) => index.get(key, code),
            Self::Bytes(code) => index.get(key, code),
            Self::Bits(code) => {
                // usearch takes the buffer's length for a number of elements, though eight of them fill one byte.
                let mut buffer = vec![b1x8(0); index.dimensions()];
                let found = index.get(key, &mut buffer);
                buffer.truncate(code.len());
                code.copy_from_slice(&buffer);
                found
            }
        };
        match found.map_err(GraphError::library("read a vector back"))? {
            1 => Ok(()),
            _ => Err(GraphError::Corrupt { reason: "a vector that was added is gone" }),
        }
    }
}

/// Keys are slots, so they fit.
fn slots<E: std::error::Error + Send + Sync + 'static>(
    found: Result<usearch::ffi::Matches, E>,
) -> Result<Vec<u32>, GraphError> {
    let found = found.map_err(GraphError::library("search the index"))?;
    Ok(found.keys.into_iter().map(|key| key as u32).collect())
}
