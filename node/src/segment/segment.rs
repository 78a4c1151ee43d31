//! One open segment: rows, payloads, text index, vectors and graphs over the same row numbers.

use std::collections::HashMap;

use antiphon_proto::v1;
use prost::Message;

use super::payload::PayloadFile;
use super::source::BuildRow;
use super::{RowTable, SegmentError, file_names};
use crate::graph::Graph;
use crate::mapped::Blob;
use crate::schema::ShardSchema;
use crate::text::TextIndex;
use crate::vectors::VectorFile;

/// A segment's files by name.
pub struct SegmentBlobs(HashMap<String, Blob>);

impl SegmentBlobs {
    /// Files by name.
    pub fn new(blobs: HashMap<String, Blob>) -> Self {
        Self(blobs)
    }

    fn get(&self, name: &str) -> Option<Blob> {
        self.0.get(name).cloned()
    }

    fn require(&self, name: &str) -> Result<Blob, SegmentError> {
        self.get(name).ok_or(SegmentError::Mismatch("a file of the segment is missing"))
    }
}

/// An open segment. Rows are numbered in order of their folded keys; which of them are dead is not known here.
pub struct Segment {
    rows: RowTable,
    payload: PayloadFile,
    text: Option<TextIndex>,
    vectors: Vec<VectorFile>,
    graphs: Vec<Option<Graph>>,
    size_bytes: u64,
}

impl Segment {
    /// Opens a segment over its files, for so many searches at once.
    ///
    /// # Errors
    /// [`SegmentError`] where a file is damaged or missing, or the files do not fit together or to the schema.
    pub fn open(
        blobs: SegmentBlobs,
        num_rows: u32,
        schema: &ShardSchema,
        threads: usize,
    ) -> Result<Self, SegmentError> {
        let rows = RowTable::open(blobs.require(file_names::ROWS)?, num_rows, schema.texts.len(), schema.key_rule)?;
        let payload = PayloadFile::open(blobs.require(file_names::PAYLOAD)?);
        let text = if schema.texts.is_empty() {
            None
        } else {
            Some(TextIndex::open(blobs.require(file_names::TEXT)?, &schema.text_specs, num_rows)?)
        };
        let (mut vectors, mut graphs) = (Vec::new(), Vec::new());
        for (field, spec) in schema.vectors.iter().enumerate() {
            let file = VectorFile::open(blobs.require(&file_names::vectors(field))?, spec.graph.dims, num_rows)?;
            graphs.push(match blobs.get(&file_names::graph(field)) {
                Some(blob) => Some(Graph::open(blob, &spec.graph, file.num_graph_nodes() as usize, threads)?),
                None => None,
            });
            vectors.push(file);
        }
        let size_bytes = blobs.0.values().map(|blob| blob.len() as u64).sum();
        Ok(Self { rows, payload, text, vectors, graphs, size_bytes })
    }

    /// Rows, live and dead.
    pub fn num_rows(&self) -> u32 {
        self.rows.num_rows()
    }

    /// Keys, positions and token counts.
    pub fn rows(&self) -> &RowTable {
        &self.rows
    }

    /// The text index, where the schema has text fields.
    pub fn text(&self) -> Option<&TextIndex> {
        self.text.as_ref()
    }

    /// The vectors of a field.
    pub fn vectors(&self, field: usize) -> Option<&VectorFile> {
        self.vectors.get(field)
    }

    /// The graph of a field, where there is one.
    pub fn graph(&self, field: usize) -> Option<&Graph> {
        self.graphs.get(field)?.as_ref()
    }

    /// Bytes of all files.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The stored document of a row, without key and vectors.
    ///
    /// # Errors
    /// [`SegmentError`] where the payload is damaged.
    pub fn fields(&self, row: u32) -> Result<v1::Document, SegmentError> {
        let position = self.rows.payload(row).ok_or(SegmentError::Mismatch("a row beyond the end"))?;
        Ok(v1::Document::decode(self.payload.read(position)?.as_slice())?)
    }

    /// The vector of a row in a field.
    pub fn vector(&self, field: usize, row: u32) -> Option<&[f32]> {
        let vectors = self.vectors.get(field)?;
        vectors.vector(vectors.slot_of_row(row)?)
    }

    /// A row with all that a build needs.
    ///
    /// # Errors
    /// [`SegmentError`] where the payload is damaged.
    pub fn build_row(&self, row: u32) -> Result<BuildRow, SegmentError> {
        Ok(BuildRow {
            key: self.rows.key(row).to_owned(),
            seq: self.rows.seq(row),
            fields: self.fields(row)?.fields,
            vectors: (0..self.vectors.len()).map(|field| self.vector(field, row).map(<[f32]>::to_vec)).collect(),
        })
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("num_rows", &self.num_rows()).field("size_bytes", &self.size_bytes).finish()
    }
}
