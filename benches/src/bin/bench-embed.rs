//! What it costs that the server makes a query's vector: SearchHybridText beside SearchHybrid with the same vector and text,
//! in turns, with a static model; and how fast documents are imported whose vectors the server makes.
//!
//! Speaks only to the API: the queries' vectors are got back from documents that hold their texts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_benches::child_server::ServerArgs;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::corpus::Corpus;
use antiphon_benches::documents::{document, string};
use antiphon_benches::import::{ImportPlan, import};
use antiphon_benches::proc::CpuMeter;
use antiphon_benches::queries::Query;
use antiphon_benches::report::{self, note};
use antiphon_benches::rest::wait_for_rest;
use antiphon_benches::stats::{Latencies, median};
use antiphon_benches::{Outcome, runtime};
use antiphon_proto::v1::hybrid_text_search_service_client::HybridTextSearchServiceClient;
use antiphon_proto::v1::{
    Collection, CreateCollectionRequest, DescribeClusterRequest, Document, GetDocumentsRequest, Schema,
    SearchHybridTextRequest, TextField, UpsertDocumentsRequest, VectorField,
};
use antiphon_proto::vector;
use clap::Parser;
use tonic::transport::{Channel, Endpoint};

const COLLECTION: &str = "bench";
const QUERIES: &str = "queries";
/// What embedding may add at the median, in milliseconds.
const TARGET_MS: f64 = 0.3;
/// Texts of one request.
const BATCH: usize = 500;

/// Measures what embedding adds to a hybrid search, and prints a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// The data folder: corpus.jsonl.gz and docs.npy (see README.md). Its vectors are not used.
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// A folder with a static model, as of the package wordllama.
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// Documents.
    #[arg(long, default_value_t = 20_000)]
    rows: usize,
    /// Queries.
    #[arg(long, default_value_t = 500)]
    queries: usize,
    /// Words of a query.
    #[arg(long, default_value_t = 12)]
    words: usize,
    /// How often all queries are asked.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench-embed.json")]
    json: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

fn main() -> Outcome<()> {
    let mut args = Args::parse();
    if args.server.set.is_empty() {
        args.server.set.push("sealing.seal_age_s=2".into());
    }
    args.server.set.push("embedders.m.kind=static".into());
    args.server.set.push(format!("embedders.m.path={}", args.model.display()));
    let corpus = Corpus::read(&args.data, Some(args.rows))?;
    let texts = query_texts(&corpus, args.queries, args.words)?;
    runtime()?.block_on(measure(&args, &corpus, &texts))
}

/// Texts of so many words, from documents over the whole corpus.
fn query_texts(corpus: &Corpus, count: usize, words: usize) -> Outcome<Vec<String>> {
    let all: Vec<&str> = corpus.entries.iter().flat_map(|entry| entry.text.split_whitespace()).collect();
    let stride = all.len() / count.max(1);
    if stride < words.max(1) {
        return Err("the corpus has too few words for so many queries".into());
    }
    Ok((0..count).map(|query| all[query * stride..query * stride + words].join(" ")).collect())
}

async fn measure(args: &Args, corpus: &Corpus, texts: &[String]) -> Outcome<()> {
    let data = args.server.temp_dir()?;
    let server = args.server.start(data.path())?;
    let client = Client::connect(&server.url).await?;
    let channel = Endpoint::from_shared(server.url.clone())?.tcp_nodelay(true).connect().await?;
    let dimensions = dimensions(channel.clone()).await?;
    for name in [COLLECTION, QUERIES] {
        create(&client, name, dimensions).await?;
    }
    note(&format!(
        "{} documents, {} queries of {} words, {dimensions} dimensions",
        corpus.len(),
        texts.len(),
        args.words
    ));
    let without_vector = (0..corpus.len()).map(|row| Document { vectors: Default::default(), ..document(corpus, row) });
    let plan = ImportPlan { collection: COLLECTION, batch: BATCH, probe_every: 0, progress: None };
    let imported = import(&client, plan, without_vector).await?;
    let queries = embed(&client, texts).await?;
    wait_for_rest(&client, server.pid()).await?;

    let meter = CpuMeter::start(Some(server.pid()))?;
    let mut both = Turns { with_vector: Vec::new(), with_text: Vec::new(), differences: Vec::new() };
    // The first round warms up.
    for round in 0..=args.rounds {
        for (number, query) in queries.iter().enumerate() {
            both.take(&client, &channel, query, (round + number) % 2 == 0).await?;
        }
        if round == 0 {
            both = Turns { with_vector: Vec::new(), with_text: Vec::new(), differences: Vec::new() };
        }
    }
    let (vector, text) = (Latencies::of(&both.with_vector), Latencies::of(&both.with_text));
    let added = text.p50_ms - vector.p50_ms;
    let row = |name: &str, latencies: &Latencies| {
        let ms = [latencies.p50_ms, latencies.p90_ms, latencies.p99_ms].map(|ms| format!("{ms:.3}"));
        [vec![name.to_owned()], ms.to_vec()].concat()
    };
    let rows = [row("SearchHybrid", &vector), row("SearchHybridText", &text)];
    report::print(&report::table(&["", "ms 50 %", "ms 90 %", "ms 99 %"], &rows));
    report::print(&format!(
        "\nEmbedding adds {added:.3} ms at the median (the median of the differences is {:.3} ms); wanted: below {TARGET_MS} ms: {}.\n\
         Import of documents that the server embeds: {:.0} a second. Others used {:.2} cores meanwhile.\n",
        median(&both.differences),
        if added < TARGET_MS { "met" } else { "missed" },
        corpus.len() as f64 / imported.elapsed.as_secs_f64(),
        meter.shares()?.others,
    ));
    let json =
        serde_json::json!({ "with_vector": vector, "with_text": text, "added_ms": added, "target_ms": TARGET_MS });
    report::write_json(&args.json, &json)?;
    server.stop().await?;
    Ok(())
}

