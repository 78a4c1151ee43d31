//! Memory with many rows: a million made documents, imported and searched, and the server's anonymous memory meanwhile.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_benches::child_server::ServerArgs;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::drive::{Until, drive};
use antiphon_benches::import::{ImportPlan, import_resuming};
use antiphon_benches::made::Maker;
use antiphon_benches::proc::{CpuMeter, MemorySample, MemorySampler, max_anon};
use antiphon_benches::report::{self, Report, mib, note};
use antiphon_benches::rest::wait_for_rest;
use antiphon_benches::stats::Latencies;
use antiphon_benches::{Outcome, runtime};
use clap::Parser;

const COLLECTION: &str = "bench";
const SEED: u64 = 128;
const BOUND_BYTES: u64 = 2_000_000_000;

/// Imports made documents into one shard and shows that anonymous memory stays bounded.
#[derive(Debug, Parser)]
struct Args {
    /// Documents.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Dimensions.
    #[arg(long, default_value_t = 128)]
    dims: usize,
    /// Clusters of vectors.
    #[arg(long, default_value_t = 2_000)]
    centres: usize,
    /// Seconds of searching right after the import, while sealing and merging go on, and again at the end.
    #[arg(long, default_value_t = 20)]
    serve_s: u64,
    /// Do not wait until all is sealed and merged.
    #[arg(long)]
    no_rest: bool,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-million.json")]
    json: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

fn main() -> Outcome<()> {
    let args = Args::parse();
    runtime()?.block_on(run(&args))
}

async fn run(args: &Args) -> Outcome<()> {
    let maker = Maker::new(args.dims, args.centres, SEED);
    let queries = maker.queries(1000);
    let data = args.server.temp_dir()?;
    let server = args.server.start(data.path())?;
    let client = Client::connect(&server.url).await?;
    client.create(COLLECTION, args.dims, 1).await?;
    let mut report = Report::default();

    note("importing");
    let sampler = MemorySampler::start(server.pid(), Duration::from_millis(50));
    let (meter, begun) = (CpuMeter::start(Some(server.pid()))?, Instant::now());
    let plan = ImportPlan { collection: COLLECTION, batch: 500, probe_every: 40, progress: Some(&sampler.progress) };
    let (imported, num_refusals) =
        import_resuming(&client, plan, |from| (from..args.rows).map(|row| maker.document(row))).await?;
    let importing = meter.shares()?;
    report.add("documents/s acknowledged", format!("{:.0}", args.rows as f64 / imported.elapsed.as_secs_f64()));
    let cores = format!("{:.2} / {:.2} / {:.2}", importing.own, importing.server, importing.others);
    report.add("importing, cores: client / server / other processes", cores);
    report.add("streams ended as OVERLOADED and resumed", num_refusals.to_string());
    let probes = Latencies::of(&imported.probes);
    report.add("search while importing, ms median / max", format!("{:.2} / {:.2}", probes.p50_ms, probes.max_ms));
    let invisible = imported.num_invisible;
    let words = format!("acknowledged batches not visible, of {}", probes.count);
    report.add_target(&words, invisible.to_string(), "0", invisible == 0);

    let serve = async |report: &mut Report, when: &str| -> Outcome<()> {
        note(&format!("serving {when}"));
        let driven = drive(8, Until::Elapsed(Duration::from_secs(args.serve_s)), |_, number| {
            let client = client.clone();
            let search = Search::new(Method::Hybrid, &queries[number % queries.len()], options(COLLECTION, 10));
            async move { client.search(search).await.map(drop) }
        })
        .await;
        let latencies = Latencies::of(&driven.latencies);
        let ours = format!("{:.0}; {:.2} / {:.2}", driven.rate(), latencies.p50_ms, latencies.p99_ms);
        report.add(&format!("8 callers {when}: calls/s; ms median / 99 %"), ours);
        let errors = driven.num_errors();
        report.add_target(&format!("errors {when}"), errors.to_string(), "0", errors == 0);
        Ok(())
    };
    serve(&mut report, "right after the import").await?;
    if !args.no_rest {
        note("waiting until all is sealed and merged");
        let rest = wait_for_rest(&client, server.pid()).await?;
        report.add("until at rest, s", format!("{:.0}", rest.since.duration_since(begun).as_secs_f64()));
        report.add("segments; their files", format!("{}; {}", rest.num_segments, mib(rest.size_bytes)));
        serve(&mut report, "at rest").await?;
    }
    let samples = sampler.stop()?;
    let most = max_anon(&samples);
    report.add_target("RssAnon, highest", mib(most), "< 2 GB", most < BOUND_BYTES);
    if let Some(last) = samples.last() {
        report.add("RssAnon at the end", mib(last.anon_bytes));
    }
    server.stop().await?;

    report::print(&report.markdown());
    let curve = curve(&samples, imported.elapsed);
    report::print(&report::table(&["s", "documents acknowledged", "RssAnon, highest since the line before"], &curve));
    let json =
        serde_json::json!({ "rows": args.rows, "dimensions": args.dims, "figures": report.figures, "curve": curve });
    report::write_json(&args.json, &json)
}

/// The samples in some forty lines: twenty while importing, twenty after.
fn curve(samples: &[MemorySample], imported: Duration) -> Vec<Vec<String>> {
    let split = samples.partition_point(|sample| sample.at <= imported);
    let (during, after) = samples.split_at(split);
    let lines = [during, after].into_iter().flat_map(|part| part.chunks(part.len().div_ceil(20).max(1)));
    lines
        .filter_map(|chunk| {
            let last = chunk.last()?;
            let seconds = format!("{:.0}", last.at.as_secs_f64());
            Some(vec![seconds, last.progress.to_string(), mib(max_anon(chunk))])
        })
        .collect()
}
