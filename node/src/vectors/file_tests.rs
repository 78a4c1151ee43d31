//! Vectors files written, read, and damaged.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::{Cursor, Seek, SeekFrom, Write};

use proptest::prelude::*;

use super::*;
use crate::mapped::Blob;

const DIMS: usize = 3;

fn params(metric: Metric, graph_element: Option<ElementType>) -> VectorFileParams {
    VectorFileParams { dims: DIMS, metric, graph_element }
}

fn write(params: VectorFileParams, rows: &BTreeMap<u32, Vec<f32>>, num_rows: u32) -> Vec<u8> {
    vector_file_in_memory(params, rows.iter().map(|(&row, vector)| (row, &vector[..])), num_rows).unwrap()
}

fn open(bytes: &[u8], num_rows: u32) -> VectorFile {
    VectorFile::open(Blob::from_bytes(bytes), DIMS, num_rows).unwrap()
}

/// Few different values, so that there are duplicates.
fn rows() -> impl Strategy<Value = BTreeMap<u32, Vec<f32>>> {
    let vector = proptest::collection::vec((1i8..4).prop_map(f32::from), DIMS);
    prop_oneof![
        proptest::collection::btree_map(0u32..60, vector.clone(), 0..40),
        proptest::collection::vec(vector, 0..40).prop_map(|vectors| (0u32..).zip(vectors).collect()),
    ]
}

