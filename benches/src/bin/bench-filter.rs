//! Filtered vector search beside raw usearch with a predicate and a raw scan of the matches, in turns, in one run.
//!
//! The raw libraries are called in this process, give row numbers, and get the rows that match for nothing. The product is
//! asked over gRPC, and gives ten documents. What that costs whoever finds them is measured apart, as the *price*: a search
//! for the same query whose filter names just the documents that the search before it found. It finds them by comparing
//! ten vectors, and otherwise does all that an answer with these documents takes: the call, the filter, the thread that
//! searches, reading the documents, encoding. It is asked once before it is measured, so that its filter is as well known
//! as the other. The verdict is on the difference of the medians, and the undiminished median stands beside it. Each kind of call runs in stretches of its own, so that each finds caches as it left them, and the
//! stretches take turns. *Noise* is how far the medians of the first and of the second half of the turns lie apart, of
//! search and price together: differences below it say nothing.
//!
//! A filter that was asked before may be answered from memory. What a filter costs that was not is measured too: each
//! time with another condition added, which changes nothing.
//!
//! Where the raw graph at its default depth finds less than the product, it is also asked at the least of some depths that
//! finds as much.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use antiphon_benches::child_server::ServerArgs;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::corpus::Corpus;
use antiphon_benches::documents::{document, string};
use antiphon_benches::exact::cosine;
use antiphon_benches::import::{ImportPlan, import_resuming};
use antiphon_benches::npy::Matrix;
use antiphon_benches::proc::CpuMeter;
use antiphon_benches::queries::{self, Query, normalise};
use antiphon_benches::raw_graph::{GraphOptions, RawGraph};
use antiphon_benches::report::{self, note};
use antiphon_benches::rest::wait_for_rest;
use antiphon_benches::stats::Latencies;
use antiphon_benches::{Outcome, runtime};
use antiphon_proto::v1::filter::Condition;
use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::{
    AnyOf, AttributeField, AttributeType, Collection, CreateCollectionRequest, Document, Equal, Filter, FilterList,
    Range, Schema, Value, ValueList, VectorField,
};
use clap::Parser;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

const COLLECTION: &str = "filtered";
const WINDOW: usize = 10;
/// The attribute that names a single document.
const PLACE: &str = "place";
/// How many times as long as the better raw search it may take.
const LIMIT: f64 = 1.3;
/// Depths of the raw graph beyond its default.
const DEPTHS: [usize; 8] = [448, 512, 640, 768, 1_024, 1_280, 1_536, 2_048];
/// Shares of the documents that filters let pass.
const SHARES: [f64; 11] = [0.995, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01, 0.001, 0.0005, 0.0001];

/// Compares filtered vector search with raw usearch and a raw scan, and prints a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// The data folder: corpus.jsonl.gz with section, priority, size and tags, and docs.npy.
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Only the first so many documents.
    #[arg(long)]
    limit: Option<usize>,
    /// Queries of each filter.
    #[arg(long, default_value_t = 200)]
    queries: usize,
    /// Turns that they are asked in.
    #[arg(long, default_value_t = 4)]
    turns: usize,
    /// Only filters whose share of documents in percent is at least this.
    #[arg(long, default_value_t = 0.0)]
    least: f64,
    /// Only filters whose share of documents in percent is at most this.
    #[arg(long, default_value_t = 100.0)]
    most: f64,
    /// Only the searches of the product, without raw ones, prices and verdicts: for a profile.
    #[arg(long)]
    only_ours: bool,
    /// Ask the product for exact answers: for measuring its scan.
    #[arg(long)]
    exact: bool,
    /// Seed of the queries.
    #[arg(long, default_value_t = 20_260_101)]
    seed: u64,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-filter.json")]
    json: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

/// What a document can be filtered by.
#[derive(Debug, Clone, Deserialize)]
struct Attributes {
    #[serde(default)]
    section: String,
    #[serde(default)]
    priority: String,
    #[serde(default)]
    size: i64,
    #[serde(default)]
    tags: Vec<String>,
}

/// A filter, what it is called, and the rows that meet it.
struct Asked {
    name: String,
    /// Absent: every document is found.
    filter: Option<Filter>,
    rows: Vec<usize>,
}

