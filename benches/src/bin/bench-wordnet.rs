//! The main benchmark: one run over a data folder, the product beside raw usearch and raw tantivy, ratios.
//!
//! What is compared is measured in turns, in this one run, so that a busy machine slows both.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use antiphon_benches::child_server::{ChildServer, ServerArgs};
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::corpus::Corpus;
use antiphon_benches::documents::document;
use antiphon_benches::drive::{Until, drive};
use antiphon_benches::exact::{cosine, nearest, recall};
use antiphon_benches::import::{ImportPlan, import};
use antiphon_benches::proc::{CpuMeter, CpuShares, MemorySampler, cpu_s, max_anon, status_bytes};
use antiphon_benches::queries::{self, Query};
use antiphon_benches::raw_graph::{GraphOptions, RawGraph};
use antiphon_benches::raw_text::RawText;
use antiphon_benches::report::{self, Report, mib, note};
use antiphon_benches::rest::wait_for_rest;
use antiphon_benches::stats::{Latencies, median};
use antiphon_benches::{Outcome, runtime};
use clap::Parser;

const COLLECTION: &str = "bench";
/// Matches that raw tantivy is asked for, and a window of the product's holds.
const WINDOW: usize = 100;
/// Queries whose exact answer is computed here, beside the server's.
const CHECKED_QUERIES: usize = 50;
/// Restarts; the median is told.
const RESTARTS: usize = 3;

/// Compares a server with raw usearch and raw tantivy over the same data, and prints a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// The data folder: corpus.jsonl.gz and docs.npy (see README.md).
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Only the first so many documents.
    #[arg(long)]
    limit: Option<usize>,
    /// Queries.
    #[arg(long, default_value_t = 1000)]
    queries: usize,
    /// Seed of the queries.
    #[arg(long, default_value_t = 20_260_101)]
    seed: u64,
    /// Turns between the product and the raw libraries.
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Callers at once when throughput is measured.
    #[arg(long, default_value_t = 16)]
    callers: usize,
    /// Connections that they share.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Seconds of each turn of throughput.
    #[arg(long, default_value_t = 4)]
    turn_s: u64,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-wordnet.json")]
    json: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

fn main() -> Outcome<()> {
    let args = Args::parse();
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
        import_all(&corpus, &raw, &server, &client, &mut report).await?;
        latencies(&args, &raw, &queries, &client, &mut report).await?;
        throughput(&args, &raw, &queries, &server, &mut report).await?;
        correctness(&corpus, &queries, &client, &mut report).await?;
        drop(client);
        restarts(&args, &queries, server, data.path(), &mut report).await
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

/// The raw libraries, and what building with them took.
struct Raw {
    graph: RawGraph,
    text: RawText,
    docs_per_s: f64,
    cpu_s: f64,
    _dir: tempfile::TempDir,
}

impl Raw {
    /// Builds the graph on one thread and the text index on another.
    fn build(corpus: &Corpus, args: &Args, report: &mut Report) -> Outcome<Self> {
        note("raw: building graph and text index, a thread each");
        let dir = args.server.temp_dir()?;
        let (meter, begun) = (CpuMeter::start(None)?, Instant::now());
        let (graph, text) = std::thread::scope(|scope| {
            let graph = scope.spawn(|| RawGraph::build(&corpus.vectors, GraphOptions::default(), 2));
            let text = RawText::build(&corpus.entries, dir.path());
            (graph.join().unwrap_or_else(|_| Err("the build failed".into())), text)
        });
        let (graph, text, wall_s, shares) = (graph?, text?, begun.elapsed().as_secs_f64(), meter.shares()?);
        let docs_per_s = corpus.len() as f64 / wall_s;
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        report.compare_raw("usearch build, one thread", seconds(graph.build_time));
        report.compare_raw("tantivy build, one thread", seconds(text.build_time));
        report.compare_raw("both, a thread each, documents/s", format!("{docs_per_s:.0}"));
        report.compare_raw("other processes meanwhile, cores", format!("{:.2}", shares.others));
        Ok(Self { graph, text, docs_per_s, cpu_s: shares.own * shares.wall_s, _dir: dir })
    }

    fn pair(&self, query: &Query) -> Outcome<()> {
        self.graph.search(&query.vector, WINDOW)?;
        self.text.search(&query.text, WINDOW)?;
        Ok(())
    }

    /// Pairs a second on two threads, and the CPU seconds of one.
    fn throughput(&self, queries: &[Query], span: Duration) -> Outcome<(f64, f64)> {
        let (meter, begun) = (CpuMeter::start(None)?, Instant::now());
        let counts: Vec<Outcome<usize>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut count = 0;
                        for query in queries.iter().cycle().skip(thread * queries.len() / 2) {
                            if begun.elapsed() >= span {
                                break;
                            }
                            self.pair(query)?;
                            count += 1;
                        }
                        Ok(count)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread failed".into()))).collect()
        });
        let (elapsed, shares) = (begun.elapsed().as_secs_f64(), meter.shares()?);
        let count = counts.into_iter().sum::<Outcome<usize>>()? as f64;
        Ok((count / elapsed, shares.own * shares.wall_s / count))
    }
}

trait RawFigures {
    fn compare_raw(&mut self, figure: &str, raw: String);
}

impl RawFigures for Report {
    fn compare_raw(&mut self, figure: &str, raw: String) {
        self.figures.push(report::Figure { figure: figure.into(), raw, ..report::Figure::default() });
    }
}

