//! What can go wrong with a segment.

use crate::attributes::ColumnError;
use crate::graph::GraphError;
use crate::mapped::MapError;
use crate::text::TextError;
use crate::vectors::{VectorError, VectorFileError};

/// Why a segment could not be built, opened or read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// A file could not be read or written.
    #[error("a segment file could not be read or written")]
    Io(#[from] std::io::Error),
    /// A file is not there or not the one that the manifest names.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The rows archive is damaged.
    #[error("the rows of a segment are damaged")]
    Rows(#[source] rkyv::rancor::Error),
    /// The text index is damaged, or could not be built.
    #[error("the text index of a segment failed")]
    Text(#[from] TextError),
    /// A vectors file is damaged, or could not be written.
    #[error("a vectors file of a segment failed")]
    Vectors(#[from] VectorFileError),
    /// A vector search failed.
    #[error("a vector search failed")]
    VectorSearch(#[from] VectorError),
    /// A graph is damaged, or could not be built.
    #[error("a graph of a segment failed")]
    Graph(#[from] GraphError),
    /// An attribute's column is damaged, or could not be built.
    #[error("an attribute of a segment failed")]
    Attribute(#[from] ColumnError),
    /// A stored document cannot be decoded.
    #[error("a stored document cannot be decoded")]
    Document(#[from] prost::DecodeError),
    /// Files of one segment do not fit together.
    #[error("{0}")]
    Mismatch(&'static str),
    /// More than the format holds.
    #[error("a segment would be larger than the format allows")]
    TooLarge,
    /// The node is stopping, or nobody waits any more.
    #[error("stopped")]
    Stopped,
}

impl SegmentError {
    /// Whether the work was broken off on purpose.
    pub fn is_stopped(&self) -> bool {
        matches!(
            self,
            SegmentError::Stopped
                | SegmentError::Text(TextError::Stopped)
                | SegmentError::VectorSearch(VectorError::Stopped)
        )
    }

    /// Whether a disk is full.
    pub fn is_disk_full(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<std::io::Error>()
                && error.kind() == std::io::ErrorKind::StorageFull
            {
                return true;
            }
            cause = error.source();
        }
        false
    }
}
