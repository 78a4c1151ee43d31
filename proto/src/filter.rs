//! A filter, resolved against the attributes of a schema: what coordinators check and nodes evaluate.
//!
//! Not for evaluating. Invariant: a filter that one side resolves the other does too, to the same.

use std::ops::Bound;

use crate::attribute::{self, AttributeFault};
use crate::error::{ApiError, ErrorKind};
use crate::v1::{AttributeField, Filter, Value, filter::Condition as Sent};

/// How deep conditions nest.
const MAX_DEPTH: usize = 16;
/// Most conditions of a filter, those that hold others included.
const MAX_CONDITIONS: usize = 1_024;
/// Most values of a filter.
const MAX_VALUES: usize = 10_000;

/// A condition on rows. Attributes are named by their index in the schema, values by their sortable bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// One element is one of the values, which ascend.
    AnyOf {
        /// The attribute.
        attribute: usize,
        /// Distinct.
        values: Vec<Vec<u8>>,
    },
    /// One element lies between the bounds.
    Range {
        /// The attribute.
        attribute: usize,
        /// Where it begins.
        low: Bound<Vec<u8>>,
        /// Where it ends.
        high: Bound<Vec<u8>>,
    },
    /// The attribute is there and not null.
    Exists {
        /// The attribute.
        attribute: usize,
    },
    /// All hold.
    AllOf(Vec<Condition>),
    /// At least one holds.
    SomeOf(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
}

impl Condition {
    /// About the bytes of memory that it takes.
    pub fn size_bytes(&self) -> usize {
        let inner = match self {
            Self::AnyOf { values, .. } => values.iter().map(|value| value.len() + size_of::<Vec<u8>>()).sum(),
            Self::Range { low, high, .. } => {
                let len = |bound: &Bound<Vec<u8>>| match bound {
                    Bound::Included(value) | Bound::Excluded(value) => value.len(),
                    Bound::Unbounded => 0,
                };
                len(low) + len(high)
            }
            Self::Exists { .. } => 0,
            Self::AllOf(conditions) | Self::SomeOf(conditions) => conditions.iter().map(Self::size_bytes).sum(),
            Self::Not(condition) => condition.size_bytes(),
        };
        size_of::<Self>() + inner
    }
}

/// Resolves a filter. `path` is where the request holds it.
///
/// # Errors
/// FIELD_UNKNOWN, FIELD_TYPE, NOT_FINITE for NaN; ARGUMENT_INVALID where a condition is not set or the filter passes a
/// bound. Each names the place.
pub fn resolve(filter: &Filter, attributes: &[AttributeField], path: &str) -> Result<Condition, ApiError> {
    Resolver { attributes, conditions: 0, values: 0 }.condition(filter, path, MAX_DEPTH)
}

struct Resolver<'a> {
    attributes: &'a [AttributeField],
    conditions: usize,
    values: usize,
}

fn invalid(path: &str, words: impl Into<String>) -> ApiError {
    ApiError::field(ErrorKind::ArgumentInvalid, path, words)
}