/// What is compared, the same for every filter.
struct Bench<'a> {
    client: &'a Client,
    graph: &'a RawGraph,
    /// Of unit length.
    vectors: &'a Matrix,
    corpus: &'a Corpus,
    row_of: HashMap<&'a str, usize>,
    queries: &'a [Query],
    args: &'a Args,
}

/// What came of one filter. Times are medians in milliseconds.
#[derive(Debug, Default, Serialize)]
struct Measured {
    percent: f64,
    filter: String,
    recall: f64,
    raw_recall: f64,
    /// Answers with fewer matches than there are.
    fewer: usize,
    called: f64,
    called_unseen: f64,
    price: f64,
    noise: f64,
    net: f64,
    raw_scan: f64,
    raw_graph: f64,
    /// The depth at which the raw graph finds as much, and its time there.
    raw_alike: Option<(usize, f64)>,
    /// Of net and the better of scan and graph.
    ratio: f64,
    /// The same for filters not seen before.
    ratio_unseen: f64,
    /// The same of net and the better of scan and graph where it finds as much.
    ratio_alike: f64,
}

/// Durations of each kind of call, in the order of the turns.
#[derive(Default)]
struct Times {
    ours: Vec<Duration>,
    unseen: Vec<Duration>,
    prices: Vec<Duration>,
    scans: Vec<Duration>,
    graphs: Vec<Duration>,
}

fn main() -> Outcome<()> {
    let args = Args::parse();
    let corpus = Corpus::read(&args.data, args.limit)?;
    let attributes = read_attributes(&args.data, corpus.len())?;
    let queries = queries::make(&corpus, args.queries.max(1), args.seed);
    let asked = filters(&attributes);
    let mut vectors = corpus.vectors.clone();
    vectors.values.chunks_exact_mut(vectors.dims).for_each(normalise);
    note("raw usearch: building on one thread");
    let graph = RawGraph::build(&vectors, GraphOptions::default(), 1)?;
    let data = args.server.temp_dir()?;
    let (mut measured, mut others) = (Vec::new(), 0.0);
    let mut num_segments = 0;
    runtime()?.block_on(async {
        let server = args.server.start(data.path())?;
        let client = Client::connect(&server.url).await?;
        create(&client, vectors.dims).await?;
        note("ours: importing, then waiting until all is sealed and merged");
        let plan = ImportPlan { collection: COLLECTION, batch: 500, probe_every: 0, progress: None };
        let (entries, held) = (&corpus, &attributes);
        let from = |first: u64| (first as usize..entries.len()).map(move |row| with_attributes(entries, held, row));
        import_resuming(&client, plan, from).await?;
        num_segments = wait_for_rest(&client, server.pid()).await?.num_segments;
        let meter = CpuMeter::start(Some(server.pid()))?;
        let row_of = corpus.entries.iter().enumerate().map(|(row, entry)| (entry.id.as_str(), row)).collect();
        let bench = Bench {
            client: &client,
            graph: &graph,
            vectors: &vectors,
            corpus: &corpus,
            row_of,
            queries: &queries,
            args: &args,
        };
        for asked in &asked {
            let percent = 100.0 * asked.rows.len() as f64 / corpus.len() as f64;
            if percent < args.least || percent > args.most {
                continue;
            }
            note(&format!("{percent:.3} %: {}", asked.name));
            measured.push(bench.measure(asked).await?);
        }
        others = meter.shares()?.others;
        drop(bench);
        drop(client);
        server.stop().await
    })?;
    report::print(&format!(
        "{} documents of {} dimensions in {num_segments} segments, {} queries in {} turns; other processes used {others:.2} cores.\n",
        corpus.len(),
        vectors.dims,
        queries.len(),
        args.turns,
    ));
    report::print(&table(&measured));
    report::write_json(
        &args.json,
        &serde_json::json!({ "documents": corpus.len(), "others": others, "figures": measured }),
    )
}

