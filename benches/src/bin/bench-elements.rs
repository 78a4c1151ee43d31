//! What graphs of each element type cost and find: size, time to build, recall, latency, throughput.
//!
//! One server and one fresh folder for each element type; the same vectors and queries, cosine. Depths are
//! `expansion_search`: the fewer bits a graph holds, the more candidates it takes to find as many of the best.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_benches::child_server::ServerArgs;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::corpus::Corpus;
use antiphon_benches::drive::{Until, drive};
use antiphon_benches::exact::recall;
use antiphon_benches::import::{ImportPlan, import};
use antiphon_benches::proc::CpuMeter;
use antiphon_benches::queries::{self, Query};
use antiphon_benches::report::{self, mib, note};
use antiphon_benches::rest::{AtRest, wait_for_rest};
use antiphon_benches::stats::Latencies;
use antiphon_benches::{Outcome, runtime};
use antiphon_proto::v1::{
    Collection, CreateCollectionRequest, Document, ElementType, Hnsw, Metric, Schema, SearchOptions,
    UpdateCollectionRequest, VectorField,
};
use antiphon_proto::vector;
use clap::Parser;

const COLLECTION: &str = "bench";
const ELEMENTS: [(ElementType, &str); 5] = [
    (ElementType::Float32, "float32"),
    (ElementType::Float16, "float16"),
    (ElementType::Bfloat16, "bfloat16"),
    (ElementType::Int8, "int8"),
    (ElementType::Bit, "bit"),
];

/// Compares the element types of graphs, and prints a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// The data folder: corpus.jsonl.gz and docs.npy (see README.md).
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Only the first so many documents.
    #[arg(long)]
    limit: Option<usize>,
    /// Depths of search.
    #[arg(long, value_delimiter = ',', default_values_t = [384, 1_536])]
    depths: Vec<u32>,
    /// Queries.
    #[arg(long, default_value_t = 300)]
    queries: usize,
    /// Callers at once when throughput is measured.
    #[arg(long, default_value_t = 16)]
    callers: usize,
    /// Seconds of throughput.
    #[arg(long, default_value_t = 5)]
    turn_s: u64,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-elements.json")]
    json: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

const HEAD: [&str; 11] = [
    "element",
    "graph",
    "to rest s",
    "server CPU s",
    "depth",
    "recall@10",
    "recall@100",
    "vector ms 50 %",
    "vector ms 99 %",
    "calls/s",
    "others' cores",
];

fn main() -> Outcome<()> {
    let mut args = Args::parse();
    if args.server.set.is_empty() {
        // Nothing is written after the import, so there is no reason to wait for more.
        args.server.set.push("sealing.seal_age_s=2".into());
    }
    let corpus = Corpus::read(&args.data, args.limit)?;
    let queries = queries::make(&corpus, args.queries, 7);
    let mut table = Vec::new();
    for element in ELEMENTS {
        note(element.1);
        table.extend(runtime()?.block_on(lines(&args, &corpus, element, &queries))?);
    }
    report::tell_table(&HEAD, &table, &args.json)
}

