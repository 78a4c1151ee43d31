//! What more rows and more shards cost: import, latency, throughput, memory.
//!
//! One server and one fresh folder for each line of the table. Shards share one machine's cores here; what they cost is
//! the work done for each shard, not what they gain on several machines.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_benches::child_server::ServerArgs;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::corpus::Corpus;
use antiphon_benches::documents::document;
use antiphon_benches::drive::{Until, drive};
use antiphon_benches::import::{ImportPlan, import};
use antiphon_benches::proc::{CpuMeter, status_bytes};
use antiphon_benches::queries::{self, Query};
use antiphon_benches::report::{self, mib, note};
use antiphon_benches::rest::wait_for_rest;
use antiphon_benches::stats::Latencies;
use antiphon_benches::{Outcome, runtime};
use clap::Parser;

const COLLECTION: &str = "bench";

/// Measures import and search as rows and shards grow, and prints a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// The data folder: corpus.jsonl.gz and docs.npy (see README.md).
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Numbers of rows, each with one shard.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 30_000, 100_000])]
    rows: Vec<usize>,
    /// Numbers of shards, each with the rows of --shard-rows.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8])]
    shards: Vec<u32>,
    /// Rows over which the number of shards grows.
    #[arg(long, default_value_t = 30_000)]
    shard_rows: usize,
    /// Queries.
    #[arg(long, default_value_t = 500)]
    queries: usize,
    /// Callers at once when throughput is measured.
    #[arg(long, default_value_t = 16)]
    callers: usize,
    /// Seconds of throughput.
    #[arg(long, default_value_t = 5)]
    turn_s: u64,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-growth.json")]
    json: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

const HEAD: [&str; 12] = [
    "rows",
    "shards",
    "import docs/s",
    "to rest s",
    "server CPU s",
    "segments",
    "hybrid ms 50 %",
    "hybrid ms 99 %",
    "calls/s",
    "CPU ms a call",
    "RssAnon",
    "others' cores",
];

fn main() -> Outcome<()> {
    let mut args = Args::parse();
    if args.server.set.is_empty() {
        // Nothing is written after the import, so there is no reason to wait for more.
        args.server.set.push("sealing.seal_age_s=2".into());
    }
    let mut lines: Vec<(usize, u32)> = args.rows.iter().map(|rows| (*rows, 1)).collect();
    lines.extend(args.shards.iter().map(|shards| (args.shard_rows, *shards)));
    lines.dedup();
    let most = lines.iter().map(|(rows, _)| *rows).max().ok_or("no rows were asked for")?;
    let corpus = Corpus::read(&args.data, Some(most))?;
    let queries = queries::make(&corpus, args.queries, 7);
    let mut table = Vec::new();
    for (rows, shards) in lines {
        if rows > corpus.len() {
            return Err(format!("{rows} rows were asked for, the data has {}", corpus.len()).into());
        }
        note(&format!("{rows} rows, {shards} shards"));
        table.push(runtime()?.block_on(line(&args, &corpus.head(rows), shards, &queries))?);
    }
    report::tell_table(&HEAD, &table, &args.json)
}

async fn line(args: &Args, corpus: &Corpus, shards: u32, queries: &[Query]) -> Outcome<Vec<String>> {
    let data = args.server.temp_dir()?;
    let server = args.server.start(data.path())?;
    let client = Client::connect(&server.url).await?;
    client.create(COLLECTION, corpus.vectors.dims, shards).await?;
    let (meter, begun) = (CpuMeter::start(Some(server.pid()))?, Instant::now());
    let plan = ImportPlan { collection: COLLECTION, batch: 500, probe_every: 0, progress: None };
    let imported = import(&client, plan, (0..corpus.len()).map(|row| document(corpus, row))).await?;
    let rest = wait_for_rest(&client, server.pid()).await?;
    let (to_rest, building) = (rest.since.duration_since(begun), meter.shares()?);

    for query in queries.iter().take(100) {
        client.search(Search::new(Method::Hybrid, query, options(COLLECTION, 10))).await?;
    }
    let mut latencies = Vec::new();
    for query in queries {
        let begun = Instant::now();
        client.search(Search::new(Method::Hybrid, query, options(COLLECTION, 10))).await?;
        latencies.push(begun.elapsed());
    }
    let latencies = Latencies::of(&latencies);
    let meter = CpuMeter::start(Some(server.pid()))?;
    let driven = drive(args.callers, Until::Elapsed(Duration::from_secs(args.turn_s)), |_, number| {
        let client = client.clone();
        let search = Search::new(Method::Hybrid, &queries[number % queries.len()], options(COLLECTION, 10));
        async move { client.search(search).await.map(drop) }
    })
    .await;
    let shares = meter.shares()?;
    if driven.num_errors() > 0 {
        return Err(format!("searches failed: {:?}", driven.errors).into());
    }
    let row = vec![
        corpus.len().to_string(),
        shards.to_string(),
        format!("{:.0}", corpus.len() as f64 / imported.elapsed.as_secs_f64()),
        format!("{:.1}", to_rest.as_secs_f64()),
        format!("{:.1}", building.server * building.wall_s),
        rest.num_segments.to_string(),
        format!("{:.3}", latencies.p50_ms),
        format!("{:.3}", latencies.p99_ms),
        format!("{:.0}", driven.rate()),
        format!("{:.3}", shares.server * shares.wall_s / driven.latencies.len().max(1) as f64 * 1e3),
        mib(status_bytes(server.pid(), "RssAnon")?),
        format!("{:.2}", shares.others),
    ];
    server.stop().await?;
    Ok(row)
}
