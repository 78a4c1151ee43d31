//! Filters: short ways to write them, random ones, and what they mean by definition.

use antiphon_proto::v1::filter::Condition;
use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::*;

use crate::random::Random;

/// The attributes that [`Random::attributes`] fills.
pub fn attributes() -> Vec<AttributeField> {
    [
        ("tag", AttributeType::String),
        ("size", AttributeType::Integer),
        ("rate", AttributeType::Double),
        ("free", AttributeType::Boolean),
        ("seen", AttributeType::Timestamp),
    ]
    .map(|(name, of)| AttributeField { name: name.into(), r#type: of.into() })
    .into()
}

pub fn filter(condition: Condition) -> Filter {
    Filter { condition: Some(condition) }
}

pub fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

pub fn equal(field: &str, kind: Kind) -> Filter {
    filter(Condition::Equal(Equal { field: field.into(), value: Some(value(kind)) }))
}

pub fn not(inner: Filter) -> Filter {
    filter(Condition::Not(Box::new(inner)))
}

/// Whether a document meets a filter, by definition.
pub fn meets(filter: &Filter, document: &Document) -> bool {
    let elements = |field: &str| match document.fields.get(field).and_then(|value| value.kind.clone()) {
        None | Some(Kind::Null(_)) => Vec::new(),
        Some(Kind::List(list)) => list.values,
        Some(kind) => vec![value(kind)],
    };
    match filter.condition.as_ref().unwrap() {
        Condition::Equal(Equal { field, value }) => {
            elements(field).iter().any(|element| order(element, value.as_ref().unwrap()).is_eq())
        }
        Condition::AnyOf(AnyOf { field, values }) => {
            elements(field).iter().any(|element| values.iter().any(|value| order(element, value).is_eq()))
        }
        Condition::Range(Range { field, gt, gte, lt, lte }) => elements(field).iter().any(|element| {
            gt.as_ref().is_none_or(|bound| order(element, bound).is_gt())
                && gte.as_ref().is_none_or(|bound| order(element, bound).is_ge())
                && lt.as_ref().is_none_or(|bound| order(element, bound).is_lt())
                && lte.as_ref().is_none_or(|bound| order(element, bound).is_le())
        }),
        Condition::Exists(Exists { field }) => {
            let kind = document.fields.get(field).and_then(|value| value.kind.as_ref());
            !matches!(kind, None | Some(Kind::Null(_)))
        }
        Condition::AllOf(list) => list.filters.iter().all(|filter| meets(filter, document)),
        Condition::SomeOf(list) => list.filters.iter().any(|filter| meets(filter, document)),
        Condition::Not(filter) => !meets(filter, document),
    }
}

fn order(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a.kind.as_ref().unwrap(), b.kind.as_ref().unwrap()) {
        (Kind::String(a), Kind::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Kind::Int64(a), Kind::Int64(b)) => a.cmp(b),
        (Kind::Double(a), Kind::Double(b)) => a.partial_cmp(b).unwrap(),
        (Kind::Bool(a), Kind::Bool(b)) => a.cmp(b),
        (Kind::Timestamp(a), Kind::Timestamp(b)) => (a.seconds, a.nanos).cmp(&(b.seconds, b.nanos)),
        (a, b) => panic!("{a:?} and {b:?} are of two types"),
    }
}

impl Random {
    fn attribute_value(&mut self, field: &str) -> Value {
        let time = |seconds, nanos| Kind::Timestamp(prost_types::Timestamp { seconds, nanos });
        value(match field {
            "tag" => Kind::String(self.pick(&["", "a", "b", "ab", "Ä", "北京"]).into()),
            "size" => Kind::Int64(self.pick(&[i64::MIN, -1, 0, 1, 2, 3, (1 << 53), (1 << 53) + 1, i64::MAX])),
            "rate" => Kind::Double(self.pick(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 0.5, 2.0])),
            "free" => Kind::Bool(self.chance(0.5)),
            _ => [time(-1, 999_999_999), time(0, 0), time(0, 1), time(1_700_000_000, 0)][self.below(4)].clone(),
        })
    }

    /// Gives a document attributes: most one value, some a list, null, or none.
    pub fn attributes(&mut self, document: &mut Document) {
        for AttributeField { name, .. } in attributes() {
            if self.chance(0.2) {
                continue;
            }
            let held = if self.chance(0.1) {
                value(Kind::Null(0))
            } else if self.chance(0.3) {
                let values = (0..self.below(4)).map(|_| self.attribute_value(&name)).collect();
                value(Kind::List(ValueList { values }))
            } else {
                self.attribute_value(&name)
            };
            document.fields.insert(name, held);
        }
    }

    /// A filter of at most so many levels.
    pub fn filter(&mut self, levels: usize) -> Filter {
        let field = self.pick(&["tag", "size", "rate", "free", "seen"]);
        let kinds = if levels > 1 { 7 } else { 4 };
        filter(match self.below(kinds) {
            0 => Condition::Equal(Equal { field: field.into(), value: Some(self.attribute_value(field)) }),
            1 => {
                let values = (0..self.below(4)).map(|_| self.attribute_value(field)).collect();
                Condition::AnyOf(AnyOf { field: field.into(), values })
            }
            2 => {
                let mut bound = || self.chance(0.4).then(|| self.attribute_value(field));
                Condition::Range(Range { field: field.into(), gt: bound(), gte: bound(), lt: bound(), lte: bound() })
            }
            3 => Condition::Exists(Exists { field: field.into() }),
            4 => Condition::Not(Box::new(self.filter(levels - 1))),
            kind => {
                let list = FilterList { filters: (0..self.below(4)).map(|_| self.filter(levels - 1)).collect() };
                if kind == 5 { Condition::AllOf(list) } else { Condition::SomeOf(list) }
            }
        })
    }
}