fn table(measured: &[Measured]) -> String {
    let head = [
        "documents that pass",
        "recall@10 (raw graph)",
        "fewer than there are",
        "ms called (filter unseen)",
        "price",
        "net",
        "noise",
        "raw scan",
        "raw graph",
        "as deep as finds as much",
        "net / better raw",
        "unseen",
        "of equal recall",
        "recall ≥ .99, none fewer",
        "≤ 1.3",
    ];
    let rows = measured.iter().map(|of| {
        let found = if of.recall >= 0.99 && of.fewer == 0 { "yes" } else { "**no**" };
        let best = of.raw_scan.min(of.raw_graph);
        let fast = match of.net {
            net if net <= LIMIT * best => "yes",
            net if net <= LIMIT * best + of.noise => "**no**, within noise",
            _ => "**no**",
        };
        vec![
            format!("{:.3} %: {}", of.percent, of.filter),
            format!("{:.4} ({:.4})", of.recall, of.raw_recall),
            of.fewer.to_string(),
            format!("{:.3} ({:.3})", of.called, of.called_unseen),
            format!("{:.3}", of.price),
            format!("{:.3}", of.net),
            format!("{:.3}", of.noise),
            format!("{:.3}", of.raw_scan),
            format!("{:.3}", of.raw_graph),
            of.raw_alike.map_or("–".into(), |(depth, ms)| format!("{ms:.3} ({depth})")),
            format!("{:.2}", of.ratio),
            format!("{:.2}", of.ratio_unseen),
            format!("{:.2}", of.ratio_alike),
            found.into(),
            fast.into(),
        ]
    });
    report::table(&head, &rows.collect::<Vec<_>>())
}