/// What was measured, one caller after the other.
struct Turns {
    with_vector: Vec<Duration>,
    with_text: Vec<Duration>,
    differences: Vec<f64>,
}

impl Turns {
    /// One query by both methods. They must find the same.
    async fn take(&mut self, client: &Client, channel: &Channel, query: &Query, text_first: bool) -> Outcome<()> {
        let mut text_client = HybridTextSearchServiceClient::new(channel.clone());
        let request = SearchHybridTextRequest {
            text: query.text.clone(),
            options: Some(options(COLLECTION, 10)),
            ..SearchHybridTextRequest::default()
        };
        let mut by_text = async || {
            let (message, begun) = (request.clone(), Instant::now());
            let found = text_client.search_hybrid_text(message).await?.into_inner();
            Ok::<_, tonic::Status>((found, begun.elapsed()))
        };
        let by_vector = async || {
            let (search, begun) = (Search::new(Method::Hybrid, query, options(COLLECTION, 10)), Instant::now());
            let found = client.search(search).await?;
            Ok::<_, tonic::Status>((found, begun.elapsed()))
        };
        let (text, vector) = if text_first {
            let text = by_text().await?;
            (text, by_vector().await?)
        } else {
            let vector = by_vector().await?;
            (by_text().await?, vector)
        };
        let keys = |found: &antiphon_proto::v1::SearchResponse| -> Vec<String> {
            found.matches.iter().map(|found| found.key.clone()).collect()
        };
        if keys(&text.0) != keys(&vector.0) {
            return Err(format!("the two searches find different documents for {:?}", query.text).into());
        }
        self.with_text.push(text.1);
        self.with_vector.push(vector.1);
        self.differences.push((text.1.as_secs_f64() - vector.1.as_secs_f64()) * 1e3);
        Ok(())
    }
}

async fn dimensions(channel: Channel) -> Outcome<u32> {
    let mut cluster = antiphon_proto::v1::cluster_service_client::ClusterServiceClient::new(channel);
    let described = cluster.describe_cluster(DescribeClusterRequest {}).await?.into_inner();
    Ok(described.embedders.first().ok_or("the server has no embedder")?.dimensions)
}

async fn create(client: &Client, name: &str, dimensions: u32) -> Outcome<()> {
    let text = |name: &str| TextField { name: name.into(), analyzer: "en".into(), ..TextField::default() };
    let vectors = vec![VectorField { name: "v".into(), dimensions, embedder: "m".into(), ..VectorField::default() }];
    let schema = Schema { vectors, texts: vec![text("title"), text("text")], ..Schema::default() };
    let collection = Collection { name: name.into(), schema: Some(schema), ..Collection::default() };
    client.collections.clone().create_collection(CreateCollectionRequest { collection: Some(collection) }).await?;
    Ok(())
}

/// The texts with their vectors, which the server makes.
async fn embed(client: &Client, texts: &[String]) -> Outcome<Vec<Query>> {
    let mut queries = Vec::new();
    let key = |number: usize| format!("q{number:06}");
    for (batch, texts) in texts.chunks(BATCH).enumerate() {
        let keys: Vec<String> = (0..texts.len()).map(|number| key(batch * BATCH + number)).collect();
        let documents = keys.iter().zip(texts).map(|(key, text)| Document {
            key: key.clone(),
            fields: [("text".to_owned(), string(text))].into(),
            ..Document::default()
        });
        let request = UpsertDocumentsRequest { collection: QUERIES.into(), documents: documents.collect() };
        client.documents.clone().upsert_documents(request).await?;
        let request = GetDocumentsRequest {
            collection: QUERIES.into(),
            keys: keys.clone(),
            fields: vec![],
            include_vectors: true,
        };
        let got = client.documents.clone().get_documents(request).await?.into_inner().documents;
        let mut by_key: HashMap<String, Document> =
            got.into_iter().map(|document| (document.key.clone(), document)).collect();
        for (key, text) in keys.iter().zip(texts) {
            let held =
                by_key.remove(key).and_then(|mut document| document.vectors.remove("v")).ok_or("no vector was made")?;
            queries.push(Query { text: text.clone(), vector: vector::components(&held)? });
        }
    }
    Ok(queries)
}
