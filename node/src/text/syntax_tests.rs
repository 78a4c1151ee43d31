//! What queries with syntax ask for, compared with conditions written out by hand.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;

const FIELDS: [(&str, &str); 2] = [("t", "standard"), ("u", "exact")];

fn parsed(text: &str, all: bool) -> Result<SyntaxQuery, SyntaxFault> {
    let fields: Vec<_> = FIELDS
        .iter()
        .enumerate()
        .map(|(index, (name, analyzer))| SyntaxField { index, name, analyzer: Analyzer::by_name(analyzer).unwrap() })
        .collect();
    parse(text, &fields, all)
}

/// Whether a document meets a query: `words` are the terms of field t, and its field u is `words` as one value.
fn meets(formula: &Formula, words: &str) -> bool {
    match formula {
        Formula::Term { field: 0, text } => words.split(' ').any(|word| word == text),
        Formula::Term { text, .. } => words == text,
        Formula::All(parts) => parts.iter().all(|part| meets(part, words)),
        Formula::Any(parts) => parts.iter().any(|part| meets(part, words)),
        Formula::Not(part) => !meets(part, words),
    }
}

/// The documents over a, b and c that a query finds: they meet it, and hold one of its scored terms.
fn found(text: &str, all: bool) -> BTreeSet<String> {
    let query = parsed(text, all).unwrap();
    let documents = (1..8).map(|set| {
        let words: Vec<&str> =
            ["a", "b", "c"].into_iter().enumerate().filter(|(n, _)| set >> n & 1 == 1).map(|(_, word)| word).collect();
        words.join(" ")
    });
    let scored = |words: &str| {
        query.terms.iter().any(|term| meets(&Formula::Term { field: term.field, text: term.text.clone() }, words))
    };
    let formula = query.formula.as_ref().unwrap();
    documents.filter(|words| scored(words) && meets(formula, words)).collect()
}

fn set(documents: &[&str]) -> BTreeSet<String> {
    documents.iter().map(|words| (*words).to_owned()).collect()
}

#[test]
fn operators_mean_what_they_say() {
    let any = ["a", "a b", "a c", "b", "b c", "a b c"];
    let cases: [(&str, &[&str]); 16] = [
        ("a", &["a", "a b", "a c", "a b c"]),
        ("a b", &any),
        ("a OR b", &any),
        ("a AND b", &["a b", "a b c"]),
        ("+a b", &["a", "a b", "a c", "a b c"]),
        ("+a +b", &["a b", "a b c"]),
        ("a -b", &["a", "a c"]),
        ("a AND NOT b", &["a", "a c"]),
        ("a b -c", &["a", "a b", "b"]),
        ("+a -b -c", &["a"]),
        ("(a OR b) AND c", &["a c", "b c", "a b c"]),
        ("a AND (b OR c)", &["a b", "a c", "a b c"]),
        ("a OR (b AND c)", &["a", "a b", "a c", "b c", "a b c"]),
        ("t:a -t:b", &["a", "a c"]),
        ("u:a", &["a"]),
        ("\"a\" -'b'", &["a", "a c"]),
    ];
    for (text, documents) in cases {
        assert_eq!(found(text, false), set(documents), "{text}");
    }
    assert_eq!(found("a b", true), set(&["a b", "a b c"]));
    assert_eq!(found("a b -c", true), set(&["a b"]));
}

