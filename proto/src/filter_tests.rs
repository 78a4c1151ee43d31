//! Filters against a schema: what is resolved, and what is refused with which words.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::v1::{AnyOf, AttributeType, Equal, Exists, FilterList, Range, value::Kind};

fn attributes() -> Vec<AttributeField> {
    [("section", AttributeType::String), ("size", AttributeType::Integer), ("rate", AttributeType::Double)]
        .map(|(name, of)| AttributeField { name: name.into(), r#type: of.into() })
        .into()
}

fn filter(condition: Sent) -> Filter {
    Filter { condition: Some(condition) }
}

fn value(kind: Kind) -> Option<Value> {
    Some(Value { kind: Some(kind) })
}

fn equal(field: &str, kind: Kind) -> Filter {
    filter(Sent::Equal(Equal { field: field.into(), value: value(kind) }))
}

fn outcome(filter: &Filter) -> (ErrorKind, String) {
    let error = resolve(filter, &attributes(), "options.filter").unwrap_err();
    (error.kind(), error.violations()[0].field.clone())
}

#[test]
fn faults_name_their_place() {
    let unknown = outcome(&filter(Sent::Exists(Exists { field: "colour".into() })));
    assert_eq!(unknown, (ErrorKind::FieldUnknown, "options.filter.exists.field".into()));
    let wrong = equal("size", Kind::Double(1.0));
    let list = filter(Sent::AllOf(FilterList { filters: vec![equal("size", Kind::Int64(1)), wrong] }));
    let negated = filter(Sent::Not(Box::new(list)));
    let place = "options.filter.not.all_of.filters[1].equal.value";
    assert_eq!(outcome(&negated), (ErrorKind::FieldType, place.into()));
    assert_eq!(outcome(&equal("rate", Kind::Double(f64::NAN))).0, ErrorKind::NotFinite);
    assert_eq!(outcome(&equal("section", Kind::Null(0))).0, ErrorKind::FieldType);
    let unset = filter(Sent::Equal(Equal { field: "size".into(), value: None }));
    assert_eq!(outcome(&unset).0, ErrorKind::FieldType);
    assert_eq!(outcome(&Filter { condition: None }).0, ErrorKind::ArgumentInvalid);
}

#[test]
fn depth_conditions_and_values_are_bounded() {
    let nested =
        |levels: usize| (1..levels).fold(equal("size", Kind::Int64(1)), |inner, _| filter(Sent::Not(Box::new(inner))));
    assert!(resolve(&nested(16), &attributes(), "f").is_ok());
    assert_eq!(outcome(&nested(17)).0, ErrorKind::ArgumentInvalid);
    let some = |count| filter(Sent::SomeOf(FilterList { filters: vec![equal("size", Kind::Int64(1)); count] }));
    assert!(resolve(&some(1_023), &attributes(), "f").is_ok());
    assert_eq!(outcome(&some(1_024)).0, ErrorKind::ArgumentInvalid);
    let any = |count| {
        let values = vec![Value { kind: Some(Kind::Int64(3)) }; count];
        filter(Sent::AnyOf(AnyOf { field: "size".into(), values }))
    };
    assert!(resolve(&any(10_000), &attributes(), "f").is_ok());
    assert_eq!(outcome(&any(10_001)).0, ErrorKind::ArgumentInvalid);
}

#[test]
fn the_tighter_of_two_bounds_binds() {
    let range = |gt: Option<i64>, gte: Option<i64>| {
        let number = |n: Option<i64>| n.and_then(|n| value(Kind::Int64(n)));
        let sent = Range { field: "size".into(), gt: number(gt), gte: number(gte), lt: None, lte: None };
        match resolve(&filter(Sent::Range(sent)), &attributes(), "f").unwrap() {
            Condition::Range { low, .. } => low,
            other => panic!("{other:?}"),
        }
    };
    let bytes = |n| attribute::sortable(&value(Kind::Int64(n)).unwrap(), AttributeType::Integer).unwrap();
    assert_eq!(range(Some(1), Some(2)), Bound::Included(bytes(2)));
    assert_eq!(range(Some(2), Some(2)), Bound::Excluded(bytes(2)));
    assert_eq!(range(None, None), Bound::Unbounded);
}