/// One line for each depth.
async fn lines(
    args: &Args,
    corpus: &Corpus,
    (element, name): (ElementType, &str),
    queries: &[Query],
) -> Outcome<Vec<Vec<String>>> {
    let data = args.server.temp_dir()?;
    let server = args.server.start(data.path())?;
    let client = Client::connect(&server.url).await?;
    let mut collections = client.collections.clone();
    let wanted = |depth| Some(collection(corpus.vectors.dims as u32, element, depth));
    let create = CreateCollectionRequest { collection: wanted(args.depths.first().copied().unwrap_or_default()) };
    collections.create_collection(create).await?;
    let (meter, begun) = (CpuMeter::start(Some(server.pid()))?, Instant::now());
    let plan = ImportPlan { collection: COLLECTION, batch: 500, probe_every: 0, progress: None };
    import(&client, plan, (0..corpus.len()).map(|row| document(corpus, row))).await?;
    let rest = wait_for_rest(&client, server.pid()).await?;
    let (to_rest, building) = (rest.since.duration_since(begun), meter.shares()?);
    let built = [
        name.to_owned(),
        mib(graph_bytes(corpus, &rest)),
        format!("{:.1}", to_rest.as_secs_f64()),
        format!("{:.1}", building.server * building.wall_s),
    ];
    let mut truth = Vec::new();
    for query in queries {
        // Scores are of float32 whatever the graph holds: an exact search tells the best.
        truth.push(keys(&client, query, SearchOptions { exact: true, ..options(COLLECTION, 100) }).await?);
    }
    let mut table = Vec::new();
    for depth in &args.depths {
        collections.update_collection(UpdateCollectionRequest { collection: wanted(*depth) }).await?;
        let mut at_10 = 0.0;
        let mut at_100 = 0.0;
        for (query, truth) in queries.iter().zip(&truth) {
            let found = keys(&client, query, options(COLLECTION, 100)).await?;
            at_10 += recall(&truth[..10.min(truth.len())], &found[..10.min(found.len())]);
            at_100 += recall(truth, &found);
        }
        let asked = queries.len().max(1) as f64;
        let mut row = built.to_vec();
        row.extend([depth.to_string(), format!("{:.4}", at_10 / asked), format!("{:.4}", at_100 / asked)]);
        row.extend(speed(args, &client, server.pid(), queries).await?);
        table.push(row);
    }
    server.stop().await?;
    Ok(table)
}

/// Latency of one caller, throughput of several.
async fn speed(args: &Args, client: &Client, pid: u32, queries: &[Query]) -> Outcome<[String; 4]> {
    let search = |query| Search::new(Method::Vector, query, options(COLLECTION, 10));
    let mut latencies = Vec::new();
    for query in queries {
        let begun = Instant::now();
        client.search(search(query)).await?;
        latencies.push(begun.elapsed());
    }
    let latencies = Latencies::of(&latencies);
    let meter = CpuMeter::start(Some(pid))?;
    let driven = drive(args.callers, Until::Elapsed(Duration::from_secs(args.turn_s)), |_, number| {
        let (client, search) = (client.clone(), search(&queries[number % queries.len()]));
        async move { client.search(search).await.map(drop) }
    })
    .await;
    if driven.num_errors() > 0 {
        return Err(format!("searches failed: {:?}", driven.errors).into());
    }
    Ok([
        format!("{:.3}", latencies.p50_ms),
        format!("{:.3}", latencies.p99_ms),
        format!("{:.0}", driven.rate()),
        format!("{:.2}", meter.shares()?.others),
    ])
}

async fn keys(client: &Client, query: &Query, options: SearchOptions) -> Outcome<Vec<String>> {
    let response = client.search(Search::new(Method::Vector, query, options)).await?;
    Ok(response.matches.into_iter().map(|found| found.key).collect())
}

/// What the segments' files take besides the vectors as sent and their norms: the graph, and some bytes a document.
fn graph_bytes(corpus: &Corpus, rest: &AtRest) -> u64 {
    rest.size_bytes.saturating_sub(corpus.len() as u64 * (corpus.vectors.dims as u64 + 1) * 4)
}

fn document(corpus: &Corpus, row: usize) -> Document {
    let mut document = Document { key: corpus.entries[row].id.clone(), ..Document::default() };
    document.vectors.insert("v".into(), vector::to_proto(corpus.vectors.row(row)));
    document
}

fn collection(dimensions: u32, element: ElementType, depth: u32) -> Collection {
    let vector = VectorField {
        name: "v".into(),
        dimensions,
        metric: Metric::Cosine.into(),
        element_type: element.into(),
        hnsw: Some(Hnsw { expansion_search: depth, ..Hnsw::default() }),
        ..VectorField::default()
    };
    let schema = Schema { vectors: vec![vector], ..Schema::default() };
    Collection { name: COLLECTION.into(), schema: Some(schema), ..Collection::default() }
}
