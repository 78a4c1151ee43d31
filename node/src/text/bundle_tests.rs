//! Bundles: the same for the same documents, and never trusted when damaged.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::{TextError, TextFieldSpec, TextIndex, TextIndexBuilder, bundle};
use crate::mapped::Blob;

fn specs(fields: &[(&str, &str)]) -> Vec<TextFieldSpec> {
    fields.iter().map(|(name, analyzer)| TextFieldSpec { name: (*name).into(), analyzer: (*analyzer).into() }).collect()
}

fn two_fields() -> Vec<TextFieldSpec> {
    specs(&[("-title", "en"), ("body", "")])
}

fn build(num_rows: usize) -> Vec<u8> {
    let mut builder = TextIndexBuilder::new(&two_fields()).unwrap();
    for row in 0..num_rows {
        let body = format!("row {row} of some");
        builder.add(&[vec![], vec![body.as_str(), "more words"]]).unwrap();
    }
    builder.finish().unwrap()
}

fn open(bytes: &[u8], num_rows: u32) -> Result<TextIndex, TextError> {
    TextIndex::open(Blob::from_bytes(bytes), &two_fields(), num_rows)
}

#[test]
fn the_same_documents_give_the_same_bytes() {
    assert_eq!(build(300), build(300));
}

#[test]
fn token_counts_are_exact_over_all_values_of_a_field() {
    let mut builder = TextIndexBuilder::new(&two_fields()).unwrap();
    assert_eq!(builder.add(&[vec!["one two", "", "three"], vec![]]).unwrap(), [3, 0]);
    assert_eq!(builder.add(&[vec![], vec!["a"]]).unwrap(), [0, 1]);
    assert!(matches!(builder.add(&[vec![]]), Err(TextError::FieldCount { expected: 2, found: 1 })));
    let bundle = builder.finish().unwrap();
    assert_eq!(open(&bundle, 2).unwrap().doc_freq(0, "three").unwrap(), 1);
}

#[test]
fn an_index_may_be_empty() {
    let index = open(&build(0), 0).unwrap();
    assert_eq!((index.num_rows(), index.doc_freq(1, "row").unwrap()), (0, 0));
    let none = TextIndexBuilder::new(&[]).unwrap().finish().unwrap();
    assert!(TextIndex::open(Blob::from_bytes(&none), &[], 0).is_ok());
}

#[test]
fn an_index_of_something_else_is_not_opened() {
    let bytes = build(5);
    assert!(open(&bytes, 5).is_ok());
    assert!(matches!(open(&bytes, 4), Err(TextError::Mismatch(_))));
    for other in
        [specs(&[("-title", "en")]), specs(&[("-title", "en"), ("text", "")]), specs(&[("-title", "de"), ("body", "")])]
    {
        assert!(matches!(TextIndex::open(Blob::from_bytes(&bytes), &other, 5), Err(TextError::Mismatch(_))));
    }
    assert!(matches!(TextIndexBuilder::new(&specs(&[("a", "xx")])), Err(TextError::UnknownAnalyzer(_))));
    assert!(matches!(TextIndexBuilder::new(&specs(&[("a", ""), ("a", "")])), Err(TextError::DuplicateField(_))));
}

#[test]
fn a_damaged_bundle_is_an_error() {
    let bytes = build(50);
    for len in (0..bytes.len()).step_by(7).chain(bytes.len() - 9..bytes.len()) {
        assert!(matches!(open(&bytes[..len], 50), Err(TextError::Damaged(_))), "{len} bytes");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(open(&longer, 50), Err(TextError::Damaged(_))));
    let head = bytes.len()
        - bundle::files(&Blob::from_bytes(&bytes)).unwrap().iter().map(|(_, file)| file.len()).sum::<usize>();
    for at in 0..head {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            assert!(matches!(open(&damaged, 50), Err(TextError::Damaged(_))), "byte {at}");
        }
    }
}
