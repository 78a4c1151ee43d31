//! What a server does with more than it can do: how much of its capacity it still gives, and how long those wait that it lets in.
//!
//! Capacity and latency at full load are those of callers in a closed loop, as many as the server runs searches at once. Then calls
//! come at so many times that rate, whether earlier ones were answered or not. Server and load have a core each where `taskset` is
//! there, else they share what there is.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use antiphon_benches::child_server::ServerArgs;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::drive::{Until, drive, offer};
use antiphon_benches::import::{ImportPlan, import};
use antiphon_benches::made::Maker;
use antiphon_benches::proc::{CpuMeter, status_bytes};
use antiphon_benches::report::{mib, note, tell_table};
use antiphon_benches::rest::wait_for_rest;
use antiphon_benches::stats::Latencies;
use antiphon_benches::{Outcome, runtime};
use clap::Parser;

const COLLECTION: &str = "bench";
const DIMENSIONS: usize = 384;
/// Calls under way at most, far more than a server lets wait.
const MAX_IN_FLIGHT: usize = 20_000;

/// Measures capacity, then offers several times as much, and prints a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// Made documents.
    #[arg(long, default_value_t = 50_000)]
    rows: u64,
    /// Shards.
    #[arg(long, default_value_t = 1)]
    shards: u32,
    /// Which search.
    #[arg(long, value_enum, default_value_t = Method::Hybrid)]
    method: Method,
    /// How many times the capacity is offered.
    #[arg(long, value_delimiter = ',', default_values_t = [1.0, 2.0, 5.0])]
    times: Vec<f64>,
    /// Seconds of each.
    #[arg(long, default_value_t = 60)]
    turn_s: u64,
    /// Callers at full load: as many as the server runs searches at once.
    #[arg(long, default_value_t = 16)]
    callers: usize,
    /// Connections.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-overload.json")]
    json: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

const HEAD: [&str; 11] = [
    "offered",
    "calls/s offered",
    "calls/s answered",
    "of capacity",
    "ms 50 %",
    "ms 99 %",
    "99 % by full load's",
    "refused",
    "other failures",
    "RssAnon",
    "cores: server, load, others",
];

fn main() -> Outcome<()> {
    let args = Args::parse();
    runtime()?.block_on(run(&args))
}

/// Gives a process one core; false where that cannot be done.
fn pin(pid: u32, core: u32) -> bool {
    let pinned = Command::new("taskset").args(["-a", "-c", "-p", &core.to_string(), &pid.to_string()]).output();
    pinned.is_ok_and(|output| output.status.success())
}

async fn run(args: &Args) -> Outcome<()> {
    let data = args.server.temp_dir()?;
    let mut settings = args.server.clone();
    settings.set.push("sealing.seal_age_s=2".into());
    let server = settings.start(data.path())?;
    let maker = Maker::new(DIMENSIONS, 500, 7);
    let client = Client::connect(&server.url).await?;
    client.create(COLLECTION, DIMENSIONS, args.shards).await?;
    note(&format!("importing {} rows", args.rows));
    let plan = ImportPlan { collection: COLLECTION, batch: 500, probe_every: 0, progress: None };
    import(&client, plan, (0..args.rows).map(|row| maker.document(row))).await?;
    wait_for_rest(&client, server.pid()).await?;
    server.stop().await?;
    // Started anew as one that has a core, for it counts its cores as it starts.
    let settings = ServerArgs { set: args.server.set.clone(), ..args.server.clone() };
    let is_pinned = pin(std::process::id(), 0);
    let server = settings.start(data.path())?;
    let is_pinned = is_pinned && pin(std::process::id(), 1);
    note(if is_pinned { "server and load have a core each" } else { "server and load share the cores" });
    let mut clients = Vec::new();
    for _ in 0..args.connections.max(1) {
        clients.push(Client::connect(&server.url).await?);
    }
    let queries = maker.queries(500);
    let search = |number: usize| {
        let client = clients[number % clients.len()].clone();
        let search = Search::new(args.method, &queries[number % queries.len()], options(COLLECTION, 10));
        async move { client.search(search).await.map(drop) }
    };
    let turn = Duration::from_secs(args.turn_s);
    drive(args.callers, Until::Elapsed(turn / 6), |_, number| search(number)).await;
    let meter = CpuMeter::start(Some(server.pid()))?;
    let full = drive(args.callers, Until::Elapsed(turn / 2), |_, number| search(number)).await;
    let shares = meter.shares()?;
    if full.num_errors() > 0 {
        return Err(format!("searches failed at full load: {:?}", full.errors).into());
    }
    let (capacity, at_full) = (full.rate(), Latencies::of(&full.latencies));
    let cores = |shares: antiphon_benches::proc::CpuShares| {
        format!("{:.2}, {:.2}, {:.2}", shares.server, shares.own, shares.others)
    };
    let mut table = vec![vec![
        format!("{} callers", args.callers),
        "-".into(),
        format!("{capacity:.0}"),
        "1".into(),
        format!("{:.1}", at_full.p50_ms),
        format!("{:.1}", at_full.p99_ms),
        "1".into(),
        "0".into(),
        "0".into(),
        mib(status_bytes(server.pid(), "RssAnon")?),
        cores(shares),
    ]];
    for times in &args.times {
        note(&format!("{times} times {capacity:.0} calls/s"));
        let meter = CpuMeter::start(Some(server.pid()))?;
        let offered = offer(capacity * times, turn, MAX_IN_FLIGHT, search).await;
        let shares = meter.shares()?;
        let latencies = Latencies::of(&offered.driven.latencies);
        let refused: usize =
            offered.driven.errors.iter().filter(|(name, _)| name.contains("OVERLOADED")).map(|(_, count)| count).sum();
        let sent = latencies.count + offered.driven.num_errors();
        table.push(vec![
            format!("{times} × capacity"),
            format!("{:.0}", sent as f64 / turn.as_secs_f64()),
            format!("{:.0}", offered.driven.rate()),
            format!("{:.2}", offered.driven.rate() / capacity),
            format!("{:.1}", latencies.p50_ms),
            format!("{:.1}", latencies.p99_ms),
            format!("{:.2}", latencies.p99_ms / at_full.p99_ms),
            refused.to_string(),
            (offered.driven.num_errors() - refused + offered.num_unsent).to_string(),
            mib(status_bytes(server.pid(), "RssAnon")?),
            cores(shares),
        ]);
    }
    server.stop().await?;
    tell_table(&HEAD, &table, &args.json)
}
