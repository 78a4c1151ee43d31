//! Recall of approximate search, and whether scores and exact answers are right.

use std::time::Instant;

use antiphon_benches::Outcome;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::corpus::Corpus;
use antiphon_benches::exact::{cosine, nearest, recall};
use antiphon_benches::queries::Query;
use antiphon_benches::report::{Report, note};
use antiphon_benches::stats::Latencies;

use crate::raw::{Raw, RawFigures, RawRecall, WINDOW};
use crate::{Args, COLLECTION};

/// Queries whose exact answer is computed here, beside the server's.
const CHECKED_QUERIES: usize = 50;

pub(crate) async fn correctness(
    args: &Args,
    corpus: &Corpus,
    raw: &Raw,
    queries: &[Query],
    client: &Client,
    report: &mut Report,
) -> Outcome<()> {
    note("recall and scores");
    let rows: std::collections::HashMap<&str, usize> =
        corpus.entries.iter().enumerate().map(|(row, entry)| (entry.id.as_str(), row)).collect();
    let (mut recall_10, mut recall_100, mut worst_score, mut exact_times) = (vec![], vec![], 0.0f64, vec![]);
    let (mut differing, mut truths) = (0, Vec::with_capacity(queries.len()));
    let quiet = |page_size, exact| {
        let mut options = options(COLLECTION, page_size);
        options.exact = exact;
        options.fields = vec!["pos".into()];
        options
    };
    for (number, query) in queries.iter().enumerate() {
        let search = async |page_size, exact| {
            let search = Search::new(Method::Vector, query, quiet(page_size, exact));
            client.search(search).await.map(|response| response.matches)
        };
        let begun = Instant::now();
        let truth = search(WINDOW as u32, true).await?;
        exact_times.push(begun.elapsed());
        let (ten, hundred) = (search(10, false).await?, search(WINDOW as u32, false).await?);
        let keys = |matches: &[antiphon_proto::v1::Match], count: usize| -> Vec<String> {
            matches.iter().take(count).map(|found| found.key.clone()).collect()
        };
        recall_10.push(recall(&keys(&truth, 10), &keys(&ten, 10)));
        recall_100.push(recall(&keys(&truth, WINDOW), &keys(&hundred, WINDOW)));
        for found in truth.iter().chain(&hundred) {
            let row = *rows.get(found.key.as_str()).ok_or("a key that was not imported")?;
            worst_score = worst_score.max((cosine(&query.vector, corpus.vectors.row(row)) - found.score).abs());
        }
        let truth_rows = truth.iter().filter_map(|found| rows.get(found.key.as_str()).copied());
        truths.push(truth_rows.collect::<Vec<usize>>());
        if number < CHECKED_QUERIES {
            let own = nearest(&corpus.vectors, &query.vector, 10);
            let score = |row: &usize| cosine(&query.vector, corpus.vectors.row(*row));
            // Ties within rounding may stand in another order.
            differing +=
                usize::from(own.iter().zip(&truth).any(|(row, found)| (score(row) - found.score).abs() > 1e-6));
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (at_10, at_100) = (mean(&recall_10), mean(&recall_100));
    let mut lines = Vec::new();
    for depth in &args.depths {
        lines.push((*depth, raw.recall(corpus, queries, &truths, *depth)?));
    }
    let raw_of = |pick: fn(&RawRecall) -> f64| lines.first().map(|(_, recall)| pick(recall));
    for (count, ours, of_raw, target) in
        [(10, at_10, raw_of(|recall| recall.at_10), 0.99), (WINDOW, at_100, raw_of(|recall| recall.at_100), 0.97)]
    {
        report.compare_target(
            &format!(
                "SearchVector recall@{count} against exact (raw: usearch, depth {}, scored anew in float32)",
                args.depths[0]
            ),
            format!("{ours:.4}"),
            of_raw.map_or(String::new(), |recall| format!("{recall:.4}")),
            of_raw.map_or(String::new(), |recall| format!("{:.3}", ours / recall)),
            &format!("≥ {target}"),
            ours >= target,
        );
    }
    for (depth, recall) in &lines[1..] {
        let words = format!("usearch at depth {depth}: recall@10, @100, ms median");
        report.compare_raw(&words, format!("{:.4}, {:.4}, {:.3}", recall.at_10, recall.at_100, recall.median_ms));
    }
    let words =
        format!("exact answers that differ from those computed here, of {}", CHECKED_QUERIES.min(queries.len()));
    report.add_target(&words, differing.to_string(), "0", differing == 0);
    report.add_target("largest error of a score", format!("{worst_score:.1e}"), "≤ 1e-6", worst_score <= 1e-6);
    report.add("exact search of 100, ms median", format!("{:.1}", Latencies::of(&exact_times).p50_ms));
    Ok(())
}
