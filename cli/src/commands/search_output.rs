//! Answers of searches as a table with a few lines below, or as JSON.

use antiphon_proto::v1::{self, value::Kind};
use serde_json::{Value, json};

use crate::output::{DocumentJson, Snippets, Table, count, plain};

const SNIPPET_COLUMNS: usize = 80;

/// What matches are shown for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// The words of all queries.
    pub(crate) query: &'a str,
    /// Fields whose texts are shown rather than others.
    pub(crate) text_fields: &'a [String],
    /// How many queries were asked at once.
    pub(crate) num_queries: u32,
}

/// Matches as a table. `mark` puts a sign before the key of some. Of several queries the ranks in each are shown, like 2/-/1.
pub(crate) fn render(matches: &[v1::Match], shown: &Shown<'_>, mark: &dyn Fn(&str) -> &'static str) -> String {
    if matches.is_empty() {
        return "No matches.\n".to_owned();
    }
    let snippets = Snippets::new(shown.query, SNIPPET_COLUMNS);
    let mut table = Table::new(&["#rank", "key", "channel", "#vector", "#keyword", "#score", "text"]);
    for found in matches {
        table.row([
            found.rank.to_string(),
            format!("{}{}", mark(&found.key), found.key),
            channel_name(found.channel()).to_owned(),
            ranks_in(found, v1::Channel::Vector, shown.num_queries),
            ranks_in(found, v1::Channel::Keyword, shown.num_queries),
            format!("{:.4}", found.score),
            snippet(found, &snippets, shown.text_fields),
        ]);
    }
    table.render(0)
}

/// What follows the table: pages, coverage, warnings, the snapshot.
pub(super) fn footer(answer: &v1::SearchResponse) -> String {
    let mut out = String::from("\n");
    let more = if answer.has_more { "yes" } else { "no" };
    out.push_str(&format!("has_more  {more}; last_page {}\n", answer.last_page));
    if let Some(coverage) = &answer.coverage {
        let total = coverage.num_shards;
        if coverage.failures.is_empty() {
            out.push_str(&format!("coverage  all of {} shards\n", count(total.into())));
        }
        for failure in &coverage.failures {
            let channel = channel_name(failure.channel());
            let reason = plain(&failure.reason);
            out.push_str(&format!(
                "coverage  shard {} of {total} is missing from the {channel} channel: {reason}\n",
                failure.shard
            ));
        }
    }
    if !answer.snapshot.is_empty() {
        out.push_str(&format!("snapshot  {}\n", plain(&answer.snapshot)));
    }
    for warning in &answer.warnings {
        out.push_str(&format!("warning   {}\n", plain(warning)));
    }
    out
}

/// The whole answer.
pub(super) fn json(answer: &v1::SearchResponse) -> Value {
    let place = |place: &v1::Place| json!({ "channel": channel_name(place.channel()), "query": place.query, "rank": place.rank, "score": place.score });
    let coverage = answer.coverage.as_ref().map(|coverage| {
        json!({
            "num_shards": coverage.num_shards,
            "failures": coverage.failures.iter().map(|failure| json!({
                "shard": failure.shard, "channel": channel_name(failure.channel()), "reason": failure.reason,
            })).collect::<Vec<_>>(),
        })
    });
    json!({
        "matches": answer.matches.iter().map(|found| json!({
            "key": found.key,
            "score": found.score,
            "rank": found.rank,
            "channel": channel_name(found.channel()),
            "places": found.places.iter().map(place).collect::<Vec<_>>(),
            "document": found.document.as_ref().map(DocumentJson::from),
        })).collect::<Vec<_>>(),
        "has_more": answer.has_more,
        "last_page": answer.last_page,
        "coverage": coverage,
        "snapshot": answer.snapshot,
        "warnings": answer.warnings,
    })
}

fn channel_name(channel: v1::Channel) -> &'static str {
    match channel {
        v1::Channel::Unspecified => "-",
        v1::Channel::Vector => "vector",
        v1::Channel::Keyword => "keyword",
    }
}

