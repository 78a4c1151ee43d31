//! Filters against a scalar model: each row's values compared one by one.
#![allow(clippy::unwrap_used)]

use std::ops::Bound;

use antiphon_proto::filter::Condition;
use antiphon_proto::v1::{AttributeType, Value, ValueList, value::Kind};
use proptest::prelude::*;

use super::{Column, ColumnBuilder, RowSet, evaluate};
use crate::mapped::Blob;

/// A row's value of one attribute: nothing, null, or elements.
type Row = Option<Option<Vec<i64>>>;

fn value(number: i64) -> Value {
    Value { kind: Some(Kind::Int64(number)) }
}

fn bytes(number: i64) -> Vec<u8> {
    antiphon_proto::attribute::sortable(&value(number), AttributeType::Integer).unwrap()
}

fn stored(rows: &[Row]) -> Vec<u8> {
    let mut builder = ColumnBuilder::new(AttributeType::Integer);
    for (number, row) in (0u32..).zip(rows) {
        match row {
            None => {}
            Some(None) => builder.add(number, &Value { kind: Some(Kind::Null(0)) }).unwrap(),
            Some(Some(elements)) if elements.len() == 1 => builder.add(number, &value(elements[0])).unwrap(),
            Some(Some(elements)) => {
                let values = elements.iter().copied().map(value).collect();
                builder.add(number, &Value { kind: Some(Kind::List(ValueList { values })) }).unwrap();
            }
        }
    }
    builder.finish().unwrap()
}

fn open(bytes: &[u8], num_rows: usize) -> Column {
    Column::open(Blob::from_bytes(bytes), num_rows as u32, AttributeType::Integer).unwrap()
}

/// Whether a row meets a condition, by definition.
fn meets(condition: &Condition, columns: &[Vec<Row>], row: usize) -> bool {
    let elements = |attribute: usize| match &columns[attribute][row] {
        Some(Some(elements)) => elements.iter().map(|number| bytes(*number)).collect(),
        _ => Vec::new(),
    };
    match condition {
        Condition::AnyOf { attribute, values } => elements(*attribute).iter().any(|element| values.contains(element)),
        Condition::Range { attribute, low, high } => elements(*attribute).iter().any(|element| {
            let above = match low {
                Bound::Included(low) => element >= low,
                Bound::Excluded(low) => element > low,
                Bound::Unbounded => true,
            };
            let below = match high {
                Bound::Included(high) => element <= high,
                Bound::Excluded(high) => element < high,
                Bound::Unbounded => true,
            };
            above && below
        }),
        Condition::Exists { attribute } => matches!(&columns[*attribute][row], Some(Some(_))),
        Condition::AllOf(conditions) => conditions.iter().all(|condition| meets(condition, columns, row)),
        Condition::SomeOf(conditions) => conditions.iter().any(|condition| meets(condition, columns, row)),
        Condition::Not(condition) => !meets(condition, columns, row),
    }
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-4i64..4, Just(i64::MIN), Just(i64::MAX), Just((1 << 53) + 1), Just(1 << 53)]
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        number().prop_map(|number| Bound::Included(bytes(number))),
        number().prop_map(|number| Bound::Excluded(bytes(number))),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let attribute = 0usize..2;
    let leaf = prop_oneof![
        (attribute.clone(), prop::collection::btree_set(number(), 0..4)).prop_map(|(attribute, numbers)| {
            Condition::AnyOf { attribute, values: numbers.into_iter().map(bytes).collect() }
        }),
        (attribute.clone(), bound(), bound()).prop_map(|(attribute, low, high)| Condition::Range {
            attribute,
            low,
            high
        }),
        attribute.prop_map(|attribute| Condition::Exists { attribute }),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Condition::AllOf),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Condition::SomeOf),
            inner.prop_map(|condition| Condition::Not(Box::new(condition))),
        ]
    })
}

fn rows(len: usize) -> impl Strategy<Value = Vec<Row>> {
    let row = prop::option::of(prop::option::of(prop::collection::vec(number(), 0..4)));
    prop::collection::vec(row, len)
}

proptest! {
    #[test]
    fn a_filter_finds_the_rows_of_the_model(
        (first, second) in (0usize..150).prop_flat_map(|len| (rows(len), rows(len))),
        condition in condition(),
    ) {
        let num_rows = first.len();
        let columns = [open(&stored(&first), num_rows), open(&stored(&second), num_rows)];
        let found = evaluate(&condition, &columns, num_rows as u32, &|| false).unwrap();
        let model: Vec<Vec<Row>> = vec![first, second];
        let expected: Vec<u32> =
            (0..num_rows).filter(|row| meets(&condition, &model, *row)).map(|row| row as u32).collect();
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(found.len() as usize, expected.len());
        prop_assert!((0..num_rows as u32 + 70).all(|row| found.contains(row) == expected.contains(&row)));
    }
}

#[test]
fn a_set_that_is_turned_over_twice_is_itself() {
    for num_rows in [0, 1, 63, 64, 65, 1_000] {
        let mut set = RowSet::none(num_rows);
        (0..num_rows + 9).step_by(3).for_each(|row| set.insert(row));
        let before = set.clone();
        set.invert();
        assert_eq!(set.len() + before.len(), num_rows);
        set.invert();
        assert_eq!(set, before);
        assert_eq!(RowSet::all(num_rows).len(), num_rows);
    }
}

#[test]
fn an_evaluation_stops() {
    assert_eq!(evaluate(&Condition::AllOf(Vec::new()), &[], 8, &|| true), None);
}

#[test]
fn damage_is_an_error_or_harmless_and_no_panic() {
    let rows: Vec<Row> = (0..40).map(|row| Some(Some(vec![row % 7, row]))).collect();
    let good = stored(&rows);
    let everything = Condition::Range { attribute: 0, low: Bound::Unbounded, high: Bound::Unbounded };
    let conditions = [everything, Condition::AnyOf { attribute: 0, values: vec![bytes(3)] }];
    let try_out = |bytes: &[u8]| {
        if let Ok(column) = Column::open(Blob::from_bytes(bytes), 40, AttributeType::Integer) {
            for condition in &conditions {
                let found = evaluate(condition, std::slice::from_ref(&column), 40, &|| false).unwrap();
                assert!(found.iter().all(|row| row < 40));
            }
        }
    };
    (0..good.len()).for_each(|len| try_out(&good[..len]));
    for at in 0..good.len() {
        for mask in [0xff, 1] {
            let mut bytes = good.clone();
            bytes[at] ^= mask;
            try_out(&bytes);
        }
    }
    assert!(Column::open(Blob::from_bytes(&good), 39, AttributeType::Integer).is_err());
    assert!(Column::open(Blob::from_bytes(&good), 40, AttributeType::Double).is_err());
}
