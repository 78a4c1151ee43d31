//! Reads a two-dimensional array of float16 or float32 from a NumPy file (format 1.0 to 3.0, C order, little-endian).
//!
//! Not for any other kind of array.

use std::path::Path;

use crate::Outcome;

/// Rows of floats.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub dims: usize,
    /// Row after row.
    pub values: Vec<f32>,
}

impl Matrix {
    /// One row.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.dims..(index + 1) * self.dims]
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Where it can't be read or holds something else.
    pub fn read(path: &Path) -> Outcome<Self> {
        Self::parse(&std::fs::read(path)?).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Where they hold something else.
    pub fn parse(bytes: &[u8]) -> Outcome<Self> {
        if bytes.get(..6) != Some(b"\x93NUMPY") {
            return Err("not a NumPy file".into());
        }
        let major = *bytes.get(6).ok_or("cut off")?;
        let (header_start, len_bytes) = if major == 1 { (10, 2) } else { (12, 4) };
        let len = bytes.get(8..8 + len_bytes).ok_or("cut off")?;
        let header_len = len.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
        let header = bytes.get(header_start..header_start + header_len).ok_or("cut off")?;
        let header = std::str::from_utf8(header)?;
        if !header.contains("'fortran_order': False") {
            return Err("not in C order".into());
        }
        let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')')).ok_or("no shape")?.0;
        let shape: Vec<usize> = shape.split(',').filter_map(|number| number.trim().parse().ok()).collect();
        let [rows, dims] = shape[..] else { return Err(format!("of shape {shape:?}, not two-dimensional").into()) };
        let data = &bytes[header_start + header_len..];
        let values: Vec<f32> = if header.contains("'<f2'") {
            data.as_chunks::<2>().0.iter().map(|bytes| half::f16::from_le_bytes(*bytes).to_f32()).collect()
        } else if header.contains("'<f4'") {
            data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        } else {
            return Err("neither '<f2' nor '<f4'".into());
        };
        if values.len() != rows * dims {
            return Err(format!("{} elements, not {rows} × {dims}", values.len()).into());
        }
        Ok(Self { rows, dims, values })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn both_element_types_are_read_and_others_refused() {
        let matrix = Matrix::parse(&file("<f2", "(2, 1)", &[0x00, 0x3c, 0x00, 0xc0])).unwrap();
        assert_eq!((matrix.rows, matrix.dims, matrix.row(1)), (2, 1, &[-2.0f32][..]));
        let matrix = Matrix::parse(&file("<f4", "(1, 1)", &1.5f32.to_le_bytes())).unwrap();
        assert_eq!(matrix.values, [1.5]);
        assert!(Matrix::parse(&file("<f8", "(1, 1)", &[0; 8])).is_err());
        assert!(Matrix::parse(&file("<f4", "(2, 1)", &[0; 4])).is_err());
        assert!(Matrix::parse(&file("<f4", "(1,)", &[0; 4])).is_err());
        assert!(Matrix::parse(b"\x93NUMPY\x01\x00\xff\xff").is_err());
    }
}