fn read_attributes(dir: &Path, count: usize) -> Outcome<Vec<Attributes>> {
    let packed = dir.join("corpus.jsonl.gz");
    let reader: Box<dyn Read> = if packed.exists() {
        Box::new(MultiGzDecoder::new(File::open(packed)?))
    } else {
        Box::new(File::open(dir.join("corpus.jsonl"))?)
    };
    BufReader::new(reader).lines().take(count).map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

/// For each share a range of sizes, and the section, priority or tag that comes nearest to it.
fn filters(attributes: &[Attributes]) -> Vec<Asked> {
    let mut sizes: Vec<i64> = attributes.iter().map(|attributes| attributes.size).collect();
    sizes.sort_unstable();
    let mut named: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (row, attributes) in attributes.iter().enumerate() {
        named.entry(("section", attributes.section.as_str())).or_default().push(row);
        named.entry(("priority", attributes.priority.as_str())).or_default().push(row);
        let mut tags: Vec<&str> = attributes.tags.iter().map(String::as_str).collect();
        tags.sort_unstable();
        tags.dedup();
        tags.into_iter().for_each(|tag| named.entry(("tags", tag)).or_default().push(row));
    }
    let mut asked = vec![Asked { name: "no filter".into(), filter: None, rows: (0..attributes.len()).collect() }];
    for share in SHARES {
        let wanted = (attributes.len() as f64 * share).ceil() as usize;
        let bound = sizes[wanted.min(sizes.len() - 1)];
        let range =
            Range { field: "size".into(), lt: Some(Value { kind: Some(Kind::Int64(bound)) }), ..Range::default() };
        let rows = (0..attributes.len()).filter(|row| attributes[*row].size < bound).collect();
        asked.push(Asked {
            name: format!("size < {bound}"),
            filter: Some(Filter { condition: Some(Condition::Range(range)) }),
            rows,
        });
        let distance = |rows: &Vec<usize>| (rows.len() as f64 / wanted as f64).ln().abs();
        let nearest = named.iter().min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
        if let Some(((field, value), rows)) = nearest {
            let equal = Equal { field: (*field).into(), value: Some(string(value)) };
            let filter = Some(Filter { condition: Some(Condition::Equal(equal)) });
            asked.push(Asked { name: format!("{field} = {value}"), filter, rows: rows.clone() });
        }
    }
    asked.retain(|asked| !asked.rows.is_empty());
    asked.sort_by(|a, b| b.rows.len().cmp(&a.rows.len()).then(a.name.cmp(&b.name)));
    asked.dedup_by(|a, b| a.name == b.name);
    asked
}

async fn create(client: &Client, dims: usize) -> Outcome<()> {
    let attribute = |name: &str, of: AttributeType| AttributeField { name: name.into(), r#type: of as i32 };
    let schema = Schema {
        vectors: vec![VectorField { name: "v".into(), dimensions: u32::try_from(dims)?, ..VectorField::default() }],
        attributes: vec![
            attribute("section", AttributeType::String),
            attribute("priority", AttributeType::String),
            attribute("size", AttributeType::Integer),
            attribute("tags", AttributeType::String),
            attribute(PLACE, AttributeType::Integer),
        ],
        ..Schema::default()
    };
    let collection = Collection { name: COLLECTION.into(), schema: Some(schema), ..Collection::default() };
    client.collections.clone().create_collection(CreateCollectionRequest { collection: Some(collection) }).await?;
    Ok(())
}

fn with_attributes(corpus: &Corpus, attributes: &[Attributes], row: usize) -> Document {
    let mut document = document(corpus, row);
    let held = &attributes[row];
    document.fields.insert("section".into(), string(&held.section));
    document.fields.insert("priority".into(), string(&held.priority));
    document.fields.insert("size".into(), integer(held.size));
    document.fields.insert(PLACE.into(), integer(row as i64));
    let values = held.tags.iter().map(|tag| string(tag)).collect();
    document.fields.insert("tags".into(), Value { kind: Some(Kind::List(ValueList { values })) });
    document
}

fn integer(number: i64) -> Value {
    Value { kind: Some(Kind::Int64(number)) }
}

fn request(query: &Query, filter: Option<Filter>, exact: bool) -> Search {
    let mut options = options(COLLECTION, WINDOW as u32);
    options.filter = filter;
    options.fields = vec!["priority".into()];
    options.exact = exact;
    Search::new(Method::Vector, query, options)
}

/// A filter that none before was equal to, for the same documents: no size is below zero.
fn unseen(filter: &Filter, number: usize) -> Filter {
    let impossible = Equal { field: "size".into(), value: Some(integer(-1 - number as i64)) };
    let not = Box::new(Filter { condition: Some(Condition::Equal(impossible)) });
    let filters = vec![filter.clone(), Filter { condition: Some(Condition::Not(not)) }];
    Filter { condition: Some(Condition::AllOf(FilterList { filters })) }
}

impl Bench<'_> {
    async fn measure(&self, asked: &Asked) -> Outcome<Measured> {
        let mut passes = vec![false; self.corpus.len()];
        asked.rows.iter().for_each(|row| passes[*row] = true);
        let wanted = WINDOW.min(asked.rows.len());
        let depth = GraphOptions::default().expansion_search;
        let mut times = Times::default();
        let (mut hits, mut raw_hits, mut fewer) = (0, 0, 0);
        let mut least_scores = Vec::new();
        for turn in self.queries.chunks(self.queries.len().div_ceil(self.args.turns.max(1))) {
            let found = self.ours(turn, &mut times.ours, |_| asked.filter.clone()).await?;
            if self.args.only_ours {
                continue;
            }
            for times in [&mut Vec::new(), &mut times.prices] {
                self.ours(turn, times, |number| Some(only(&found[number]))).await?;
            }
            if let Some(filter) = &asked.filter {
                let before = times.unseen.len();
                self.ours(turn, &mut times.unseen, |number| Some(unseen(filter, before + number))).await?;
            }
            let units: Vec<Vec<f32>> = turn.iter().map(unit).collect();
            let scanned: Vec<_> =
                units.iter().map(|unit| timed(&mut times.scans, || scan(self.vectors, &asked.rows, unit))).collect();
            let by_graph: Vec<_> = units
                .iter()
                .map(|unit| timed(&mut times.graphs, || self.by_graph(unit, asked, &passes, depth)))
                .collect::<Outcome<_>>()?;
            for (number, query) in turn.iter().enumerate() {
                // By score, so that of equal ones any is right.
                let least = scanned[number].last().map_or(0.0, |row| self.score(query, *row)) - 1e-6;
                least_scores.push(least);
                fewer += usize::from(found[number].len() < wanted);
                hits += self.hits(query, &found[number], least);
                raw_hits += self.hits(query, &by_graph[number], least);
            }
        }
        let all = (wanted * self.queries.len()) as f64;
        let median = |times: &[Duration]| Latencies::of(times).p50_ms;
        let apart = |times: &[Duration]| {
            let (first, second) = times.split_at(times.len() / 2);
            (median(first) - median(second)).abs()
        };
        let (called, price) = (median(&times.ours), median(&times.prices));
        let (raw_scan, raw_graph) = (median(&times.scans), median(&times.graphs));
        let net = (called - price).max(0.0);
        let unseen = (median(&times.unseen) - price).max(0.0);
        let mut raw_alike = None;
        // A graph that is much slower than a scan, which finds all, is no better when it is asked for more.
        if !self.args.only_ours && raw_graph < 2.0 * raw_scan {
            for depth in [depth].into_iter().chain(DEPTHS) {
                let mut times = Vec::new();
                let mut found = 0;
                for (query, least) in self.queries.iter().zip(&least_scores) {
                    let unit = unit(query);
                    let rows = timed(&mut times, || self.by_graph(&unit, asked, &passes, depth))?;
                    found += self.hits(query, &rows, *least);
                }
                if found >= hits {
                    raw_alike = Some((depth, median(&times)));
                    break;
                }
            }
        }
        Ok(Measured {
            percent: 100.0 * asked.rows.len() as f64 / self.corpus.len() as f64,
            filter: asked.name.clone(),
            recall: hits as f64 / all,
            raw_recall: raw_hits as f64 / all,
            fewer,
            called,
            called_unseen: median(&times.unseen),
            price,
            noise: apart(&times.ours).max(apart(&times.prices)),
            net,
            raw_scan,
            raw_graph,
            raw_alike,
            ratio: net / raw_scan.min(raw_graph),
            ratio_unseen: unseen / raw_scan.min(raw_graph),
            ratio_alike: net / raw_alike.map_or(raw_scan, |(_, ms)| raw_scan.min(ms)),
        })
    }

    /// Asks the product for each query, and gives the rows of the documents found.
    async fn ours(
        &self,
        queries: &[Query],
        times: &mut Vec<Duration>,
        filter: impl Fn(usize) -> Option<Filter>,
    ) -> Outcome<Vec<Vec<usize>>> {
        let mut answers = Vec::with_capacity(queries.len());
        for (number, query) in queries.iter().enumerate() {
            let request = request(query, filter(number), self.args.exact);
            let begun = Instant::now();
            let answer = self.client.search(request).await?;
            times.push(begun.elapsed());
            let rows = answer.matches.iter().map(|found| self.row_of.get(found.key.as_str()).copied());
            answers.push(rows.collect::<Option<_>>().ok_or("an answer names a key that was not imported")?);
        }
        Ok(answers)
    }

    fn score(&self, query: &Query, row: usize) -> f64 {
        cosine(self.corpus.vectors.row(row), &query.vector)
    }

    /// How many of the rows score at least so high.
    fn hits(&self, query: &Query, rows: &[usize], least: f64) -> usize {
        rows.iter().filter(|row| self.score(query, **row) >= least).count()
    }

    fn by_graph(&self, unit: &[f32], asked: &Asked, passes: &[bool], depth: usize) -> Outcome<Vec<usize>> {
        let mut found = match asked.filter {
            None => self.graph.search(unit, depth)?,
            Some(_) => self.graph.filtered_search(unit, depth, |key| passes[key as usize])?,
        };
        found.truncate(WINDOW);
        Ok(found.into_iter().map(|key| key as usize).collect())
    }
}

/// The query's vector, made of unit length.
fn unit(query: &Query) -> Vec<f32> {
    let mut unit = query.vector.clone();
    normalise(&mut unit);
    unit
}

/// A filter that just these rows meet.
fn only(rows: &[usize]) -> Filter {
    let values = rows.iter().map(|row| integer(*row as i64)).collect();
    Filter { condition: Some(Condition::AnyOf(AnyOf { field: PLACE.into(), values })) }
}

fn timed<T>(times: &mut Vec<Duration>, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    times.push(begun.elapsed());
    done
}

/// The best rows by inner product, in sixteen lanes that a compiler makes instructions of.
fn scan(vectors: &Matrix, rows: &[usize], query: &[f32]) -> Vec<usize> {
    let dot = |row: usize| {
        let mut lanes = [0.0f32; 16];
        let (a, b) = (vectors.row(row).as_chunks::<16>(), query.as_chunks::<16>());
        for (a, b) in a.0.iter().zip(b.0) {
            lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (a, b))| *lane += a * b);
        }
        let rest: f32 = a.1.iter().zip(b.1).map(|(a, b)| a * b).sum();
        lanes.iter().sum::<f32>() + rest
    };
    let mut scored: Vec<(f32, usize)> = rows.iter().map(|row| (dot(*row), *row)).collect();
    let order = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if scored.len() > WINDOW {
        scored.select_nth_unstable_by(WINDOW, order);
        scored.truncate(WINDOW);
    }
    scored.sort_by(order);
    scored.into_iter().map(|(_, row)| row).collect()
}
