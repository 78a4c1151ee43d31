//! The main benchmark: one run over a data folder, the product beside raw usearch and raw tantivy, ratios.
//!
//! What is compared is measured in turns, in this one run, so that a busy machine slows both.

mod importing;
mod raw;
mod recall;
mod restart;
mod speed;

use std::path::PathBuf;
use std::time::Instant;

use antiphon_benches::child_server::ServerArgs;
use antiphon_benches::client::Client;
use antiphon_benches::corpus::Corpus;
use antiphon_benches::report::{self, Report, note};
use antiphon_benches::{Outcome, queries, runtime};
use clap::Parser;

use raw::Raw;

pub(crate) const COLLECTION: &str = "bench";

/// Compares a server with raw usearch and raw tantivy over the same data, and prints a Markdown table.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The data folder: corpus.jsonl.gz and docs.npy (see README.md).
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: PathBuf,
    /// Only the first so many documents.
    #[arg(long)]
    pub(crate) limit: Option<usize>,
    /// Queries.
    #[arg(long, default_value_t = 1000)]
    pub(crate) queries: usize,
    /// Seed of the queries.
    #[arg(long, default_value_t = 20_260_101)]
    pub(crate) seed: u64,
    /// Turns between the product and the raw libraries.
    #[arg(long, default_value_t = 5)]
    pub(crate) turns: usize,
    /// Callers at once when throughput is measured.
    #[arg(long, default_value_t = 16)]
    pub(crate) callers: usize,
    /// Connections that they share.
    #[arg(long, default_value_t = 4)]
    pub(crate) connections: usize,
    /// Seconds of each turn of throughput.
    #[arg(long, default_value_t = 4)]
    pub(crate) turn_s: u64,
    /// Depths that raw usearch's recall is told of, each at least the product's default, which comes first.
    #[arg(long, value_delimiter = ',', default_values_t = [384, 512, 640])]
    pub(crate) depths: Vec<usize>,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-wordnet.json")]
    pub(crate) json: PathBuf,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

fn main() -> Outcome<()> {
    let args = Args::parse();
    if args.queries == 0 || args.depths.is_empty() {
        return Err("there must be a query and a depth".into());
    }
    let begun = Instant::now();
    let mut report = Report::default();
    let corpus = Corpus::read(&args.data, args.limit)?;
    let queries = queries::make(&corpus, args.queries, args.seed);
    let (docs, dims) = (corpus.len(), corpus.vectors.dims);
    note(&format!("{docs} documents of {dims} dimensions, {} queries", queries.len()));

    let raw = Raw::build(&corpus, &args, &mut report)?;
    let data = args.server.temp_dir()?;
    runtime()?.block_on(async {
        let server = args.server.start(data.path())?;
        let client = Client::connect(&server.url).await?;
        importing::import_all(&corpus, &raw, &server, &client, &mut report).await?;
        speed::latencies(&args, &raw, &queries, &server, &client, &mut report).await?;
        speed::throughput(&args, &raw, &queries, &server, &mut report).await?;
        recall::correctness(&args, &corpus, &raw, &queries, &client, &mut report).await?;
        drop(client);
        restart::restarts(&args, &queries, server, data.path(), &mut report).await
    })?;

    let busy = others_told(&report);
    report.add("whole run", format!("{:.0} s", begun.elapsed().as_secs_f64()));
    report::print(&format!("{docs} documents of {dims} dimensions, {} queries.{busy}\n", queries.len()));
    report::print(&report.markdown());
    let json = serde_json::json!({ "documents": docs, "dimensions": dims, "queries": queries.len(), "figures": report.figures });
    report::write_json(&args.json, &json)
}

fn others_told(report: &Report) -> &'static str {
    let is_busy =
        |figure: &report::Figure| figure.figure.contains("other processes") && !figure.ours.starts_with("0.0");
    if report.figures.iter().any(is_busy) {
        " Other processes used the machine meanwhile: read the ratios, not the times."
    } else {
        ""
    }
}
