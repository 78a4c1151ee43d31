//! Builds a segment from rows in order of their folded keys: the one builder for live parts, sealing and merging.

use std::collections::HashMap;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::output::{Destination, Output};
use super::payload::PayloadWriter;
use super::row_table::RowTableBuilder;
use super::segment::{Segment, SegmentBlobs};
use super::source::BuildRow;
use super::{SegmentError, file_names};
use crate::attributes::ColumnBuilder;
use crate::graph::{GraphBuilder, GraphError};
use crate::mapped::Blob;
use crate::schema::{ShardSchema, texts_of};
use crate::text::TextIndexBuilder;
use crate::vectors::{VectorFile, VectorFileBuilder, VectorFileParams};

/// A finished file.
#[derive(Debug, Clone)]
pub struct BuiltFile {
    /// Its name in the segment.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// CRC-32 (IEEE) of the whole.
    pub crc32: u32,
    /// Its bytes.
    pub blob: Blob,
    /// Where it was built, unless in memory.
    pub path: Option<PathBuf>,
}

/// A finished segment.
#[derive(Debug, Clone)]
pub struct BuiltSegment {
    /// Rows, all live.
    pub num_rows: u32,
    /// Its files.
    pub files: Vec<BuiltFile>,
}

impl BuiltSegment {
    /// Opens what was built.
    ///
    /// # Errors
    /// [`SegmentError`] where the files do not fit together, which would be a bug.
    pub fn open(&self, schema: &ShardSchema, threads: usize) -> Result<Segment, SegmentError> {
        let blobs: HashMap<String, Blob> =
            self.files.iter().map(|file| (file.name.clone(), file.blob.clone())).collect();
        Segment::open(SegmentBlobs::new(blobs), self.num_rows, schema, threads)
    }
}

/// Builds one segment.
pub struct SegmentBuilder {
    schema: Arc<ShardSchema>,
    destination: Destination,
    graph_min_rows: Option<u32>,
    rows: RowTableBuilder,
    payload: PayloadWriter<BufWriter<Output>>,
    text: Option<TextIndexBuilder>,
    vectors: Vec<VectorFileBuilder<Output>>,
    attributes: Vec<ColumnBuilder>,
}

impl SegmentBuilder {
    /// A builder. Fields with at least `graph_min_rows` vectors get a graph; `None` builds no graphs.
    ///
    /// # Errors
    /// [`SegmentError::Io`] where files cannot be made.
    pub fn new(
        schema: Arc<ShardSchema>,
        destination: Destination,
        graph_min_rows: Option<u32>,
    ) -> Result<Self, SegmentError> {
        let payload = PayloadWriter::new(BufWriter::new(destination.create(file_names::PAYLOAD)?));
        let text = if schema.texts.is_empty() { None } else { Some(TextIndexBuilder::new(&schema.text_specs)?) };
        let mut vectors = Vec::new();
        for (field, spec) in schema.vectors.iter().enumerate() {
            let params = VectorFileParams {
                dims: spec.graph.dims,
                metric: spec.graph.metric,
                graph_element: graph_min_rows.map(|_| spec.graph.element),
            };
            vectors.push(VectorFileBuilder::new(destination.create(&file_names::vectors(field))?, params)?);
        }
        let rows = RowTableBuilder::new(schema.texts.len());
        let attributes = schema.attributes.iter().map(|attribute| ColumnBuilder::new(attribute.r#type())).collect();
        Ok(Self { schema, destination, graph_min_rows, rows, payload, text, vectors, attributes })
    }

    /// Adds the next row; its folded key must come after the last one's.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn add(&mut self, row: &BuildRow) -> Result<(), SegmentError> {
        let number = u32::try_from(self.rows.len()).map_err(|_| SegmentError::TooLarge)?;
        let tokens = match &mut self.text {
            Some(text) => text.add(&texts_of(&row.fields, &self.schema.text_specs))?,
            None => Vec::new(),
        };
        for (builder, vector) in self.vectors.iter_mut().zip(&row.vectors) {
            if let Some(vector) = vector {
                builder.push(number, vector)?;
            }
        }
        for (column, attribute) in self.attributes.iter_mut().zip(&self.schema.attributes) {
            if let Some(value) = row.fields.get(&attribute.name) {
                column.add(number, value)?;
            }
        }
        let position = self.payload.add(&row.payload())?;
        self.rows.add(&row.key, row.seq, &tokens, position)
    }

    /// Rows so far.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }

    /// Ends the files and builds the graphs. Polls `stop` between the vectors of a graph.
    ///
    /// # Errors
    /// [`SegmentError`]; [`SegmentError::Stopped`] when `stop` was set.
    pub fn finish(self, stop: &AtomicBool) -> Result<BuiltSegment, SegmentError> {
        let num_rows = self.rows.len() as u32;
        let destination = self.destination;
        let mut files = vec![destination.put(file_names::ROWS.into(), &self.rows.finish()?)?];
        let payload = self.payload.finish()?.into_inner().map_err(|error| error.into_error())?;
        files.push(payload.close(file_names::PAYLOAD.into())?);
        if let Some(text) = self.text {
            files.push(destination.put(file_names::TEXT.into(), &text.finish()?)?);
        }
        for (index, column) in self.attributes.into_iter().enumerate() {
            files.push(destination.put(file_names::attribute(index), &column.finish()?)?);
        }
        for (field, (builder, spec)) in self.vectors.into_iter().zip(&self.schema.vectors).enumerate() {
            let file = builder.finish(num_rows)?.close(file_names::vectors(field))?;
            let vectors = VectorFile::open(file.blob.clone(), spec.graph.dims, num_rows)?;
            files.push(file);
            if self.graph_min_rows.is_some_and(|least| vectors.len() >= least.max(1)) {
                let mut graph = GraphBuilder::new(&spec.graph, vectors.num_graph_nodes() as usize, vectors.extent())?;
                for slot in (0..vectors.len()).filter(|slot| vectors.is_graph_node(*slot)) {
                    if slot % 64 == 0 && stop.load(Ordering::Relaxed) {
                        return Err(SegmentError::Stopped);
                    }
                    graph.add(slot, vectors.vector(slot).unwrap_or_default())?;
                }
                match put_graph(&destination, file_names::graph(field), graph) {
                    Ok(file) => files.push(file),
                    // The field is then searched exactly, which is slower and right.
                    Err(SegmentError::Graph(error @ GraphError::Unreachable { .. })) => {
                        tracing::warn!(%error, field, "the graph cannot reach every vector and is left out");
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(BuiltSegment { num_rows, files })
    }
}

/// Checks a graph and puts it in place, without a second copy in memory where there is a directory.
fn put_graph(destination: &Destination, name: String, graph: GraphBuilder) -> Result<BuiltFile, SegmentError> {
    match destination.path(&name) {
        Some(path) => {
            graph.check()?.write_to(&path)?;
            destination.adopt(name)
        }
        None => destination.put(name, &graph.finish()?),
    }
}