proptest! {
    #[test]
    fn a_file_reads_as_the_rows_that_were_written(rows in rows(), spare in 0u32..3) {
        let num_rows = rows.keys().last().map_or(0, |row| row + 1) + spare;
        for metric in [Metric::Cosine, Metric::Dot, Metric::Euclidean] {
            let bytes = write(params(metric, Some(ElementType::BFloat16)), &rows, num_rows);
            let file = open(&bytes, num_rows);
            prop_assert_eq!((file.len() as usize, file.num_rows()), (rows.len(), num_rows));
            for (slot, (&row, vector)) in (0u32..).zip(&rows) {
                prop_assert_eq!(file.slot_of_row(row), Some(slot));
                prop_assert_eq!(file.row_of_slot(slot), Some(row));
                prop_assert_eq!(file.vector(slot), Some(&vector[..]));
                prop_assert_eq!(file.norm(slot), Some(norm(vector)));
            }
            for row in (0..num_rows + 2).filter(|row| !rows.contains_key(row)) {
                prop_assert_eq!(file.slot_of_row(row), None);
            }
            prop_assert_eq!((file.row_of_slot(file.len()), file.vector(file.len())), (None, None));
            prop_assert_eq!(file.vector(u32::MAX), None);
            prop_assert_eq!(file.max_norm(), rows.values().map(|vector| norm(vector)).fold(0.0, f32::max));
            let vectors: Vec<_> = rows.values().collect();
            let same = |a: usize, b: usize| {
                let identity = |at: usize| ElementType::BFloat16.identity(metric, vectors[at]);
                identity(a) == identity(b)
            };
            let mut num_nodes = 0;
            for slot in 0..vectors.len() {
                let is_first = (0..slot).all(|earlier| !same(earlier, slot));
                prop_assert_eq!(file.is_graph_node(slot as u32), is_first);
                if is_first {
                    num_nodes += 1;
                    let group: Vec<u32> = (slot..vectors.len()).filter(|&at| same(slot, at)).map(|at| at as u32).collect();
                    prop_assert_eq!(file.group_of(slot as u32).collect::<Vec<_>>(), group);
                }
            }
            prop_assert_eq!(file.num_graph_nodes(), num_nodes);
            prop_assert!(!file.is_graph_node(file.len()));
            prop_assert_eq!(file.group_of(file.len()).count(), 0);
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_or_reads_within_bounds(rows in rows(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let num_rows = rows.keys().last().map_or(0, |row| row + 2);
        let mut bytes = write(params(Metric::Dot, Some(ElementType::Float32)), &rows, num_rows);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let opened = VectorFile::open(Blob::from_bytes(&bytes), DIMS, num_rows);
        if at < 128 {
            prop_assert!(opened.is_err());
        } else if let Ok(file) = opened {
            for slot in 0..file.len() {
                prop_assert!(file.row_of_slot(slot).unwrap() < num_rows);
                prop_assert!(file.vector(slot).is_some() && file.norm(slot).is_some());
                prop_assert!(file.group_of(slot).all(|member| member < file.len()));
            }
        }
    }

    #[test]
    fn a_truncated_file_is_an_error(rows in rows(), at in any::<prop::sample::Index>()) {
        let num_rows = rows.keys().last().map_or(0, |row| row + 1);
        let bytes = write(params(Metric::Dot, Some(ElementType::Float32)), &rows, num_rows);
        let truncated = Blob::from_bytes(&bytes[..at.index(bytes.len())]);
        prop_assert!(VectorFile::open(truncated, DIMS, num_rows).is_err());
    }
}

#[test]
fn another_shape_is_a_mismatch() {
    let rows = BTreeMap::from([(0, vec![1.0, 2.0, 3.0])]);
    let bytes = write(params(Metric::Cosine, None), &rows, 2);
    let open = |dims, num_rows| VectorFile::open(Blob::from_bytes(&bytes), dims, num_rows);
    assert!(open(3, 2).is_ok());
    assert!(matches!(open(4, 2), Err(VectorFileError::Mismatch { .. })));
    assert!(matches!(open(3, 1), Err(VectorFileError::Mismatch { .. })));
}

#[test]
fn vectors_that_cannot_be_scored_are_refused() {
    let push = |metric, row, vector: &[f32]| {
        let mut builder = VectorFileBuilder::new(Cursor::new(Vec::new()), params(metric, None)).unwrap();
        builder.push(5, &[1.0, 0.0, 0.0]).unwrap();
        builder.push(row, vector)
    };
    assert!(push(Metric::Cosine, 6, &[1.0, 0.0, 0.0]).is_ok());
    assert!(push(Metric::Dot, 6, &[0.0; 3]).is_ok());
    for (metric, row, vector) in [
        (Metric::Cosine, 5, &[1.0f32, 0.0, 0.0][..]),
        (Metric::Cosine, 6, &[1.0, 0.0]),
        (Metric::Cosine, 6, &[0.0; 3]),
        (Metric::Cosine, 6, &[1e-30; 3]),
        (Metric::Dot, 6, &[f32::NAN, 0.0, 0.0]),
        (Metric::Euclidean, 6, &[1e30; 3]),
    ] {
        assert!(matches!(push(metric, row, vector), Err(VectorFileError::Invalid { .. })), "{metric:?} {vector:?}");
    }
    let mut builder = VectorFileBuilder::new(Cursor::new(Vec::new()), params(Metric::Dot, None)).unwrap();
    builder.push(5, &[1.0; 3]).unwrap();
    assert!(matches!(builder.finish(5), Err(VectorFileError::Invalid { row: 5, .. })));
}

#[test]
fn a_file_may_begin_within_another() {
    let mut writer = Cursor::new(Vec::new());
    writer.write_all(&[9; 64]).unwrap();
    let mut builder = VectorFileBuilder::new(writer, params(Metric::Dot, None)).unwrap();
    builder.push(0, &[1.0, 2.0, 3.0]).unwrap();
    let mut writer = builder.finish(1).unwrap();
    assert_eq!(writer.stream_position().unwrap(), writer.get_ref().len() as u64);
    writer.seek(SeekFrom::Start(0)).unwrap();
    let bytes = writer.into_inner();
    assert_eq!(bytes[..64], [9; 64]);
    assert_eq!(open(&bytes[64..], 1).vector(0), Some(&[1.0f32, 2.0, 3.0][..]));
}
