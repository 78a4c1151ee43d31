//! Filtered vector search beside raw usearch with a predicate and a raw scan of the matches, in turns, in one run.
//!
//! The raw libraries are called; the product is asked over gRPC. What a call costs without a search is measured too, by a
//! filter that nothing meets, and told; the verdict is on the difference.

use std::collections::BTreeMap;
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
use antiphon_benches::queries::{self, Query, normalise};
use antiphon_benches::raw_graph::{GraphOptions, RawGraph};
use antiphon_benches::report::{self, Report, note};
use antiphon_benches::rest::wait_for_rest;
use antiphon_benches::stats::Latencies;
use antiphon_benches::{Outcome, runtime};
use antiphon_proto::v1::filter::Condition;
use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::{
    AttributeField, AttributeType, Collection, CreateCollectionRequest, Document, Equal, Filter, Range, Schema, Value,
    ValueList, VectorField,
};
use clap::Parser;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;

const COLLECTION: &str = "filtered";
const WINDOW: usize = 10;
/// Shares of the documents that filters let pass.
const SHARES: [f64; 8] = [0.5, 0.2, 0.1, 0.05, 0.01, 0.001, 0.0005, 0.0001];

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
    filter: Filter,
    rows: Vec<usize>,
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
    let mut report = Report::default();
    let data = args.server.temp_dir()?;
    runtime()?.block_on(async {
        let server = args.server.start(data.path())?;
        let client = Client::connect(&server.url).await?;
        create(&client, vectors.dims).await?;
        note("ours: importing, then waiting until all is sealed and merged");
        let plan = ImportPlan { collection: COLLECTION, batch: 500, probe_every: 0, progress: None };
        let (entries, held) = (&corpus, &attributes);
        let from = |first: u64| (first as usize..entries.len()).map(move |row| with_attributes(entries, held, row));
        import_resuming(&client, plan, from).await?;
        let rest = wait_for_rest(&client, server.pid()).await?;
        report.add("segments at rest", rest.num_segments.to_string());
        let floor = floor(&client, &queries).await?;
        report.add("a call whose filter nothing meets, ms median", format!("{floor:.3}"));
        for asked in &asked {
            measure(asked, &client, &graph, &vectors, &corpus, &queries, floor, &mut report).await?;
        }
        drop(client);
        server.stop().await
    })?;
    report::print(&format!("{} documents of {} dimensions, {} queries.\n", corpus.len(), vectors.dims, queries.len()));
    report::print(&report.markdown());
    report::write_json(&args.json, &serde_json::json!({ "documents": corpus.len(), "figures": report.figures }))
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
    let mut asked = Vec::new();
    for share in SHARES {
        let wanted = (attributes.len() as f64 * share).ceil() as usize;
        let bound = sizes[wanted.min(sizes.len() - 1)];
        let range =
            Range { field: "size".into(), lt: Some(Value { kind: Some(Kind::Int64(bound)) }), ..Range::default() };
        let rows = (0..attributes.len()).filter(|row| attributes[*row].size < bound).collect();
        asked.push(Asked {
            name: format!("size < {bound}"),
            filter: Filter { condition: Some(Condition::Range(range)) },
            rows,
        });
        let distance = |rows: &Vec<usize>| (rows.len() as f64 / wanted as f64).ln().abs();
        let nearest = named.iter().min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
        if let Some(((field, value), rows)) = nearest {
            let equal = Equal { field: (*field).into(), value: Some(string(value)) };
            let filter = Filter { condition: Some(Condition::Equal(equal)) };
            asked.push(Asked { name: format!("{field} = {value}"), filter, rows: rows.clone() });
        }
    }
    asked.retain(|asked| !asked.rows.is_empty());
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
    document.fields.insert("size".into(), Value { kind: Some(Kind::Int64(held.size)) });
    let values = held.tags.iter().map(|tag| string(tag)).collect();
    document.fields.insert("tags".into(), Value { kind: Some(Kind::List(ValueList { values })) });
    document
}

