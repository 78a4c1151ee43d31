//! Windows against a model that scores every row from its words, on random corpora.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use roaring::RoaringBitmap;
use tantivy::fieldnorm::FieldNormReader;

use super::{
    Analyzer, FieldStatistics, KeywordQuery, QueryTerm, TextError, TextFieldSpec, TextIndex, TextIndexBuilder,
};
use crate::attributes::{RowSet, Selection};
use crate::mapped::Blob;

/// The words of each field of each row.
type Rows = Vec<Vec<Vec<String>>>;

fn specs(num_fields: usize) -> Vec<TextFieldSpec> {
    (0..num_fields).map(|field| TextFieldSpec { name: format!("f{field}"), analyzer: "standard".into() }).collect()
}

fn build(rows: &Rows, num_fields: usize) -> TextIndex {
    let specs = specs(num_fields);
    let mut builder = TextIndexBuilder::new(&specs).unwrap();
    for row in rows {
        let texts: Vec<String> = row.iter().map(|words| words.join(" ")).collect();
        let counts = builder.add(&texts.iter().map(|text| vec![text.as_str()]).collect::<Vec<_>>()).unwrap();
        assert_eq!(counts, row.iter().map(|words| words.len() as u32).collect::<Vec<_>>());
    }
    TextIndex::open(Blob::from_bytes(&builder.finish().unwrap()), &specs, rows.len() as u32).unwrap()
}

/// One segment with its rows and its tombstones.
struct Segment {
    rows: Rows,
    dead: RoaringBitmap,
    index: TextIndex,
}

/// A word of few, the first far more frequent.
fn word(rng: &mut StdRng, num_words: u32) -> String {
    let skewed = rng.random::<f64>().powi(3) * f64::from(num_words);
    format!("w{}", skewed as u32)
}

fn random_rows(rng: &mut StdRng, num_fields: usize, num_words: u32) -> Rows {
    let num_rows = [1, 7, 130, 600, 2_000][rng.random_range(0..5)];
    let mean_len = [2, 5, 20, 60][rng.random_range(0..4)];
    let one_word_rows = rng.random_bool(0.2);
    (0..num_rows)
        .map(|_| {
            (0..num_fields)
                .map(|_| {
                    let len = if rng.random_bool(0.02) { 40 * mean_len } else { rng.random_range(0..=2 * mean_len) };
                    if one_word_rows && rng.random_bool(0.05) {
                        return vec!["w0".to_owned(); rng.random_range(1..=400)];
                    }
                    (0..len).map(|_| word(rng, num_words)).collect()
                })
                .collect()
        })
        .collect()
}

fn random_segment(rng: &mut StdRng, num_fields: usize, num_words: u32) -> Segment {
    let rows = random_rows(rng, num_fields, num_words);
    let dead_share = [0.0, 0.0, 0.1, 0.7][rng.random_range(0..4)];
    let dead = (0..rows.len() as u32).filter(|_| rng.random_bool(dead_share)).collect();
    let index = build(&rows, num_fields);
    Segment { rows, dead, index }
}

fn random_query(rng: &mut StdRng, segments: &[Segment], num_fields: usize, num_words: u32) -> KeywordQuery {
    let live = || {
        segments.iter().flat_map(|segment| {
            let dead = &segment.dead;
            segment.rows.iter().zip(0..).filter(move |(_, row)| !dead.contains(*row)).map(|(words, _)| words)
        })
    };
    let fields = (0..num_fields)
        .map(|field| FieldStatistics {
            num_docs: live().count() as u64,
            num_tokens: live().map(|row| row[field].len() as u64).sum(),
            boost: [1.0, 1.0, 0.3, 2.5, 0.0, 1e30][rng.random_range(0..6)],
        })
        .collect();
    let terms = (0..rng.random_range(1..=6))
        .map(|group| {
            let field = rng.random_range(0..num_fields);
            let text = if rng.random_bool(0.05) { "unknown".into() } else { word(rng, num_words) };
            let doc_freq = live().filter(|row| row[field].contains(&text)).count() as u64;
            QueryTerm { field, text, group: if rng.random_bool(0.4) { group / 2 } else { group }, doc_freq }
        })
        .collect();
    KeywordQuery { terms, fields, require_all_groups: rng.random_bool(0.4) }
}

/// The score of one row, from its words.
fn model_score(query: &KeywordQuery, row: &[Vec<String>]) -> Option<f64> {
    let (k1, b) = (1.2_f64, 0.75_f64);
    let mut score = 0.0_f64;
    let mut groups = BTreeSet::new();
    for term in &query.terms {
        let tf = row[term.field].iter().filter(|word| **word == term.text).count() as f64;
        if tf == 0.0 {
            continue;
        }
        groups.insert(term.group);
        let field = query.fields[term.field];
        let len_id = FieldNormReader::fieldnorm_to_id(row[term.field].len() as u32);
        let len = f64::from(FieldNormReader::id_to_fieldnorm(len_id));
        let avg = field.num_tokens as f64 / field.num_docs as f64;
        let df = term.doc_freq.min(field.num_docs);
        let idf = (1.0 + ((field.num_docs - df) as f64 + 0.5) / (df as f64 + 0.5)).ln();
        score += f64::from(field.boost) * idf * tf * (k1 + 1.0) / (tf + k1 * (1.0 - b + b * len / avg));
    }
    let num_groups = query.terms.iter().map(|term| term.group).collect::<BTreeSet<_>>().len();
    let matches = if query.require_all_groups { groups.len() == num_groups } else { !groups.is_empty() };
    matches.then_some(score)
}