async fn import_all(
    corpus: &Corpus,
    raw: &Raw,
    server: &ChildServer,
    client: &Client,
    report: &mut Report,
) -> Outcome<()> {
    note("ours: importing, then waiting until all is sealed and merged");
    client.create(COLLECTION, corpus.vectors.dims, 1).await?;
    let sampler = MemorySampler::start(server.pid(), Duration::from_millis(20));
    let (meter, begun) = (CpuMeter::start(Some(server.pid()))?, Instant::now());
    let plan = ImportPlan { collection: COLLECTION, batch: 500, probe_every: 5, progress: Some(&sampler.progress) };
    let imported = import(client, plan, (0..corpus.len()).map(|row| document(corpus, row))).await?;
    let importing = meter.shares()?;
    let rest = wait_for_rest(client, server.pid()).await?;
    let to_rest_s = rest.since.duration_since(begun).as_secs_f64();
    let server_cpu_s = cpu_s(server.pid())?;
    let whole = meter.shares()?;
    let samples = sampler.stop()?;
    if (imported.num_docs, rest.num_docs) != (corpus.len() as u64, corpus.len() as u64) {
        return Err(format!("{} acknowledged, {} there", imported.num_docs, rest.num_docs).into());
    }

    let docs = corpus.len() as f64;
    let rate = docs / imported.elapsed.as_secs_f64();
    report.compare(
        "import, documents/s acknowledged",
        format!("{rate:.0}"),
        format!("{:.0}", raw.docs_per_s),
        rate / raw.docs_per_s,
    );
    let rate = docs / to_rest_s;
    let words = "documents/s until sealed and merged, waits of 30 s and 5 s included";
    report.compare(words, format!("{rate:.0}"), format!("{:.0}", raw.docs_per_s), rate / raw.docs_per_s);
    let ours = format!("{server_cpu_s:.1} s");
    report.compare("CPU time of it all", ours, format!("{:.1} s", raw.cpu_s), server_cpu_s / raw.cpu_s);
    let shares = format!("{:.2} / {:.2}", importing.own, importing.server);
    report.add("importing: cores of client / server", shares);
    report.add("importing: other processes, cores", format!("{:.2}", importing.others));
    report.add("until at rest: other processes, cores", format!("{:.2}", whole.others));
    let probes = Latencies::of(&imported.probes);
    let words = format!("acknowledged batches not visible to the next search, of {}", probes.count);
    report.add_target(&words, imported.num_invisible.to_string(), "0", imported.num_invisible == 0);
    report.add("search while importing, ms median / max", format!("{:.2} / {:.2}", probes.p50_ms, probes.max_ms));
    report.add("RssAnon, highest until at rest", mib(max_anon(&samples)));
    report.add("segments at rest; their files", format!("{}; {}", rest.num_segments, mib(rest.size_bytes)));
    Ok(())
}

async fn latencies(args: &Args, raw: &Raw, queries: &[Query], client: &Client, report: &mut Report) -> Outcome<()> {
    note("latency of one caller, in turns");
    let mut times: [Vec<Duration>; 6] = Default::default();
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

async fn throughput(
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

async fn correctness(corpus: &Corpus, queries: &[Query], client: &Client, report: &mut Report) -> Outcome<()> {
    note("recall and scores");
    let rows: std::collections::HashMap<&str, usize> =
        corpus.entries.iter().enumerate().map(|(row, entry)| (entry.id.as_str(), row)).collect();
    let (mut recall_10, mut recall_100, mut worst_score, mut exact_times) = (vec![], vec![], 0.0f64, vec![]);
    let mut differing = 0;
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
    report.add_target("SearchVector recall@10 against exact", format!("{at_10:.4}"), "≥ 0.99", at_10 >= 0.99);
    report.add_target("SearchVector recall@100 against exact", format!("{at_100:.4}"), "≥ 0.97", at_100 >= 0.97);
    let words =
        format!("exact answers that differ from those computed here, of {}", CHECKED_QUERIES.min(queries.len()));
    report.add_target(&words, differing.to_string(), "0", differing == 0);
    report.add_target("largest error of a score", format!("{worst_score:.1e}"), "≤ 1e-6", worst_score <= 1e-6);
    report.add("exact search of 100, ms median", format!("{:.1}", Latencies::of(&exact_times).p50_ms));
    Ok(())
}

async fn restarts(
    args: &Args,
    queries: &[Query],
    mut server: ChildServer,
    data: &Path,
    report: &mut Report,
) -> Outcome<()> {
    note("restarting");
    let (mut starts, mut stops, mut firsts) = (vec![], vec![], vec![]);
    for _ in 0..RESTARTS {
        stops.push(server.stop().await?.as_secs_f64() * 1e3);
        server = args.server.start(data)?;
        starts.push(server.start_time.as_secs_f64() * 1e3);
        let client = Client::connect(&server.url).await?;
        let search = Search::new(Method::Hybrid, &queries[0], options(COLLECTION, 10));
        let begun = Instant::now();
        client.search(search).await?;
        firsts.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let start = median(&starts);
    report.add("from SIGTERM to the end, ms", format!("{:.0}", median(&stops)));
    report.add_target("from start to `listening on`, ms", format!("{start:.0}"), "< 1000", start < 1000.0);
    report.add("first search after that, ms", format!("{:.1}", median(&firsts)));
    let anon = status_bytes(server.pid(), "RssAnon")?;
    report.add_target("RssAnon after the restart", mib(anon), "< 150 MB", anon < 150_000_000);
    let client = Client::connect(&server.url).await?;
    for query in queries {
        client.search(Search::new(Method::Hybrid, query, options(COLLECTION, 10))).await?;
    }
    report.add("RssAnon after all queries", mib(status_bytes(server.pid(), "RssAnon")?));
    server.stop().await?;
    Ok(())
}
