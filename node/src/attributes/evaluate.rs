//! A filter's rows in a segment.

use antiphon_proto::filter::Condition;

use super::{Column, RowSet};

/// The rows, living and dead, of a segment that meet a condition; `None` where `stop`, asked at every condition, says so.
/// A condition on an attribute that has no column holds for no row.
pub fn evaluate(condition: &Condition, columns: &[Column], num_rows: u32, stop: &dyn Fn() -> bool) -> Option<RowSet> {
    if stop() {
        return None;
    }
    let mut rows = RowSet::none(num_rows);
    match condition {
        Condition::AnyOf { attribute, values } => {
            if let Some(column) = columns.get(*attribute) {
                values.iter().for_each(|value| column.add_equal(value, &mut rows));
            }
        }
        Condition::Range { attribute, low, high } => {
            if let Some(column) = columns.get(*attribute) {
                column.add_range(low, high, &mut rows);
            }
        }
        Condition::Exists { attribute } => {
            if let Some(column) = columns.get(*attribute) {
                column.add_present(&mut rows);
            }
        }
        Condition::AllOf(conditions) => {
            rows = RowSet::all(num_rows);
            for condition in conditions {
                rows.intersect(&evaluate(condition, columns, num_rows, stop)?);
            }
        }
        Condition::SomeOf(conditions) => {
            for condition in conditions {
                rows.unite(&evaluate(condition, columns, num_rows, stop)?);
            }
        }
        Condition::Not(condition) => {
            rows = evaluate(condition, columns, num_rows, stop)?;
            rows.invert();
        }
    }
    Some(rows)
}
