//! One open segment: rows, payloads, text index, vectors and graphs over the same row numbers.
//!
//! A segment may have been built before the last fields were added to the schema. Its text index is then built anew from
//! the stored texts when it is opened: by the same builder over the same rows, so that answers are those of a segment
//! built now. It has no vectors in fields that were added, since no document had one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use antiphon_proto::v1;
use prost::Message;

use super::payload::PayloadFile;
use super::source::BuildRow;
use super::{RowTable, SegmentError, file_names};
use crate::attributes::{Column, ColumnBuilder};
use crate::cache::Lease;
use crate::graph::Graph;
use crate::mapped::Blob;
use crate::schema::{ShardSchema, texts_of};
use crate::text::{TextIndex, TextIndexBuilder};
use crate::vectors::VectorFile;

/// Segments that were opened in this process.
static NUM_OPENED: AtomicU64 = AtomicU64::new(0);

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
    number: u64,
    rows: RowTable,
    payload: PayloadFile,
    text: Option<TextIndex>,
    /// For each text field the tokens of each row, where the text index was built anew.
    rebuilt_counts: Option<Vec<Vec<u32>>>,
    vectors: Vec<VectorFile>,
    graphs: Vec<Option<Graph>>,
    attributes: Vec<Column>,
    /// Whether columns of attributes were built anew.
    has_rebuilt_columns: bool,
    size_bytes: u64,
    /// Keeps the files' room. Last, so that nothing is mapped any more when it goes.
    lease: Option<Lease>,
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
        let own_texts = rows.num_text_fields();
        if schema.version == 0 && own_texts != schema.texts.len() {
            return Err(SegmentError::Mismatch("rows: columns of another schema"));
        }
        let text = match schema.text_specs.get(..own_texts).unwrap_or_default() {
            [] => None,
            specs => Some(TextIndex::open(blobs.require(file_names::TEXT)?, specs, num_rows)?),
        };
        let (mut vectors, mut graphs) = (Vec::new(), Vec::new());
        for (field, spec) in schema.vectors.iter().enumerate() {
            let name = file_names::vectors(field);
            if schema.version > 0 && vectors.len() == field && blobs.get(&name).is_none() {
                // It was built before this field and those behind it were added.
                break;
            }
            let file = VectorFile::open(blobs.require(&name)?, spec.graph.dims, num_rows)?;
            graphs.push(match blobs.get(&file_names::graph(field)) {
                Some(blob) => Some(Graph::open(blob, &spec.graph, file.num_graph_nodes() as usize, threads)?),
                None => None,
            });
            vectors.push(file);
        }
        let has_rebuilt_columns =
            (0..schema.attributes.len()).any(|index| blobs.get(&file_names::attribute(index)).is_none());
        let attributes = open_attributes(&blobs, &rows, &payload, schema)?;
        let size_bytes = blobs.0.values().map(|blob| blob.len() as u64).sum();
        let has_later =
            (vectors.len()..schema.vectors.len()).any(|field| blobs.get(&file_names::vectors(field)).is_some());
        if has_later {
            return Err(SegmentError::Mismatch("a file of the segment is missing"));
        }
        let mut segment = Self {
            number: NUM_OPENED.fetch_add(1, Ordering::Relaxed),
            rows,
            payload,
            text,
            rebuilt_counts: None,
            vectors,
            graphs,
            attributes,
            has_rebuilt_columns,
            size_bytes,
            lease: None,
        };
        if own_texts < schema.texts.len() {
            segment.rebuild_text(schema)?;
        }
        Ok(segment)
    }

    /// Keeps the room of its files as long as it is open.
    pub fn with_lease(mut self, lease: Option<Lease>) -> Self {
        self.lease = lease;
        self
    }

    fn rebuild_text(&mut self, schema: &ShardSchema) -> Result<(), SegmentError> {
        let mut builder = TextIndexBuilder::new(&schema.text_specs)?;
        let mut counts = vec![Vec::with_capacity(self.num_rows() as usize); schema.texts.len()];
        for row in 0..self.num_rows() {
            let document = self.fields(row)?;
            let tokens = builder.add(&texts_of(&document.fields, &schema.text_specs))?;
            counts.iter_mut().zip(tokens).for_each(|(column, count)| column.push(count));
        }
        let bundle = Blob::from_bytes(&builder.finish()?);
        self.text = Some(TextIndex::open(bundle, &schema.text_specs, self.num_rows())?);
        self.rebuilt_counts = Some(counts);
        Ok(())
    }

    /// Whether the text index or columns were built anew, in memory, since the segment lacks fields of the schema.
    pub fn is_rebuilt(&self) -> bool {
        self.rebuilt_counts.is_some() || self.has_rebuilt_columns
    }

    /// The tokens of a row in a text field.
    pub fn token_count(&self, field: usize, row: u32) -> u32 {
        match &self.rebuilt_counts {
            Some(counts) => counts.get(field).and_then(|column| column.get(row as usize)).copied().unwrap_or(0),
            None => self.rows.token_count(field, row),
        }
    }

    /// A number that no other open segment of this process has, had or will have.
    pub fn number(&self) -> u64 {
        self.number
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

    /// The columns of the schema's attributes.
    pub fn attributes(&self) -> &[Column] {
        &self.attributes
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
        stored_fields(&self.rows, &self.payload, row)
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

fn stored_fields(rows: &RowTable, payload: &PayloadFile, row: u32) -> Result<v1::Document, SegmentError> {
    let position = rows.payload(row).ok_or(SegmentError::Mismatch("a row beyond the end"))?;
    Ok(v1::Document::decode(payload.read(position)?.as_slice())?)
}

/// The attributes' columns: from their files, and for attributes that are younger than the segment from its documents.
fn open_attributes(
    blobs: &SegmentBlobs,
    rows: &RowTable,
    payload: &PayloadFile,
    schema: &ShardSchema,
) -> Result<Vec<Column>, SegmentError> {
    let names: Vec<String> = (0..schema.attributes.len()).map(file_names::attribute).collect();
    let mut missing: Vec<(usize, ColumnBuilder)> = (0..names.len())
        .filter(|index| blobs.get(&names[*index]).is_none())
        .map(|index| (index, ColumnBuilder::new(schema.attributes[index].r#type())))
        .collect();
    let num_rows = if missing.is_empty() { 0 } else { rows.num_rows() };
    for row in 0..num_rows {
        let document = stored_fields(rows, payload, row)?;
        for (index, column) in &mut missing {
            if let Some(value) = document.fields.get(&schema.attributes[*index].name) {
                column.add(row, value)?;
            }
        }
    }
    let mut built = HashMap::new();
    for (index, column) in missing {
        built.insert(index, Blob::from_bytes(&column.finish()?));
    }
    let open = |index: usize| {
        let blob = built.remove(&index).map_or_else(|| blobs.require(&names[index]), Ok)?;
        Ok(Column::open(blob, rows.num_rows(), schema.attributes[index].r#type())?)
    };
    (0..names.len()).map(open).collect()
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("num_rows", &self.num_rows()).field("size_bytes", &self.size_bytes).finish()
    }
}