impl Resolver<'_> {
    fn condition(&mut self, filter: &Filter, path: &str, depth: usize) -> Result<Condition, ApiError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(invalid(path, format!("conditions nest more than {MAX_DEPTH} deep")));
        };
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            return Err(invalid(path, format!("the filter has more than {MAX_CONDITIONS} conditions")));
        }
        match &filter.condition {
            None => Err(invalid(path, "no condition is set")),
            Some(Sent::Equal(equal)) => {
                let path = format!("{path}.equal");
                let attribute = self.attribute(&equal.field, &path)?;
                let value = self.value(equal.value.as_ref(), attribute, &format!("{path}.value"))?;
                Ok(Condition::AnyOf { attribute, values: vec![value] })
            }
            Some(Sent::AnyOf(any_of)) => {
                let path = format!("{path}.any_of");
                let attribute = self.attribute(&any_of.field, &path)?;
                let values = any_of.values.iter().enumerate();
                let mut values = values
                    .map(|(index, value)| self.value(Some(value), attribute, &format!("{path}.values[{index}]")))
                    .collect::<Result<Vec<_>, _>>()?;
                values.sort_unstable();
                values.dedup();
                Ok(Condition::AnyOf { attribute, values })
            }
            Some(Sent::Range(range)) => {
                let path = format!("{path}.range");
                let attribute = self.attribute(&range.field, &path)?;
                let mut bound = |value: &Option<Value>, name: &str| {
                    value
                        .as_ref()
                        .map(|value| self.value(Some(value), attribute, &format!("{path}.{name}")))
                        .transpose()
                };
                let (gt, gte) = (bound(&range.gt, "gt")?, bound(&range.gte, "gte")?);
                let (lt, lte) = (bound(&range.lt, "lt")?, bound(&range.lte, "lte")?);
                let low = match (gt, gte) {
                    (Some(gt), Some(gte)) if gte > gt => Bound::Included(gte),
                    (Some(gt), _) => Bound::Excluded(gt),
                    (None, Some(gte)) => Bound::Included(gte),
                    (None, None) => Bound::Unbounded,
                };
                let high = match (lt, lte) {
                    (Some(lt), Some(lte)) if lte < lt => Bound::Included(lte),
                    (Some(lt), _) => Bound::Excluded(lt),
                    (None, Some(lte)) => Bound::Included(lte),
                    (None, None) => Bound::Unbounded,
                };
                Ok(Condition::Range { attribute, low, high })
            }
            Some(Sent::Exists(exists)) => {
                let attribute = self.attribute(&exists.field, &format!("{path}.exists"))?;
                Ok(Condition::Exists { attribute })
            }
            Some(Sent::AllOf(list)) => {
                Ok(Condition::AllOf(self.conditions(&list.filters, &format!("{path}.all_of"), depth)?))
            }
            Some(Sent::SomeOf(list)) => {
                Ok(Condition::SomeOf(self.conditions(&list.filters, &format!("{path}.some_of"), depth)?))
            }
            Some(Sent::Not(filter)) => {
                Ok(Condition::Not(Box::new(self.condition(filter, &format!("{path}.not"), depth)?)))
            }
        }
    }

    fn conditions(&mut self, filters: &[Filter], path: &str, depth: usize) -> Result<Vec<Condition>, ApiError> {
        let filters = filters.iter().enumerate();
        filters.map(|(index, filter)| self.condition(filter, &format!("{path}.filters[{index}]"), depth)).collect()
    }

    fn attribute(&self, name: &str, path: &str) -> Result<usize, ApiError> {
        self.attributes.iter().position(|attribute| attribute.name == name).ok_or_else(|| {
            let words = format!("the schema has no attribute {name:?}");
            ApiError::field(ErrorKind::FieldUnknown, format!("{path}.field"), words)
        })
    }

    fn value(&mut self, value: Option<&Value>, attribute: usize, path: &str) -> Result<Vec<u8>, ApiError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(invalid(path, format!("the filter has more than {MAX_VALUES} values")));
        }
        let AttributeField { name, .. } = &self.attributes[attribute];
        let unset = Value { kind: None };
        attribute::sortable(value.unwrap_or(&unset), self.attributes[attribute].r#type())
            .map_err(|fault| ApiError::field(kind_of(&fault), path, format!("attribute {name:?}: {fault}")))
    }
}

/// The kind that callers are told of an attribute's fault.
pub fn kind_of(fault: &AttributeFault) -> ErrorKind {
    match fault {
        AttributeFault::Type { .. } => ErrorKind::FieldType,
        AttributeFault::NotANumber => ErrorKind::NotFinite,
        AttributeFault::TooLong { .. } | AttributeFault::Nanos => ErrorKind::ArgumentInvalid,
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
