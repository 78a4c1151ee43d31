//! A filter as people write it on a command line: JSON after the API's message, with plain values.
//!
//! Whole numbers are int64, other numbers doubles. A value may say its type, as the API's JSON does: `{"timestamp":
//! "2024-05-01T00:00:00Z"}`, `{"double": 3}`, `{"int64": "5"}`, `{"string": "x"}`, `{"bool": true}`.

use antiphon_proto::v1::filter::Condition;
use antiphon_proto::v1::{self, value::Kind};
use serde_json::{Map, Value as Json};

/// Reads a filter.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn parse_filter(text: &str) -> Result<v1::Filter, String> {
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    filter(&json)
}

/// The one member of an object.
fn single(json: &Json) -> Option<(&str, &Json)> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(name, value)| (name.as_str(), value))
}

fn filter(json: &Json) -> Result<v1::Filter, String> {
    const KINDS: &str = "equal, any_of, range, exists, all_of, some_of or not";
    let (name, body) = single(json).ok_or_else(|| format!("a filter is an object with one member, {KINDS}"))?;
    let condition = match name {
        "equal" => {
            let body = members(body, name, &["field", "value"])?;
            Condition::Equal(v1::Equal { field: field(body, name)?, value: body.get("value").map(value).transpose()? })
        }
        "any_of" => {
            let body = members(body, name, &["field", "values"])?;
            let values = body.get("values").and_then(Json::as_array).ok_or("any_of needs a list named values")?;
            let values = values.iter().map(value).collect::<Result<_, _>>()?;
            Condition::AnyOf(v1::AnyOf { field: field(body, name)?, values })
        }
        "range" => {
            let body = members(body, name, &["field", "gt", "gte", "lt", "lte"])?;
            let bound = |name: &str| body.get(name).map(value).transpose();
            Condition::Range(v1::Range {
                field: field(body, name)?,
                gt: bound("gt")?,
                gte: bound("gte")?,
                lt: bound("lt")?,
                lte: bound("lte")?,
            })
        }
        "exists" => Condition::Exists(v1::Exists { field: field(members(body, name, &["field"])?, name)? }),
        "all_of" => Condition::AllOf(list(body, name)?),
        "some_of" => Condition::SomeOf(list(body, name)?),
        "not" => Condition::Not(Box::new(filter(body)?)),
        other => return Err(format!("`{other}` is no condition; there are {KINDS}")),
    };
    Ok(v1::Filter { condition: Some(condition) })
}

fn members<'a>(body: &'a Json, condition: &str, known: &[&str]) -> Result<&'a Map<String, Json>, String> {
    let body = body.as_object().ok_or_else(|| format!("{condition} needs an object"))?;
    match body.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{condition} has no `{name}`; it has {}", known.join(", "))),
        None => Ok(body),
    }
}

fn field(body: &Map<String, Json>, condition: &str) -> Result<String, String> {
    let name = body.get("field").and_then(Json::as_str).ok_or_else(|| format!("{condition} needs a field"))?;
    Ok(name.to_owned())
}

/// A list of filters, or the API's object around one.
fn list(body: &Json, condition: &str) -> Result<v1::FilterList, String> {
    let filters = body.as_array().or_else(|| single(body).filter(|(name, _)| *name == "filters")?.1.as_array());
    let filters = filters.ok_or_else(|| format!("{condition} needs a list of filters"))?;
    Ok(v1::FilterList { filters: filters.iter().map(filter).collect::<Result<_, _>>()? })
}

fn value(json: &Json) -> Result<v1::Value, String> {
    let kind = match json {
        Json::Bool(flag) => Kind::Bool(*flag),
        Json::String(text) => Kind::String(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Kind::Int64(whole),
            (None, Some(real)) if number.is_f64() => Kind::Double(real),
            _ => return Err(format!("the whole number {number} is beyond 64 bits with a sign")),
        },
        Json::Object(_) => typed(json)?,
        Json::Null | Json::Array(_) => return Err(format!("`{json}` is no value to compare with")),
    };
    Ok(v1::Value { kind: Some(kind) })
}

fn typed(json: &Json) -> Result<Kind, String> {
    let wrong =
        || format!("`{json}` is no value; one says its type as {{\"timestamp\": \"2024-05-01T00:00:00Z\"}} does");
    let (name, inner) = single(json).ok_or_else(wrong)?;
    let kind = match name {
        "string" => inner.as_str().map(|text| Kind::String(text.to_owned())),
        "bool" => inner.as_bool().map(Kind::Bool),
        "double" => inner.as_f64().map(Kind::Double),
        "int64" => inner.as_i64().or_else(|| inner.as_str()?.parse().ok()).map(Kind::Int64),
        "timestamp" => inner.as_str().and_then(|text| text.parse().ok()).map(Kind::Timestamp),
        _ => None,
    };
    kind.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn kind(text: &str) -> Kind {
        let filter = parse_filter(&format!("{{\"equal\":{{\"field\":\"f\",\"value\":{text}}}}}")).unwrap();
        let Some(Condition::Equal(equal)) = filter.condition else { panic!("{filter:?}") };
        equal.value.unwrap().kind.unwrap()
    }

    #[test]
    fn values_have_the_types_that_they_are_written_as() {
        assert_eq!(kind("9007199254740993"), Kind::Int64(9_007_199_254_740_993));
        assert_eq!(kind("3.0"), Kind::Double(3.0));
        assert_eq!(kind(r#"{"double":3}"#), Kind::Double(3.0));
        assert_eq!(kind(r#"{"int64":"-5"}"#), Kind::Int64(-5));
        assert_eq!(kind("true"), Kind::Bool(true));
        assert_eq!(kind(r#""x""#), Kind::String("x".into()));
        let time = prost_types::Timestamp { seconds: 1, nanos: 0 };
        assert_eq!(kind(r#"{"timestamp":"1970-01-01T00:00:01Z"}"#), Kind::Timestamp(time));
    }

    #[test]
    fn conditions_nest() {
        let text = r#"{"all_of":[{"not":{"exists":{"field":"a"}}},{"some_of":{"filters":[
            {"range":{"field":"b","gte":1,"lt":5}},{"any_of":{"field":"c","values":["x","y"]}}]}}]}"#;
        let Some(Condition::AllOf(list)) = parse_filter(text).unwrap().condition else { panic!("{text}") };
        assert!(matches!(list.filters[0].condition, Some(Condition::Not(_))));
        let Some(Condition::SomeOf(inner)) = &list.filters[1].condition else { panic!("{list:?}") };
        assert!(matches!(&inner.filters[1].condition, Some(Condition::AnyOf(any)) if any.values.len() == 2));
    }

    #[test]
    fn faults_are_named() {
        for (text, words) in [
            ("", "EOF"),
            ("{}", "one member"),
            (r#"{"equals":{}}"#, "`equals` is no condition"),
            (r#"{"equal":{"value":1}}"#, "equal needs a field"),
            (r#"{"range":{"field":"a","from":1}}"#, "range has no `from`"),
            (r#"{"any_of":{"field":"a"}}"#, "values"),
            (r#"{"equal":{"field":"a","value":null}}"#, "no value"),
            (r#"{"equal":{"field":"a","value":{"timestamp":"soon"}}}"#, "no value"),
            (r#"{"all_of":{}}"#, "list of filters"),
        ] {
            assert!(parse_filter(text).expect_err(text).contains(words), "{text}");
        }
    }
}