fn ranks_in(found: &v1::Match, channel: v1::Channel, num_queries: u32) -> String {
    let rank = |query| {
        let place = found.places.iter().find(|place| place.channel() == channel && place.query == query);
        place.map_or_else(|| "-".to_owned(), |place| place.rank.to_string())
    };
    (0..num_queries).map(rank).collect::<Vec<_>>().join("/")
}

/// The piece of the document worth showing: for a match by keywords that of the first field that holds one, else that of
/// the longest text.
fn snippet(found: &v1::Match, snippets: &Snippets, text_fields: &[String]) -> String {
    let Some(document) = &found.document else { return String::new() };
    let is_preferred = |name: &str| text_fields.iter().any(|field| field == name);
    let mut texts: Vec<(bool, String)> =
        document.fields.iter().filter_map(|(name, value)| Some((!is_preferred(name), text_of(value)?))).collect();
    texts.sort_by_key(|(is_other, text)| (*is_other, std::cmp::Reverse(text.len())));
    let is_keyword_match = found.places.iter().any(|place| place.channel() == v1::Channel::Keyword);
    let holding = texts.iter().find(|(_, text)| is_keyword_match && snippets.matches(text));
    let best = holding.or_else(|| texts.iter().max_by_key(|(_, text)| text.len()));
    best.map(|(_, text)| snippets.cut(text)).unwrap_or_default()
}

/// A string, or a list of strings as one.
fn text_of(value: &v1::Value) -> Option<String> {
    match &value.kind {
        Some(Kind::String(text)) => Some(text.clone()),
        Some(Kind::List(list)) => {
            let parts: Vec<String> = list.values.iter().filter_map(text_of).collect();
            (!parts.is_empty()).then(|| parts.join(" "))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(key: &str, fields: &[(&str, &str)]) -> v1::Match {
        let value = |text: &str| v1::Value { kind: Some(Kind::String(text.to_owned())) };
        let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect();
        v1::Match {
            key: key.to_owned(),
            score: 0.51234,
            rank: 1,
            channel: v1::Channel::Keyword.into(),
            places: vec![v1::Place { channel: v1::Channel::Keyword.into(), query: 0, rank: 3, score: 0.5 }],
            document: Some(v1::Document { key: key.to_owned(), fields, ..v1::Document::default() }),
        }
    }

    #[test]
    fn a_row_shows_where_the_match_stands_in_each_channel() {
        let mut shown = Shown { query: "apple", text_fields: &[], num_queries: 1 };
        let matches = [found("k", &[("a", "nothing of that, but long"), ("b", "a red apple")])];
        let table = render(&matches, &shown, &|_| "*");
        assert_eq!(
            table,
            "rank  key  channel  vector  keyword   score  text\n   1  *k   keyword       -        3  0.5123  a red apple\n"
        );
        shown.num_queries = 2;
        let table = render(&matches, &shown, &|_| "");
        assert!(table.contains("-/-      3/-"), "{table}");
    }

    #[test]
    fn an_answer_without_matches_says_so() {
        let answer = v1::SearchResponse {
            last_page: 9,
            coverage: Some(v1::Coverage {
                num_shards: 3,
                failures: vec![v1::ShardFailure {
                    shard: 1,
                    channel: v1::Channel::Vector.into(),
                    reason: "DEADLINE".into(),
                }],
            }),
            warnings: vec!["no terms".into()],
            ..v1::SearchResponse::default()
        };
        assert_eq!(
            render(&answer.matches, &Shown { query: "", text_fields: &[], num_queries: 1 }, &|_| ""),
            "No matches.\n"
        );
        assert_eq!(
            footer(&answer),
            "\nhas_more  no; last_page 9\ncoverage  shard 1 of 3 is missing from the vector channel: DEADLINE\nwarning   no terms\n"
        );
    }
}
