//! Names of a segment's files. Layout: docs/formats/segment.md.

/// Version of the files' formats.
pub const FORMAT_VERSION: u32 = 2;
/// The rows archive.
pub(super) const ROWS: &str = "rows";
/// The payload blocks.
pub(super) const PAYLOAD: &str = "payload";
/// The text index, where the schema has text fields.
pub(super) const TEXT: &str = "text";

/// The column of an attribute.
pub(super) fn attribute(attribute: usize) -> String {
    format!("attribute-{attribute}")
}

/// The vectors of a field.
pub(super) fn vectors(field: usize) -> String {
    format!("vectors-{field}")
}

/// The graph of a field, where the segment is large enough to have one.
pub(super) fn graph(field: usize) -> String {
    format!("graph-{field}")
}
