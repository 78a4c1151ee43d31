//! Tensors of a safetensors file, kept in the file's own type and widened to float32 row by row.

use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors};

use super::folder::{malformed, read_weights};
use crate::embed::StartError;

/// A file of tensors in memory.
pub(super) struct Weights {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// A matrix, or a vector as a matrix of one column.
pub(super) struct Matrix {
    bytes: Vec<u8>,
    element: Element,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

#[derive(Clone, Copy)]
enum Element {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I8,
}

impl Element {
    fn of(dtype: Dtype) -> Option<Self> {
        Some(match dtype {
            Dtype::F64 => Self::F64,
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::BF16 => Self::BF16,
            Dtype::I64 => Self::I64,
            Dtype::I32 => Self::I32,
            Dtype::I8 => Self::I8,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::I8 => 1,
        }
    }
}

impl Weights {
    /// Reads a file.
    ///
    /// # Errors
    /// [`StartError::Read`], [`StartError::Malformed`].
    pub(super) fn load(path: &Path) -> Result<Self, StartError> {
        Ok(Self { path: path.to_owned(), bytes: read_weights(path)? })
    }

    /// The first of these tensors that is there.
    ///
    /// # Errors
    /// [`StartError::Malformed`] for a damaged file, and for a tensor that is no matrix or of another type of numbers.
    pub(super) fn matrix<'n>(&self, names: &[&'n str]) -> Result<Option<(&'n str, Matrix)>, StartError> {
        let tensors = SafeTensors::deserialize(&self.bytes).map_err(|error| malformed(&self.path, error))?;
        let Some((name, tensor)) = names.iter().find_map(|name| Some((*name, tensors.tensor(name).ok()?))) else {
            return Ok(None);
        };
        let (rows, columns) = match tensor.shape() {
            [rows] => (*rows, 1),
            [rows, columns] => (*rows, *columns),
            shape => return Err(malformed(&self.path, format!("the tensor {name} has the shape {shape:?}"))),
        };
        let element = Element::of(tensor.dtype())
            .ok_or_else(|| malformed(&self.path, format!("the tensor {name} holds {:?}", tensor.dtype())))?;
        let bytes = tensor.data().to_vec();
        let wanted = rows.checked_mul(columns).and_then(|numbers| numbers.checked_mul(element.size()));
        if wanted != Some(bytes.len()) {
            return Err(malformed(&self.path, format!("the tensor {name} has {} bytes", bytes.len())));
        }
        Ok(Some((name, Matrix { bytes, element, rows, columns })))
    }

    /// The file, for errors.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Matrix {
    /// Adds a row, times a factor, to as many numbers as `sum` has; a row that is not there adds nothing.
    pub(super) fn add_row(&self, row: usize, factor: f32, sum: &mut [f32]) {
        let size = self.element.size();
        let start = row.saturating_mul(self.columns * size);
        let Some(bytes) = self.bytes.get(start..start.saturating_add(self.columns * size)) else { return };
        match self.element {
            Element::F32 => add(bytes, factor, sum, f32::from_le_bytes),
            Element::F16 => add(bytes, factor, sum, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Element::BF16 => add(bytes, factor, sum, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Element::F64 => add(bytes, factor, sum, |bytes| f64::from_le_bytes(bytes) as f32),
            Element::I64 => add(bytes, factor, sum, |bytes| i64::from_le_bytes(bytes) as f32),
            Element::I32 => add(bytes, factor, sum, |bytes| i32::from_le_bytes(bytes) as f32),
            Element::I8 => add(bytes, factor, sum, |bytes: [u8; 1]| f32::from(i8::from_le_bytes(bytes))),
        }
    }

    /// A column of whole numbers.
    pub(super) fn integers(&self) -> Option<Vec<u64>> {
        match (self.element, self.columns) {
            (Element::I64, 1) => {
                let (words, _) = self.bytes.as_chunks::<8>();
                words.iter().map(|word| u64::try_from(i64::from_le_bytes(*word)).ok()).collect()
            }
            (Element::I32, 1) => {
                let (words, _) = self.bytes.as_chunks::<4>();
                words.iter().map(|word| u64::try_from(i32::from_le_bytes(*word)).ok()).collect()
            }
            _ => None,
        }
    }

    /// A column of numbers.
    pub(super) fn numbers(&self) -> Option<Vec<f32>> {
        (self.columns == 1).then(|| {
            (0..self.rows)
                .map(|row| {
                    let mut sum = [0.0];
                    self.add_row(row, 1.0, &mut sum);
                    sum[0]
                })
                .collect()
        })
    }
}

fn add<const N: usize>(bytes: &[u8], factor: f32, sum: &mut [f32], number: impl Fn([u8; N]) -> f32) {
    let (words, _) = bytes.as_chunks::<N>();
    for (sum, word) in sum.iter_mut().zip(words) {
        *sum += factor * number(*word);
    }
}
