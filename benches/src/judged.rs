//! A judged set: a data folder whose queries say which documents answer them, and the measure of a ranking.
//!
//! Not for speed. `queries.jsonl` holds `_id` and `text`, `queries.npy` their vectors, `qrels.tsv` query, document and grade.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::Outcome;
use crate::npy::Matrix;
use crate::queries::Query;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "_id")]
    id: String,
    text: String,
}

/// Queries with their judgements.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The queries that have a judgement.
    pub queries: Vec<Query>,
    /// For each, the grades of documents by key; those not named have grade 0.
    pub grades: Vec<HashMap<String, f64>>,
}

impl Judged {
    /// Reads a data folder.
    ///
    /// # Errors
    /// Where a file is missing, damaged or does not fit another.
    pub fn read(dir: &Path) -> Outcome<Self> {
        let text = |name: &str| {
            let path = dir.join(name);
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut all: HashMap<String, HashMap<String, f64>> = HashMap::new();
        for line in text("qrels.tsv")?.lines().skip(1) {
            let [query, document, grade] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(format!("qrels.tsv: not three columns: {line}").into());
            };
            all.entry(query.into()).or_default().insert(document.into(), grade.trim().parse()?);
        }
        let vectors = Matrix::read(&dir.join("queries.npy"))?;
        let lines: Vec<Line> = text("queries.jsonl")?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        if lines.len() != vectors.rows {
            return Err(format!("{} queries, but {} vectors", lines.len(), vectors.rows).into());
        }
        let mut judged = Self { queries: Vec::new(), grades: Vec::new() };
        for (row, line) in lines.into_iter().enumerate() {
            if let Some(grades) = all.remove(&line.id) {
                judged.queries.push(Query { text: line.text, vector: vectors.row(row).to_vec() });
                judged.grades.push(grades);
            }
        }
        if judged.queries.is_empty() { Err("no query has a judgement".into()) } else { Ok(judged) }
    }
}

/// The normalised discounted cumulative gain of the first `n` (Järvelin and Kekäläinen, 2002), grades as gains: 1 where the
/// best grades come first, 0 where none is there.
pub fn ndcg(keys: &[String], grades: &HashMap<String, f64>, n: usize) -> f64 {
    let sum = |gains: &mut dyn Iterator<Item = f64>| -> f64 {
        gains.take(n).enumerate().map(|(at, gain)| gain / (at as f64 + 2.0).log2()).sum()
    };
    let mut best: Vec<f64> = grades.values().copied().collect();
    best.sort_by(|a, b| b.total_cmp(a));
    let ideal = sum(&mut best.into_iter());
    if ideal > 0.0 { sum(&mut keys.iter().map(|key| grades.get(key).copied().unwrap_or(0.0))) / ideal } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ndcg_is_that_of_the_formula() {
        let grades = HashMap::from([("a".to_owned(), 2.0), ("b".to_owned(), 1.0), ("c".to_owned(), 0.0)]);
        let of = |keys: &[&str]| ndcg(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>(), &grades, 3);
        let ideal = 2.0 + 1.0 / 3f64.log2();
        assert_eq!(of(&["a", "b", "x"]), 1.0);
        assert!((of(&["x", "a", "b"]) - (2.0 / 3f64.log2() + 0.5) / ideal).abs() < 1e-12);
        assert_eq!(of(&["c", "x", "y", "a"]), 0.0);
        assert_eq!(of(&[]), 0.0);
    }
}