fn request(query: &Query, filter: &Filter) -> Search {
    let mut options = options(COLLECTION, WINDOW as u32);
    options.filter = Some(filter.clone());
    options.fields = vec!["priority".into()];
    Search::new(Method::Vector, query, options)
}

async fn floor(client: &Client, queries: &[Query]) -> Outcome<f64> {
    let none = Filter { condition: Some(Condition::SomeOf(Default::default())) };
    let mut times = Vec::new();
    for query in queries {
        let begun = Instant::now();
        client.search(request(query, &none)).await?;
        times.push(begun.elapsed());
    }
    Ok(Latencies::of(&times).p50_ms)
}

#[expect(clippy::too_many_arguments, reason = "what is compared")]
async fn measure(
    asked: &Asked,
    client: &Client,
    graph: &RawGraph,
    vectors: &Matrix,
    corpus: &Corpus,
    queries: &[Query],
    floor_ms: f64,
    report: &mut Report,
) -> Outcome<()> {
    let mut passes = vec![false; corpus.len()];
    asked.rows.iter().for_each(|row| passes[*row] = true);
    let row_of: std::collections::HashMap<&str, usize> =
        corpus.entries.iter().enumerate().map(|(row, entry)| (entry.id.as_str(), row)).collect();
    let wanted = WINDOW.min(asked.rows.len());
    let depth = GraphOptions::default().expansion_search;
    let (mut ours, mut scans, mut graphs): (Vec<Duration>, Vec<Duration>, Vec<Duration>) = Default::default();
    let (mut hits, mut raw_hits, mut fewer) = (0, 0, 0);
    for query in queries {
        let mut unit = query.vector.clone();
        normalise(&mut unit);
        let begun = Instant::now();
        let found = client.search(request(query, &asked.filter)).await?.matches;
        ours.push(begun.elapsed());
        let begun = Instant::now();
        let scanned = scan(vectors, &asked.rows, &unit);
        scans.push(begun.elapsed());
        let begun = Instant::now();
        let mut by_graph = graph.filtered_search(&unit, depth, |key| passes[key as usize])?;
        by_graph.truncate(WINDOW);
        graphs.push(begun.elapsed());
        // By score, so that of equal ones any is right.
        let least = scanned.last().map_or(0.0, |row| cosine(corpus.vectors.row(*row), &query.vector)) - 1e-6;
        let is_hit = |row: usize| cosine(corpus.vectors.row(row), &query.vector) >= least;
        fewer += usize::from(found.len() < wanted);
        hits += found.iter().filter(|found| row_of.get(found.key.as_str()).is_some_and(|row| is_hit(*row))).count();
        raw_hits += by_graph.iter().filter(|key| is_hit(**key as usize)).count();
    }
    let all = (wanted * queries.len()) as f64;
    let (recall, raw_recall) = (hits as f64 / all, raw_hits as f64 / all);
    let share = 100.0 * asked.rows.len() as f64 / corpus.len() as f64;
    let name = format!("{share:.3} %: {}", asked.name);
    let words = format!("{name}: recall@10 (raw graph); answers with fewer than there are");
    let told = format!("{recall:.4} ({raw_recall:.4}); {fewer}");
    report.add_target(&words, told, "≥ 0.99; 0", recall >= 0.99 && fewer == 0);
    let (ours, scan, graph) =
        (Latencies::of(&ours).p50_ms, Latencies::of(&scans).p50_ms, Latencies::of(&graphs).p50_ms);
    let net = (ours - floor_ms).max(0.0);
    let ratio = net / scan.min(graph);
    report.compare_target(
        &format!("{name}: ms median, without the call (with); raw scan, raw graph"),
        format!("{net:.3} ({ours:.3})"),
        format!("{scan:.3}, {graph:.3}"),
        format!("{ratio:.2}"),
        "≤ 1.3",
        ratio <= 1.3,
    );
    Ok(())
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
