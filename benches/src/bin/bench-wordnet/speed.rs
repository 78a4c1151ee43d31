//! Latency of one caller and throughput of many, the raw libraries in turns with the server.

use std::time::{Duration, Instant};

use antiphon_benches::Outcome;
use antiphon_benches::child_server::ChildServer;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::drive::{Until, drive};
use antiphon_benches::proc::{CpuMeter, CpuShares};
use antiphon_benches::queries::Query;
use antiphon_benches::report::{Report, note};
use antiphon_benches::stats::{Latencies, median};

use crate::raw::{Raw, RawFigures, WINDOW};
use crate::{Args, COLLECTION};

pub(crate) async fn latencies(
    args: &Args,
    raw: &Raw,
    queries: &[Query],
    server: &ChildServer,
    client: &Client,
    report: &mut Report,
) -> Outcome<()> {
    note("latency of one caller, in turns");
    let mut times: [Vec<Duration>; 6] = Default::default();
    let meter = CpuMeter::start(Some(server.pid()))?;
    let methods = [Method::Hybrid, Method::Vector, Method::Keyword];
    let warm_up = &queries[..queries.len().min(100)];
    for query in warm_up {
        raw.pair(query)?;
        client.search(Search::new(Method::Hybrid, query, options(COLLECTION, 10))).await?;
    }
    for block in queries.chunks(queries.len().div_ceil(args.turns).max(1)) {
        for query in block {
            let begun = Instant::now();
            raw.graph.search(&query.vector, WINDOW)?;
            times[3].push(begun.elapsed());
        }
        for query in block {
            let begun = Instant::now();
            raw.text.search(&query.text, WINDOW)?;
            times[4].push(begun.elapsed());
        }
        for query in block {
            let begun = Instant::now();
            raw.text.search(&query.text, 11)?;
            times[5].push(begun.elapsed());
        }
        for (place, method) in methods.into_iter().enumerate() {
            for query in block {
                let search = Search::new(method, query, options(COLLECTION, 10));
                let begun = Instant::now();
                client.search(search).await?;
                times[place].push(begun.elapsed());
            }
        }
    }
    let others = meter.shares()?.others;
    let [hybrid, vector, keyword, graph, text, text_short] = times.map(|times| Latencies::of(&times));
    let ms = |ms: f64| format!("{ms:.3}");
    let pair = graph.p50_ms + text.p50_ms;
    let over = hybrid.p50_ms - pair;
    report.compare_target(
        "SearchHybrid page of 10, ms median (raw: usearch + tantivy)",
        ms(hybrid.p50_ms),
        ms(pair),
        format!("{:.2}, {over:+.3} ms", hybrid.p50_ms / pair),
        "raw + 0.5 ms",
        over <= 0.5,
    );
    report.unless_busy(others);
    report.compare(
        "the same, ms 99 % (raw: sum of both)",
        ms(hybrid.p99_ms),
        ms(graph.p99_ms + text.p99_ms),
        hybrid.p99_ms / (graph.p99_ms + text.p99_ms),
    );
    report.compare(
        "SearchVector, ms median (raw: usearch, depth 384)",
        ms(vector.p50_ms),
        ms(graph.p50_ms),
        vector.p50_ms / graph.p50_ms,
    );
    report.compare(
        "SearchKeyword, ms median (raw: tantivy, 100 best)",
        ms(keyword.p50_ms),
        ms(text.p50_ms),
        keyword.p50_ms / text.p50_ms,
    );
    report.compare_raw("tantivy, 11 best as a page of 10 needs, ms median", ms(text_short.p50_ms));
    Ok(())
}

pub(crate) async fn throughput(
    args: &Args,
    raw: &Raw,
    queries: &[Query],
    server: &ChildServer,
    report: &mut Report,
) -> Outcome<()> {
    note(&format!("throughput: {} callers, and raw pairs on two threads, in turns", args.callers));
    let mut clients = Vec::new();
    for _ in 0..args.connections.max(1) {
        clients.push(Client::connect(&server.url).await?);
    }
    let call = |caller: usize, number: usize| {
        let client = clients[caller % clients.len()].clone();
        let search = Search::new(Method::Hybrid, &queries[number % queries.len()], options(COLLECTION, 10));
        async move { client.search(search).await.map(drop) }
    };
    let span = Duration::from_secs(args.turn_s);
    drive(args.callers, Until::Elapsed(Duration::from_secs(1)), call).await;
    let (mut ours, mut raws, mut ratios, mut cpu, mut raw_cpu) = (vec![], vec![], vec![], vec![], vec![]);
    let (mut shares, mut latencies, mut errors) = (Vec::<CpuShares>::new(), vec![], 0);
    for _ in 0..args.turns.max(1) {
        let (raw_rate, raw_cpu_s) = raw.throughput(queries, span)?;
        let meter = CpuMeter::start(Some(server.pid()))?;
        let driven = drive(args.callers, Until::Elapsed(span), call).await;
        let share = meter.shares()?;
        ours.push(driven.rate());
        raws.push(raw_rate);
        ratios.push(driven.rate() / raw_rate);
        cpu.push(share.server * share.wall_s / driven.latencies.len().max(1) as f64 * 1e3);
        raw_cpu.push(raw_cpu_s * 1e3);
        errors += driven.num_errors();
        shares.push(share);
        latencies.extend(driven.latencies);
    }
    let ratio = median(&ratios);
    let (ours, raws) = (format!("{:.0}", median(&ours)), format!("{:.0}", median(&raws)));
    let words = format!("SearchHybrid, {} callers, calls/s (raw: pairs/s on two threads)", args.callers);
    report.compare_target(&words, ours, raws, format!("{ratio:.2}"), "≥ 0.6", ratio >= 0.6);
    report.unless_busy(median(&shares.iter().map(|share| share.others).collect::<Vec<_>>()));
    let (cpu, raw_cpu) = (median(&cpu), median(&raw_cpu));
    report.compare("CPU ms a call (raw: a pair)", format!("{cpu:.3}"), format!("{raw_cpu:.3}"), cpu / raw_cpu);
    let of = |part: fn(&CpuShares) -> f64| median(&shares.iter().map(part).collect::<Vec<_>>());
    let words = "meanwhile, cores: load generator / server / other processes";
    report.add(words, format!("{:.2} / {:.2} / {:.2}", of(|s| s.own), of(|s| s.server), of(|s| s.others)));
    let latencies = Latencies::of(&latencies);
    report.add("latency then, ms median / 99 %", format!("{:.2} / {:.2}", latencies.p50_ms, latencies.p99_ms));
    report.add_target("errors then", errors.to_string(), "0", errors == 0);
    Ok(())
}