#[test]
fn a_word_of_several_terms_needs_them_all_and_what_has_none_says_nothing() {
    let query = parsed("t:foo_bar +t:?! -t:...", false).unwrap();
    assert_eq!(query.terms.iter().map(|term| term.text.as_str()).collect::<Vec<_>>(), ["foo", "bar"]);
    let formula = query.formula.unwrap();
    assert!(meets(&formula, "bar x foo") && !meets(&formula, "foo") && !formula.is_met_by(0, "foo"));
    assert_eq!(parsed("u:\"a b\"", false).unwrap().terms[0].text, "a b");
    for nothing in ["", "  ", "t:?!"] {
        assert_eq!(parsed(nothing, false).unwrap(), SyntaxQuery { terms: vec![], formula: None }, "{nothing:?}");
    }
    let needs_no_look = |text: &str| {
        let SyntaxQuery { terms, formula } = parsed(text, false).unwrap();
        terms.iter().all(|term| formula.as_ref().unwrap().is_met_by(term.field, &term.text))
    };
    assert!(needs_no_look("a b t:c") && needs_no_look("a OR (b c)"));
    assert!(!needs_no_look("+a b") && !needs_no_look("a -b") && !needs_no_look("a AND b"));
    // Each term scores once, in the order of the query.
    let terms = parsed("t:b t:a t:b", false).unwrap().terms;
    assert_eq!(terms.iter().map(|term| (term.text.as_str(), term.word)).collect::<Vec<_>>(), [("b", 0), ("a", 1)]);
}

#[test]
fn what_is_not_served_is_refused_by_name() {
    for (text, what) in [
        ("a^2", "boosts"),
        ("t:[a TO b]", "ranges"),
        ("t:>a", "ranges"),
        ("t: IN [a b]", "sets"),
        ("/a.*/", "regular expressions"),
        ("t:/a/", "regular expressions"),
        ("*", "wildcards"),
        ("t:*", "wildcards"),
        ("ab*", "wildcards"),
        ("\"a b\"*", "wildcards"),
        ("\"a b\"~2", "distances"),
        ("t:\"a b\"", PHRASES),
        ("\"76.132\"", PHRASES),
        ("t:'北京大学'", PHRASES),
    ] {
        let outcome = parsed(text, false);
        assert!(
            matches!(&outcome, Err(SyntaxFault::Unsupported { what: found, .. }) if *found == what),
            "{text}: {outcome:?}"
        );
    }
    assert_eq!(parsed("x:a", false), Err(SyntaxFault::UnknownField { name: "x".into() }));
    assert_eq!(parsed("-a -t:b", false), Err(SyntaxFault::OnlyExcludes));
    assert!(parsed("t:a\\:b", false).is_ok());
}

#[test]
fn what_cannot_be_read_is_said_where() {
    for text in ["t:", "(a", "a)", "\"a", "a AND", "ключ AND (b", "AND", "a:b:c"] {
        let outcome = parsed(text, false);
        let is_within = |at: usize| (1..=text.chars().count() + 1).contains(&at);
        assert!(matches!(&outcome, Err(SyntaxFault::Malformed { at, .. }) if is_within(*at)), "{text}: {outcome:?}");
    }
}

#[test]
fn hostile_queries_are_answered_at_once() {
    let hostile = [
        "(".repeat(5_000),
        "(".repeat(32),
        format!("{}a{}", "(".repeat(32), ")".repeat(32)),
        format!("{}a{}", "(+".repeat(32), ")".repeat(32)),
        format!("{}a{}", "-(-(".repeat(16), "))".repeat(16)),
        format!("{}a", "NOT ".repeat(32)),
        format!("{}a", "NOT (".repeat(32)),
        format!("{}a{}", "t:(".repeat(32), ")".repeat(32)),
        "-".repeat(4_000),
        "\\".repeat(4_000),
        "a ".repeat(2_000),
        "a AND ".repeat(600),
        "\"'\"'".repeat(1_000),
        "a:".repeat(2_000),
        "[a TO ".repeat(600),
        "💥".repeat(1_000),
        (0..600).map(|n| format!("w{n} ")).collect(),
    ];
    for text in hostile {
        let began = std::time::Instant::now();
        let _ = parsed(&text, false);
        assert!(began.elapsed().as_secs() < 5, "{} took {:?}", &text[..text.floor_char_boundary(40)], began.elapsed());
    }
}
