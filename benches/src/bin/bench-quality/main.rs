//! How good the rankings are: nDCG@10 over judged sets, by the API and its defaults.
//!
//! Nothing is tuned for a set: text fields are `title` and `text` of equal weight, and the analyzer is that of the texts'
//! language, which the folder's name says.

use std::path::{Path, PathBuf};

use antiphon_benches::child_server::ServerArgs;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::corpus::Corpus;
use antiphon_benches::documents::{document, string};
use antiphon_benches::import::{ImportPlan, import_resuming};
use antiphon_benches::judged::{Judged, ndcg};
use antiphon_benches::report::{self, Report, note};
use antiphon_benches::{Outcome, runtime};
use antiphon_proto::v1::{Document, Fusion, FusionMethod};
use clap::Parser;
use futures::{StreamExt, TryStreamExt};

/// Searches under way at once.
const CALLERS: usize = 4;

/// Measures nDCG@10 of keyword, vector and hybrid search over judged sets, and prints a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// A judged set (see README.md); may be given several times. A name that ends in -ru, -zh and the like says the language.
    #[arg(long, value_name = "FOLDER", required = true)]
    data: Vec<PathBuf>,
    /// The analyzer of all sets, instead of the one that a folder's name says.
    #[arg(long, value_name = "NAME")]
    analyzer: Option<String>,
    /// Put title and text into one field: each document then has one length and one score, instead of the sum of two.
    #[arg(long)]
    one_text: bool,
    /// Shards of each collection; figures don't depend on it.
    #[arg(long, default_value_t = 1)]
    shards: u32,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-quality.json")]
    json: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

/// Figures to reach: a set, the search, and the least nDCG@10.
const TARGETS: [(&str, &str, f64); 6] = [
    ("scifact", "keyword", 0.69),
    ("scifact", "vector", 0.65),
    ("scifact", "best fusion", 0.73),
    ("xquad-en", "keyword", 0.97),
    ("xquad-ru", "keyword", 0.95),
    ("xquad-zh", "keyword", 0.96),
];

const FUSIONS: [(&str, FusionMethod); 5] = [
    ("turn-taking", FusionMethod::TurnTaking),
    ("reciprocal rank", FusionMethod::ReciprocalRank),
    ("maximum score", FusionMethod::MaxScore),
    ("relative score", FusionMethod::RelativeScore),
    ("distribution score", FusionMethod::DistributionScore),
];

fn main() -> Outcome<()> {
    let args = Args::parse();
    let mut report = Report::default();
    runtime()?.block_on(async {
        for data in &args.data {
            measure(&args, data, &mut report).await?;
        }
        Ok::<_, antiphon_benches::Failure>(())
    })?;
    report::print(&report.markdown());
    report::write_json(&args.json, &serde_json::json!({ "figures": report.figures }))
}

async fn measure(args: &Args, data: &Path, report: &mut Report) -> Outcome<()> {
    let name = data.file_name().and_then(|name| name.to_str()).ok_or("a folder without a name")?;
    let analyzer = args.analyzer.as_deref().unwrap_or(match name.rsplit_once('-') {
        Some((_, language)) if language.len() == 2 => language,
        _ => "en",
    });
    let (corpus, judged) = (Corpus::read(data, None)?, Judged::read(data)?);
    note(&format!("{name}: {} documents, {} queries, analyzer {analyzer}", corpus.len(), judged.queries.len()));
    let folder = args.server.temp_dir()?;
    let server = args.server.start(folder.path())?;
    let client = Client::connect(&server.url).await?;
    client.create_analyzed("quality", corpus.vectors.dims, args.shards, analyzer).await?;
    let plan = ImportPlan { collection: "quality", batch: 200, probe_every: 0, progress: None };
    import_resuming(&client, plan, |from| (from as usize..corpus.len()).map(|row| document_of(args, &corpus, row)))
        .await?;

    add(report, name, "keyword", mean(&client, &judged, Method::Keyword, None).await?);
    add(report, name, "vector", mean(&client, &judged, Method::Vector, None).await?);
    let mut best: (&str, f64) = ("", 0.0);
    for (words, method) in FUSIONS {
        let value = mean(&client, &judged, Method::Hybrid, Some(method)).await?;
        report.add(&format!("{name}, hybrid, {words}"), format!("{value:.4}"));
        if value > best.1 {
            best = (words, value);
        }
    }
    note(&format!("{name}: the best fusion is {}", best.0));
    add(report, name, "best fusion", best.1);
    Ok(())
}

/// A document in the fields that are wanted.
fn document_of(args: &Args, corpus: &Corpus, row: usize) -> Document {
    let mut document = document(corpus, row);
    if args.one_text {
        let entry = &corpus.entries[row];
        document.fields.remove("title");
        document.fields.insert("text".into(), string(&format!("{}\n{}", entry.title, entry.text)));
    }
    document
}

/// Adds a figure, with its target where it has one.
fn add(report: &mut Report, set: &str, search: &str, value: f64) {
    let figure = format!("{set}, {search}, nDCG@10");
    match TARGETS.iter().find(|target| (target.0, target.1) == (set, search)) {
        // Targets have two digits.
        Some((.., target)) => report.add_target(
            &figure,
            format!("{value:.4}"),
            &format!("≥ {target:.2}"),
            (value * 1000.0).round() >= target * 1000.0,
        ),
        None => report.add(&figure, format!("{value:.4}")),
    }
}

async fn mean(client: &Client, judged: &Judged, method: Method, fusion: Option<FusionMethod>) -> Outcome<f64> {
    let searches = judged.queries.iter().zip(&judged.grades).map(|(query, grades)| async move {
        let mut search = Search::new(method, query, options("quality", 10));
        if let (Search::Hybrid(request), Some(method)) = (&mut search, fusion) {
            request.fusion = Some(Fusion { method: method as i32, ..Fusion::default() });
        }
        let answer = client.search(search).await?;
        let keys: Vec<String> = answer.matches.into_iter().map(|found| found.key).collect();
        Ok::<_, antiphon_benches::Failure>(ndcg(&keys, grades, 10))
    });
    // In order, so that sums are the same to the last digit.
    let values: Vec<f64> = futures::stream::iter(searches).buffered(CALLERS).try_collect().await?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}
