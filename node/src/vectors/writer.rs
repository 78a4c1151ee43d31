//! Writes the vectors file of one field of one segment, row by row, without holding the vectors.
//!
//! Not for reading ([`crate::vectors::VectorFile`] does that). Invariants: rows ascend, every vector passed the checks
//! that keep scores from being NaN, and vectors that a graph would hold as equal are listed as duplicates of the first.

use std::io::{BufWriter, Cursor, Seek, SeekFrom, Write};

use crate::vectors::layout::{HEADER_LEN, Header};
use crate::vectors::{ElementType, Metric, VectorFileError, metric};

const BUFFER_BYTES: usize = 1 << 18;

/// What a vectors file is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorFileParams {
    /// Elements of a vector.
    pub dims: usize,
    /// How the field's vectors are compared.
    pub metric: Metric,
    /// The element type of the graph that will be built over the file; `None` where none will be, and duplicates need
    /// not be found.
    pub graph_element: Option<ElementType>,
}

/// Writes one file. Holds about 24 bytes a vector until [`VectorFileBuilder::finish`].
#[derive(Debug)]
pub struct VectorFileBuilder<W: Write + Seek> {
    writer: BufWriter<W>,
    start: u64,
    params: VectorFileParams,
    row_ids: Vec<u32>,
    norms: Vec<f32>,
    identities: Vec<(u64, u32)>,
    max_norm: f32,
    bytes: Vec<u8>,
}

impl<W: Write + Seek> VectorFileBuilder<W> {
    /// Begins a file at the writer's position. Buffers by itself.
    ///
    /// # Errors
    /// [`VectorFileError::Io`] when the writer fails, [`VectorFileError::TooLarge`] for more dimensions than the format
    /// holds.
    pub fn new(writer: W, params: VectorFileParams) -> Result<Self, VectorFileError> {
        if params.dims == 0 || u32::try_from(params.dims).is_err() {
            return Err(VectorFileError::TooLarge);
        }
        let mut writer = BufWriter::with_capacity(BUFFER_BYTES, writer);
        let start = writer.stream_position()?;
        writer.write_all(&[0; HEADER_LEN])?;
        Ok(Self {
            writer,
            start,
            params,
            row_ids: Vec::new(),
            norms: Vec::new(),
            identities: Vec::new(),
            max_norm: 0.0,
            bytes: Vec::new(),
        })
    }

    /// Adds the vector of `row`, which lies above every row added before.
    ///
    /// # Errors
    /// [`VectorFileError::Invalid`] for a row out of order, another number of elements, a length that is not finite, or
    /// under [`Metric::Cosine`] no direction; [`VectorFileError::Io`] when the writer fails.
    pub fn push(&mut self, row: u32, vector: &[f32]) -> Result<(), VectorFileError> {
        let invalid = |reason| Err(VectorFileError::Invalid { row, reason });
        if self.row_ids.last().is_some_and(|&last| last >= row) {
            return invalid("rows must ascend");
        }
        if vector.len() != self.params.dims {
            return invalid("wrong number of dimensions");
        }
        let norm = metric::norm(vector);
        if !norm.is_finite() {
            return invalid("the length is not finite");
        }
        if self.params.metric == Metric::Cosine && !norm.is_normal() {
            return invalid("no direction to compare");
        }
        // A row id is below 2³² and they ascend, so slots are too.
        let slot = self.row_ids.len() as u32;
        if let Some(element) = self.params.graph_element {
            self.identities.push((element.identity(self.params.metric, vector), slot));
        }
        self.row_ids.push(row);
        self.norms.push(norm);
        self.max_norm = self.max_norm.max(norm);
        self.bytes.clear();
        self.bytes.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        self.writer.write_all(&self.bytes)?;
        Ok(())
    }

    /// Writes what follows the vectors, then the header, flushes, and gives the writer back, positioned at the end.
    /// `num_rows` is the number of rows of the segment, those without a vector among them.
    ///
    /// # Errors
    /// [`VectorFileError::Invalid`] where a row lies at or beyond `num_rows`, [`VectorFileError::TooLarge`], and
    /// [`VectorFileError::Io`].
    pub fn finish(mut self, num_rows: u32) -> Result<W, VectorFileError> {
        if let Some(&row) = self.row_ids.last()
            && row >= num_rows
        {
            return Err(VectorFileError::Invalid { row, reason: "beyond the segment's rows" });
        }
        let duplicates = find_duplicates(std::mem::take(&mut self.identities));
        let header = Header {
            metric: self.params.metric,
            element: self.params.graph_element,
            dims: u32::try_from(self.params.dims).map_err(|_| VectorFileError::TooLarge)?,
            num_rows,
            count: self.row_ids.len() as u32,
            num_duplicates: duplicates.len() as u32,
            max_norm: self.max_norm,
        };
        let header_bytes = header.to_bytes().ok_or(VectorFileError::TooLarge)?;
        for norm in &self.norms {
            self.writer.write_all(&norm.to_le_bytes())?;
        }
        if !header.is_dense() {
            write_u32s(&mut self.writer, self.row_ids.iter().copied())?;
        }
        let mut slots: Vec<u32> = duplicates.iter().map(|&(_, slot)| slot).collect();
        slots.sort_unstable();
        write_u32s(&mut self.writer, slots.into_iter())?;
        write_u32s(&mut self.writer, duplicates.iter().map(|&(node, _)| node))?;
        write_u32s(&mut self.writer, duplicates.iter().map(|&(_, slot)| slot))?;
        let end = self.writer.stream_position()?;
        self.writer.seek(SeekFrom::Start(self.start))?;
        self.writer.write_all(&header_bytes)?;
        self.writer.seek(SeekFrom::Start(end))?;
        self.writer.into_inner().map_err(|error| VectorFileError::Io { source: error.into_error() })
    }
}

/// Builds a file in memory.
///
/// # Errors
/// As [`VectorFileBuilder`].
pub fn vector_file_in_memory<'a>(
    params: VectorFileParams,
    rows: impl IntoIterator<Item = (u32, &'a [f32])>,
    num_rows: u32,
) -> Result<Vec<u8>, VectorFileError> {
    let mut builder = VectorFileBuilder::new(Cursor::new(Vec::new()), params)?;
    for (row, vector) in rows {
        builder.push(row, vector)?;
    }
    Ok(builder.finish(num_rows)?.into_inner())
}

fn write_u32s(writer: &mut impl Write, values: impl Iterator<Item = u32>) -> Result<(), VectorFileError> {
    for value in values {
        writer.write_all(&value.to_le_bytes())?;
    }
    Ok(())
}

/// The pairs (node, duplicate), ascending by both: the node is the first slot of those with one identity.
fn find_duplicates(mut identities: Vec<(u64, u32)>) -> Vec<(u32, u32)> {
    identities.sort_unstable();
    let mut pairs: Vec<(u32, u32)> = identities
        .chunk_by(|a, b| a.0 == b.0)
        .flat_map(|group| group.iter().skip(1).map(|&(_, slot)| (group[0].1, slot)))
        .collect();
    pairs.sort_unstable();
    pairs
}