fn model_window(query: &KeywordQuery, segment: &Segment, n: usize) -> Vec<(u32, f64)> {
    let mut scored: Vec<(u32, f64)> = (0..)
        .zip(&segment.rows)
        .filter(|(row, _)| !segment.dead.contains(*row))
        .filter_map(|(row, words)| Some((row, model_score(query, words)?)))
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored.truncate(n);
    scored
}

fn bits(window: &[(u32, f64)]) -> Vec<(u32, u64)> {
    window.iter().map(|(row, score)| (*row, score.to_bits())).collect()
}

fn go_on() -> bool {
    false
}

#[test]
fn windows_are_those_of_the_model() {
    let mut seen = BTreeMap::new();
    for seed in 0..40 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let (num_fields, num_words) = (rng.random_range(1..=3), [8, 40, 400][rng.random_range(0..3)]);
        let segments: Vec<Segment> =
            (0..rng.random_range(1..=3)).map(|_| random_segment(rng, num_fields, num_words)).collect();
        for _ in 0..30 {
            let query = random_query(rng, &segments, num_fields, num_words);
            let n = [1, 3, 10, 100, usize::MAX][rng.random_range(0..5)];
            for segment in &segments {
                let rows = Selection::living(&segment.dead);
                let found = segment.index.window(&query, rows, n, &go_on).unwrap();
                let expected = model_window(&query, segment, n);
                assert_eq!(bits(&found), bits(&expected), "seed {seed}, n {n}, {query:?}");
                // The same as a set of rows, which few of them are looked up from.
                let share = [0.02, 0.2, 0.9][rng.random_range(0..3)];
                let num_rows = segment.rows.len() as u32;
                let mut set = RowSet::none(num_rows);
                let found_ones = (0..num_rows).filter(|row| !segment.dead.contains(*row));
                found_ones.filter(|_| rng.random_bool(share)).for_each(|row| set.insert(row));
                let found = segment.index.window(&query, Selection::only(&set), n, &go_on).unwrap();
                let mut expected = model_window(&query, segment, usize::MAX);
                expected.retain(|(row, _)| set.contains(*row));
                expected.truncate(n);
                assert_eq!(bits(&found), bits(&expected), "seed {seed}, n {n}, a share of {share}, {query:?}");
                *seen.entry(found.len().min(n) > 0).or_insert(0) += 1;
            }
        }
    }
    assert!(seen[&true] > 1_000, "{seen:?}");
}

#[test]
fn splitting_a_corpus_changes_no_bit() {
    for seed in 100..120 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let (num_fields, num_words) = (rng.random_range(1..=3), 40);
        let mut rows: Rows = (0..3).flat_map(|_| random_rows(rng, num_fields, num_words)).collect();
        if rng.random_bool(0.5) {
            rows.sort_by_key(|row| row[0].len()); // Parts of very different average length.
        }
        let whole = build(&rows, num_fields);
        let mut parts: Vec<(u32, TextIndex)> = Vec::new();
        let mut from = 0;
        while from < rows.len() {
            let to = rows.len().min(from + rng.random_range(1..=rows.len()));
            parts.push((from as u32, build(&rows[from..to].to_vec(), num_fields)));
            from = to;
        }
        let segment = Segment { index: whole, rows, dead: RoaringBitmap::new() };
        for _ in 0..20 {
            let query = random_query(rng, std::slice::from_ref(&segment), num_fields, num_words);
            let expected = segment.index.window(&query, Selection::All, 20, &go_on).unwrap();
            let mut merged: Vec<(u32, f64)> = Vec::new();
            for (first, part) in &parts {
                let window = part.window(&query, Selection::All, 20, &go_on).unwrap();
                merged.extend(window.into_iter().map(|(row, score)| (first + row, score)));
            }
            merged.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            merged.truncate(20);
            assert_eq!(bits(&merged), bits(&expected), "seed {seed}, {query:?}");
        }
    }
}

#[test]
fn doc_freqs_are_those_of_the_rows() {
    let rng = &mut StdRng::seed_from_u64(7);
    let rows = random_rows(rng, 1, 40).into_iter().chain(random_rows(rng, 1, 40)).collect::<Rows>();
    let index = build(&rows, 1);
    for share in [0.0, 0.003, 0.1, 1.0] {
        let among: RoaringBitmap =
            (0..rows.len() as u32).filter(|_| rng.random_bool(share)).chain([u32::MAX]).collect();
        for word in ["w0", "w1", "w20", "w39", "unknown"] {
            let holds = |row: u32| rows.get(row as usize).is_some_and(|row| row[0].iter().any(|held| held == word));
            assert_eq!(
                index.doc_freq(0, word).unwrap() as usize,
                (0..rows.len() as u32).filter(|row| holds(*row)).count()
            );
            let expected = among.iter().filter(|row| holds(*row)).count();
            assert_eq!(index.doc_freq_among(0, word, &among).unwrap() as usize, expected, "{share} {word}");
        }
    }
    assert!(matches!(index.doc_freq(1, "w0"), Err(TextError::UnknownField(1))));
}

