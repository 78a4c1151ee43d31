//! Queries of one search as people write them: JSON after the API's messages, with vectors as plain lists.

use antiphon_proto::{v1, vector};
use serde::Deserialize;
use serde_json::Value as Json;

/// One query of several.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    vector: Option<Vec<f32>>,
    vector_field: String,
    text: Option<String>,
    text_fields: Vec<String>,
    keyword: Option<Keyword>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Keyword {
    operator: Operator,
    max_terms: u32,
    min_term_chars: u32,
    syntax: Syntax,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
enum Operator {
    #[default]
    #[serde(rename = "OR", alias = "OPERATOR_OR", alias = "or")]
    Or,
    #[serde(rename = "AND", alias = "OPERATOR_AND", alias = "and")]
    And,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
enum Syntax {
    #[default]
    #[serde(rename = "PLAIN", alias = "SYNTAX_PLAIN", alias = "plain")]
    Plain,
    #[serde(rename = "QUERY", alias = "SYNTAX_QUERY", alias = "query")]
    Query,
}

impl From<Keyword> for v1::Keyword {
    fn from(keyword: Keyword) -> Self {
        let operator = match keyword.operator {
            Operator::Or => v1::Operator::Or,
            Operator::And => v1::Operator::And,
        };
        let syntax = match keyword.syntax {
            Syntax::Plain => v1::Syntax::Plain,
            Syntax::Query => v1::Syntax::Query,
        };
        Self {
            operator: operator.into(),
            max_terms: keyword.max_terms,
            min_term_chars: keyword.min_term_chars,
            syntax: syntax.into(),
        }
    }
}

/// Reads one query.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn parse_query(text: &str) -> Result<Query, String> {
    query(serde_json::from_str(text).map_err(|error| error.to_string())?)
}

/// Reads a list of queries.
///
/// # Errors
/// What is wrong with it, in words, and with which of them.
pub(crate) fn parse_queries(text: &str) -> Result<Vec<Query>, String> {
    let list: Vec<Json> = serde_json::from_str(text).map_err(|error| format!("is no JSON list of queries: {error}"))?;
    if list.is_empty() {
        return Err("has no query".to_owned());
    }
    let read = |(place, json)| query(json).map_err(|fault| format!("queries[{place}]: {fault}"));
    list.into_iter().enumerate().map(read).collect()
}

fn query(json: Json) -> Result<Query, String> {
    // A struct could also be read from a JSON list.
    if !json.is_object() {
        return Err(r#"a query is an object like {"text": "oxygen", "text_fields": ["title"]}"#.to_owned());
    }
    serde_json::from_value(json).map_err(|error| error.to_string())
}

impl Query {
    /// Its text, if it has one.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// As a query by a vector, by keywords, or by both.
    pub(crate) fn hybrid(&self) -> v1::HybridQuery {
        v1::HybridQuery {
            vector: self.vector.as_deref().map(vector::to_proto),
            vector_field: self.vector_field.clone(),
            text: self.text.clone(),
            text_fields: self.text_fields.clone(),
            keyword: self.keyword.map(Into::into),
        }
    }

    /// As a query by a text's meaning and words.
    ///
    /// # Errors
    /// In words: it has no text, or a vector.
    pub(crate) fn hybrid_text(&self) -> Result<v1::HybridTextQuery, String> {
        Ok(v1::HybridTextQuery {
            text: self.text_to_embed()?,
            vector_field: self.vector_field.clone(),
            text_fields: self.text_fields.clone(),
            keyword: self.keyword.map(Into::into),
        })
    }

    /// As a query by a text's meaning.
    ///
    /// # Errors
    /// As above, and parameters of keywords.
    pub(crate) fn embedded_text(&self) -> Result<v1::TextQuery, String> {
        if !self.text_fields.is_empty() || self.keyword.is_some() {
            return Err("has text_fields or keyword, and --embed-only searches by meaning alone".to_owned());
        }
        Ok(v1::TextQuery { text: self.text_to_embed()?, vector_field: self.vector_field.clone() })
    }

    fn text_to_embed(&self) -> Result<String, String> {
        match (&self.text, &self.vector) {
            (Some(text), None) => Ok(text.clone()),
            (Some(_), Some(_)) => Err("has a vector, and the server is to make it".to_owned()),
            (None, _) => Err("has no text that the server could embed".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn queries_become_those_of_the_api() {
        let text = r#"[{"vector":[1,0.5],"vector_field":"v"},{"text":"red","text_fields":["t"],"keyword":{"operator":"AND",
            "syntax":"SYNTAX_QUERY"}},{"text":"","vector":[]}]"#;
        let queries: Vec<_> = parse_queries(text).unwrap().iter().map(Query::hybrid).collect();
        assert_eq!(vector::components(queries[0].vector.as_ref().unwrap()).unwrap(), [1.0, 0.5]);
        assert_eq!((queries[0].vector_field.as_str(), &queries[0].text), ("v", &None));
        let keyword = v1::Keyword { operator: 2, syntax: 2, ..v1::Keyword::default() };
        assert_eq!((queries[1].text.as_deref(), queries[1].keyword), (Some("red"), Some(keyword)));
        assert_eq!((&queries[1].vector, &queries[1].text_fields[..]), (&None, &["t".to_owned()][..]));
        assert_eq!((queries[2].text.as_deref(), queries[2].vector.is_some()), (Some(""), true));
    }

    #[test]
    fn what_is_to_be_embedded_is_a_text_alone() {
        let query = |text: &str| parse_query(text).unwrap();
        assert_eq!(query(r#"{"text":"a"}"#).embedded_text().unwrap().text, "a");
        assert_eq!(query(r#"{"text":"a","text_fields":["t"]}"#).hybrid_text().unwrap().text_fields, ["t"]);
        for (text, words) in [
            (r#"{"vector":[1]}"#, "no text"),
            (r#"{"text":"a","vector":[1]}"#, "has a vector"),
            (r#"{"text":"a","keyword":{}}"#, "by meaning alone"),
        ] {
            assert!(query(text).embedded_text().expect_err(text).contains(words), "{text}");
        }
    }

    #[test]
    fn faults_are_named() {
        for (text, words) in [
            ("", "no JSON list"),
            (r#"{"text":"a"}"#, "no JSON list"),
            ("[]", "no query"),
            (r#"[{"text":"a"},[null,"v"]]"#, "queries[1]: a query is an object"),
            (r#"[{"txt":"a"}]"#, "queries[0]: unknown field `txt`"),
            (r#"[{"vector":"x"}]"#, "queries[0]: invalid type"),
            (r#"[{"text":"a","keyword":{"operator":"XOR"}}]"#, "queries[0]: unknown variant `XOR`"),
        ] {
            let found = parse_queries(text).expect_err(text);
            assert!(found.contains(words), "{text}: {found}");
        }
    }
}
