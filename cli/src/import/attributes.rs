//! Values of attributes whose types JSON lacks: times, and doubles that are written without a fraction.
//!
//! Not for checking: what is of another type goes to the server as it is, which names it.

use std::collections::BTreeMap;

use antiphon_proto::v1::{self, AttributeType, value::Kind};

/// 2^53: doubles hold every whole number up to it.
const MAX_WHOLE_DOUBLE: u64 = 1 << 53;

/// The attributes of a schema whose values JSON writes as another type.
#[derive(Debug, Default, Clone)]
pub(crate) struct Attributes(BTreeMap<String, AttributeType>);

impl Attributes {
    /// Those of a schema.
    pub(crate) fn of(schema: &v1::Schema) -> Self {
        let is_told =
            |field: &&v1::AttributeField| matches!(field.r#type(), AttributeType::Timestamp | AttributeType::Double);
        Self(schema.attributes.iter().filter(is_told).map(|field| (field.name.clone(), field.r#type())).collect())
    }

    /// Gives the values of a document their types.
    ///
    /// # Errors
    /// In words: a string that is no time, a number where there should be one, a whole number that no double holds.
    pub(crate) fn apply(&self, document: &mut v1::Document) -> Result<(), String> {
        for (name, attribute_type) in &self.0 {
            let Some(value) = document.fields.get_mut(name) else { continue };
            let values = match &mut value.kind {
                Some(Kind::List(list)) => list.values.as_mut_slice(),
                _ => std::slice::from_mut(value),
            };
            for value in values {
                apply(value, *attribute_type).map_err(|fault| format!("fields.{name}: {fault}"))?;
            }
        }
        Ok(())
    }
}

fn apply(value: &mut v1::Value, attribute_type: AttributeType) -> Result<(), String> {
    const FORM: &str = "a time is written like \"2024-05-01T12:00:00Z\"";
    match (attribute_type, &mut value.kind) {
        (AttributeType::Timestamp, Some(Kind::String(text))) => match text.parse() {
            Ok(time) => value.kind = Some(Kind::Timestamp(time)),
            Err(_) => return Err(format!("{text:?} is no time; {FORM}")),
        },
        (AttributeType::Timestamp, Some(Kind::Int64(_) | Kind::Double(_))) => {
            return Err(format!("a number is no time, since it does not say in which unit; {FORM}"));
        }
        (AttributeType::Double, Some(Kind::Int64(whole))) if whole.unsigned_abs() > MAX_WHOLE_DOUBLE => {
            return Err(format!("{whole} is beyond the whole numbers that doubles hold; write it with a fraction"));
        }
        #[allow(clippy::cast_precision_loss)] // None is lost up to there.
        (AttributeType::Double, Some(Kind::Int64(whole))) => value.kind = Some(Kind::Double(*whole as f64)),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::import::parse_document;
    use crate::output::DocumentJson;

    fn read(line: &str) -> Result<v1::Document, String> {
        let field = |name: &str, attribute_type: AttributeType| v1::AttributeField {
            name: name.to_owned(),
            r#type: attribute_type.into(),
        };
        let attributes = Attributes::of(&v1::Schema {
            attributes: vec![
                field("at", AttributeType::Timestamp),
                field("price", AttributeType::Double),
                field("year", AttributeType::Integer),
            ],
            ..v1::Schema::default()
        });
        let mut document = parse_document(line.as_bytes()).unwrap();
        attributes.apply(&mut document).map(|()| document)
    }

    fn kind(line: &str, name: &str) -> Kind {
        read(line).unwrap().fields[name].kind.clone().unwrap()
    }

    #[test]
    fn strings_of_a_time_attribute_become_times() {
        let time = |seconds, nanos| Kind::Timestamp(prost_types::Timestamp { seconds, nanos });
        for (text, expected) in [
            ("1970-01-01T00:00:01Z", time(1, 0)),
            ("1970-01-01t01:00:00.5+01:00", time(0, 500_000_000)),
            ("1969-12-31T23:59:59.999999999z", time(-1, 999_999_999)),
            ("2024-05-01", time(1_714_521_600, 0)),
            ("2024-05-01 00:00:00", time(1_714_521_600, 0)),
            ("0001-01-01T00:00:00Z", time(-62_135_596_800, 0)),
            ("9999-12-31T23:59:59Z", time(253_402_300_799, 0)),
        ] {
            assert_eq!(kind(&format!("{{\"fields\":{{\"at\":\"{text}\"}}}}"), "at"), expected, "{text}");
        }
        let Kind::List(list) = kind(r#"{"fields":{"at":["2024-05-01",null]}}"#, "at") else { panic!("no list") };
        assert_eq!(list.values[0].kind, Some(time(1_714_521_600, 0)));
        assert_eq!(list.values[1].kind, Some(Kind::Null(0)));
        // Other fields stay what they are.
        assert_eq!(kind(r#"{"fields":{"other":"2024-05-01"}}"#, "other"), Kind::String("2024-05-01".into()));
    }

    #[test]
    fn whole_numbers_of_a_double_attribute_become_doubles() {
        assert_eq!(kind(r#"{"fields":{"price":3}}"#, "price"), Kind::Double(3.0));
        assert_eq!(kind(r#"{"fields":{"price":-9007199254740992}}"#, "price"), Kind::Double(-9_007_199_254_740_992.0));
        assert_eq!(kind(r#"{"fields":{"price":2.5,"year":3}}"#, "year"), Kind::Int64(3));
        assert!(read(r#"{"fields":{"price":9007199254740993}}"#).unwrap_err().contains("fields.price"));
    }

    #[test]
    fn what_is_no_time_is_told() {
        for text in ["\"soon\"", "\"\"", "\"2024-13-01\"", "\"2024-02-30T00:00:00Z\"", "1714521600", "1.5", "[\"no\"]"]
        {
            let words = read(&format!("{{\"fields\":{{\"at\":{text}}}}}")).expect_err(text);
            assert!(words.contains("fields.at: ") && words.contains("2024-05-01T12:00:00Z"), "{text}: {words}");
        }
    }

    #[test]
    fn what_is_exported_is_read_again_as_it_was() {
        let line = r#"{"key":"a","fields":{"at":["2024-05-01T00:00:00Z","2024-05-01T00:00:00.000000001Z"],"price":3.0,"year":3}}"#;
        let document = read(line).unwrap();
        let printed = serde_json::to_string(&DocumentJson::from(&document)).unwrap();
        assert_eq!(read(&printed).unwrap(), document);
    }
}