fn query_for(text: &str) -> KeywordQuery {
    KeywordQuery {
        terms: vec![QueryTerm { field: 0, text: text.into(), group: 0, doc_freq: 1 }],
        fields: vec![FieldStatistics { num_docs: 10, num_tokens: 100, boost: 1.0 }],
        require_all_groups: false,
    }
}

#[test]
fn statistics_that_cannot_be_do_not_panic() {
    let index = build(&vec![vec![vec!["a".to_owned(), "b".to_owned()]]; 200], 1);
    let window = |query: &KeywordQuery| index.window(query, Selection::All, 10, &go_on);
    let mut query = query_for("a");
    query.terms[0].doc_freq = u64::MAX;
    assert_eq!(window(&query).unwrap().len(), 10);
    query.terms[0].doc_freq = 0;
    assert_eq!(window(&query).unwrap().len(), 10);
    for (num_docs, num_tokens) in [(1, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX), (1, 1)] {
        query.fields[0] = FieldStatistics { num_docs, num_tokens, boost: 1.0 };
        assert_eq!(window(&query).unwrap().len(), 10, "{num_docs} {num_tokens}");
    }
    for (num_docs, num_tokens) in [(0, 5), (5, 0)] {
        query.fields[0] = FieldStatistics { num_docs, num_tokens, boost: 1.0 };
        assert_eq!(window(&query).unwrap(), []);
    }
    for boost in [-1.0, f32::NAN, f32::INFINITY] {
        query.fields[0] = FieldStatistics { num_docs: 5, num_tokens: 5, boost };
        assert!(matches!(window(&query), Err(TextError::Boost(0))));
    }
    for boost in [0.0, 1e-45, f32::MAX] {
        query.fields[0].boost = boost;
        let rows: Vec<u32> = window(&query).unwrap().into_iter().map(|(row, _)| row).collect();
        assert_eq!(rows, (0..10).collect::<Vec<_>>());
    }
    query.terms[0].field = 1;
    assert!(matches!(window(&query), Err(TextError::UnknownField(1))));
    query.terms.clear();
    assert_eq!(window(&query).unwrap(), []);
}

#[test]
fn a_search_stops_when_told() {
    let rows: Rows = (0..5_000).map(|row| vec![vec!["a".to_owned(); 1 + row % 7], vec!["b".into()]]).collect();
    let index = build(&rows, 2);
    let field = FieldStatistics { num_docs: 5_000, num_tokens: 20_000, boost: 1.0 };
    let term = |field, text: &str, group| QueryTerm { field, text: text.into(), group, doc_freq: 5_000 };
    let groups = vec![term(0, "a", 0), term(1, "a", 0), term(1, "b", 1), term(0, "a", 1)];
    for (terms, require_all_groups) in [(groups[..1].to_vec(), false), (groups.clone(), false), (groups, true)] {
        let query = KeywordQuery { terms, fields: vec![field, field], require_all_groups };
        let polls = Cell::new(0);
        let stop = || {
            polls.set(polls.get() + 1);
            polls.get() > 2
        };
        assert!(matches!(index.window(&query, Selection::All, 4_000, &stop), Err(TextError::Stopped)));
        assert_eq!(polls.get(), 3);
    }
    assert!(matches!(index.window(&query_for("a"), Selection::All, 1, &|| true), Err(TextError::Stopped)));
}

#[test]
fn every_word_form_finds_its_document() {
    let analyzer = Analyzer::by_name("standard").unwrap();
    let texts = ["76.132", "C++", "Rust's", "naïve", "Straße", "北京大学", "猫が好き"];
    let rows: Rows = texts
        .iter()
        .map(|text| vec![analyzer.document_terms(text).into_iter().map(|term| term.text).collect()])
        .collect();
    let specs = specs(1);
    let mut builder = TextIndexBuilder::new(&specs).unwrap();
    for (text, row) in texts.iter().zip(&rows) {
        assert_eq!(builder.add(&[vec![text]]).unwrap(), [row[0].len() as u32]);
    }
    let bundle = Blob::from_bytes(&builder.finish().unwrap());
    let index = TextIndex::open(bundle, &specs, texts.len() as u32).unwrap();
    for (text, row) in texts.iter().zip(0..).chain([(&"猫", 6), (&"大学", 5), (&"NAÏVE", 3)]) {
        let mut query = query_for("");
        query.terms = (0..)
            .zip(analyzer.terms(text))
            .map(|(group, term)| QueryTerm { field: 0, text: term.text, group, doc_freq: 1 })
            .collect();
        query.require_all_groups = true;
        let found = index.window(&query, Selection::All, 10, &go_on).unwrap();
        assert_eq!(found.into_iter().map(|(row, _)| row).collect::<Vec<_>>(), [row], "{text}");
    }
}
