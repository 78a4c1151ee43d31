//! A load generator, where ghz is not at hand: so many callers in a closed loop, for so long or so many calls.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::drive::{Until, drive};
use antiphon_benches::proc::CpuMeter;
use antiphon_benches::queries::Query;
use antiphon_benches::report::{note, print, table};
use antiphon_benches::stats::Latencies;
use antiphon_benches::{Outcome, runtime};
use clap::Parser;

/// Calls a search method again and again, and prints rate, latencies and errors.
///
/// Example: load --collection wordnet --queries queries.jsonl --method hybrid --concurrency 16 --duration 10
#[derive(Debug, Parser)]
struct Args {
    /// The server.
    #[arg(long, default_value = "http://127.0.0.1:7700")]
    address: String,
    /// The collection.
    #[arg(long)]
    collection: String,
    /// Queries: lines of {"text": "...", "vector": [...]}, used in turn. `make-data queries` makes some.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Which search.
    #[arg(long, value_enum, default_value_t = Method::Hybrid)]
    method: Method,
    /// Callers at once.
    #[arg(long, short, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    concurrency: u16,
    /// Connections that they share.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// Seconds to go on.
    #[arg(long, short = 'z', default_value_t = 10, conflicts_with = "count", value_parser = clap::value_parser!(u64).range(1..=3600))]
    duration: u64,
    /// Calls to make, instead of a duration.
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    count: Option<u32>,
    /// Matches on a page.
    #[arg(long, default_value_t = 10)]
    page_size: u32,
    /// Compare with every vector instead of asking the graph.
    #[arg(long)]
    exact: bool,
}

fn main() -> Outcome<()> {
    let args = Args::parse();
    let mut search_options = options(&args.collection, args.page_size);
    search_options.exact = args.exact;
    let searches: Vec<Search> =
        read(&args.queries)?.iter().map(|query| Search::new(args.method, query, search_options.clone())).collect();
    if searches.is_empty() {
        return Err("the file has no queries".into());
    }
    runtime()?.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..args.connections.min(args.concurrency) {
            clients.push(Client::connect(&args.address).await?);
        }
        let until = match args.count {
            Some(count) => Until::Calls(count as usize),
            None => Until::Elapsed(Duration::from_secs(args.duration)),
        };
        note(&format!("{} callers, {} queries", args.concurrency, searches.len()));
        let meter = CpuMeter::start(None)?;
        let driven = drive(usize::from(args.concurrency), until, |caller, number| {
            let client = clients[caller % clients.len()].clone();
            let search = searches[number % searches.len()].clone();
            async move { client.search(search).await.map(drop) }
        })
        .await;
        let shares = meter.shares()?;
        let latencies = Latencies::of(&driven.latencies);
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let mut rows = vec![
            row("calls that succeeded", latencies.count.to_string()),
            row("calls/s", format!("{:.1}", driven.rate())),
            row("latency ms, mean", format!("{:.3}", latencies.mean_ms)),
            row("latency ms, 50 %", format!("{:.3}", latencies.p50_ms)),
            row("latency ms, 90 %", format!("{:.3}", latencies.p90_ms)),
            row("latency ms, 99 %", format!("{:.3}", latencies.p99_ms)),
            row("latency ms, longest", format!("{:.3}", latencies.max_ms)),
            row("cores used by this program", format!("{:.2}", shares.own)),
            row("cores used by all else", format!("{:.2}", shares.others)),
        ];
        rows.extend(driven.errors.iter().map(|(name, count)| row(&format!("failed: {name}"), count.to_string())));
        print(&table(&["figure", "value"], &rows));
        if driven.latencies.is_empty() { Err("no call succeeded".into()) } else { Ok(()) }
    })
}

fn read(path: &Path) -> Outcome<Vec<Query>> {
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let parse = |(number, line): (usize, std::io::Result<String>)| -> Outcome<Query> {
        Ok(serde_json::from_str(&line?).map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))?)
    };
    BufReader::new(file).lines().enumerate().map(parse).collect()
}
