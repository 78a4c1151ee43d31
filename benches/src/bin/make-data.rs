//! Makes files from a data folder: documents for `antiphon import`, queries for `load`, requests for ghz.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use antiphon_benches::Outcome;
use antiphon_benches::corpus::Corpus;
use antiphon_benches::queries;
use antiphon_proto::vector;
use base64::Engine;
use clap::{Args, Parser, Subcommand};
use serde_json::json;

/// Makes files for benchmarks from a data folder.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Lines for `antiphon import`: the vector `v`, the fields `title`, `text`, `pos`, `lexfile`.
    Documents(Common),
    /// Lines for `load`.
    Queries(QueryArgs),
    /// A JSON list of requests of SearchHybrid for ghz.
    Ghz {
        #[command(flatten)]
        queries: QueryArgs,
        /// The collection that they name.
        #[arg(long, default_value = "wordnet")]
        collection: String,
    },
}

#[derive(Debug, Args)]
struct Common {
    /// The data folder (see README.md).
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Only the first so many documents.
    #[arg(long)]
    limit: Option<usize>,
    /// The file to write.
    #[arg(long, short)]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct QueryArgs {
    #[command(flatten)]
    common: Common,
    /// Queries.
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// Their seed.
    #[arg(long, default_value_t = 20_260_101)]
    seed: u64,
}

fn main() -> Outcome<()> {
    match Cli::parse().what {
        What::Documents(common) => {
            let corpus = Corpus::read(&common.data, common.limit)?;
            let mut out = BufWriter::new(File::create(&common.out)?);
            for (row, entry) in corpus.entries.iter().enumerate() {
                let fields =
                    json!({ "title": entry.title, "text": entry.text, "pos": entry.pos, "lexfile": entry.lexfile });
                let line = json!({ "key": entry.id, "vectors": { "v": corpus.vectors.row(row) }, "fields": fields });
                writeln!(out, "{line}")?;
            }
            Ok(out.flush()?)
        }
        What::Queries(args) => {
            let mut out = BufWriter::new(File::create(&args.common.out)?);
            for query in make(&args)? {
                writeln!(out, "{}", serde_json::to_string(&query)?)?;
            }
            Ok(out.flush()?)
        }
        What::Ghz { queries, collection } => {
            let mut out = BufWriter::new(File::create(&queries.common.out)?);
            let requests = make(&queries)?.into_iter().map(|query| {
                let bytes = base64::engine::general_purpose::STANDARD.encode(vector::to_le_bytes(&query.vector));
                let options = json!({ "collection": collection, "page_size": 10 });
                json!({ "vector": { "float32_le": bytes }, "text": query.text, "options": options }).to_string()
            });
            // A request a line, so that the file can be looked at.
            writeln!(out, "[\n{}\n]", requests.collect::<Vec<_>>().join(",\n"))?;
            Ok(out.flush()?)
        }
    }
}

fn make(args: &QueryArgs) -> Outcome<Vec<queries::Query>> {
    let corpus = Corpus::read(&args.common.data, args.common.limit)?;
    Ok(queries::make(&corpus, args.count, args.seed))
}
