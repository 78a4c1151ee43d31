//! `antiphon search`: by keywords, by a vector, by both, or by several queries; vectors may be the server's to make.

use std::io::Read as _;
use std::path::Path;

use antiphon_proto::v1;
use antiphon_proto::v1::hybrid_search_service_client::HybridSearchServiceClient;
use antiphon_proto::v1::hybrid_text_search_service_client::HybridTextSearchServiceClient;
use antiphon_proto::v1::keyword_search_service_client::KeywordSearchServiceClient;
use antiphon_proto::v1::text_search_service_client::TextSearchServiceClient;
use antiphon_proto::v1::vector_search_service_client::VectorSearchServiceClient;
use antiphon_proto::vector;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::search_output::{self, Shown};
use crate::args::SearchArgs;
use crate::client::{self, MAX_ANSWER_BYTES};
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::queries::{Query, parse_queries};

/// Most bytes of a file with a vector: 65,536 components at some 30 characters.
const MAX_VECTOR_BYTES: u64 = 4 << 20;
/// Most bytes of a file with queries: 16 of them.
const MAX_QUERIES_BYTES: u64 = 16 * MAX_VECTOR_BYTES;
/// Characters of a string that a table needs at most.
const TABLE_TEXT_LIMIT: u32 = 20_000;

/// Runs the command.
///
/// # Errors
/// Those of the call, and a vector or queries that can't be read.
pub(crate) async fn run(args: &SearchArgs) -> Result<(), Failure> {
    let vector = args.vector.as_deref().map(read_vector).transpose()?;
    let queries = match args.queries_file.as_deref() {
        Some(path) => read_queries(path)?,
        None => args.queries.clone(),
    };
    let answer = ask(args, vector, &queries).await?;
    if args.json {
        return print_json(&search_output::json(&answer));
    }
    let mut texts: Vec<&str> = queries.iter().filter_map(Query::text).collect();
    texts.extend(args.text.as_deref());
    let shown =
        Shown { query: &texts.join(" "), text_fields: &args.text_fields, num_queries: queries.len().max(1) as u32 };
    let mut out = search_output::render(&answer.matches, &shown, &|_| "");
    out.push_str(&search_output::footer(&answer));
    print(&out)
}

/// Asks the service of this kind of search.
async fn ask(args: &SearchArgs, vector: Option<v1::Vector>, queries: &[Query]) -> Result<v1::SearchResponse, Failure> {
    let connection = &args.connection;
    let text = args.text.clone().unwrap_or_default();
    let text_fields = args.text_fields.clone();
    let vector_field = args.vector_field.clone().unwrap_or_default();
    let options = Some(options(args));
    let keyword = keyword(args);
    let fusion = fusion(args);
    let channel = client::connect(connection).await?;
    let answer = if args.embed_only {
        let queries = embeddable(queries, Query::embedded_text)?;
        let message = v1::SearchTextRequest { text, vector_field, queries, fusion, options };
        let mut client = TextSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
        client.search_text(client::request(message, connection)).await
    } else if args.embed {
        let queries = embeddable(queries, Query::hybrid_text)?;
        let message =
            v1::SearchHybridTextRequest { text, vector_field, text_fields, keyword, queries, fusion, options };
        let mut client = HybridTextSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
        client.search_hybrid_text(client::request(message, connection)).await
    } else if !queries.is_empty() || (args.text.is_some() && vector.is_some()) {
        let queries = queries.iter().map(Query::hybrid).collect();
        let message =
            v1::SearchHybridRequest { vector, vector_field, text, text_fields, keyword, queries, fusion, options };
        let mut client = HybridSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
        client.search_hybrid(client::request(message, connection)).await
    } else if vector.is_some() {
        let message = v1::SearchVectorRequest { vector, vector_field, queries: Vec::new(), fusion, options };
        let mut client = VectorSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
        client.search_vector(client::request(message, connection)).await
    } else {
        let message = v1::SearchKeywordRequest { text, text_fields, keyword, queries: Vec::new(), fusion, options };
        let mut client = KeywordSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
        client.search_keyword(client::request(message, connection)).await
    };
    Ok(answer.map_err(|status| failure(&status, args))?.into_inner())
}

/// Queries for a server that makes their vectors.
fn embeddable<T>(queries: &[Query], read: impl Fn(&Query) -> Result<T, String>) -> Result<Vec<T>, Failure> {
    let read = |(place, query)| read(query).map_err(|fault| Failure::new(format!("queries[{place}] {fault}")));
    queries.iter().enumerate().map(read).collect()
}

fn keyword(args: &SearchArgs) -> Option<v1::Keyword> {
    (args.all_words || args.query_syntax).then(|| v1::Keyword {
        operator: if args.all_words { v1::Operator::And } else { v1::Operator::Unspecified }.into(),
        syntax: if args.query_syntax { v1::Syntax::Query } else { v1::Syntax::Unspecified }.into(),
        ..v1::Keyword::default()
    })
}

fn fusion(args: &SearchArgs) -> Option<v1::Fusion> {
    (args.fusion.is_some() || args.first_channel.is_some()).then(|| v1::Fusion {
        method: args.fusion.map_or(v1::FusionMethod::Unspecified, |fusion| fusion.method()).into(),
        k: args.fusion_k,
        weights: args.weights.clone(),
        first_channel: args.first_channel.map_or(v1::Channel::Unspecified, |channel| channel.channel()).into(),
    })
}

fn options(args: &SearchArgs) -> v1::SearchOptions {
    let consistency = if args.refresh { v1::Consistency::Refresh } else { v1::Consistency::Unspecified };
    let partial = if args.partial { v1::Partial::Allow } else { v1::Partial::Unspecified };
    v1::SearchOptions {
        collection: args.collection.clone(),
        page: args.page.unwrap_or_default(),
        page_size: args.page_size.unwrap_or_default(),
        skip: args.skip.unwrap_or_default(),
        filter: args.filter.clone(),
        fields: args.fields.clone(),
        include_vectors: args.vectors,
        text_limit: args.text_limit.unwrap_or(if args.json { 0 } else { TABLE_TEXT_LIMIT }),
        exact: args.exact,
        consistency: consistency.into(),
        at_least: args.at_least.clone().unwrap_or_default(),
        snapshot: args.snapshot.clone().unwrap_or_default(),
        partial: partial.into(),
        min_score: args.min_score,
    }
}

/// A failed search, and what the caller can do where the collection or the server lacks what was asked for.
fn failure(status: &Status, args: &SearchArgs) -> Failure {
    let details = status.get_error_details();
    let reason = details.error_info().map_or("", |info| info.reason.as_str());
    let violations = details.bad_request().map(|request| request.field_violations.as_slice()).unwrap_or_default();
    let is_at = |name: &str| violations.iter().any(|violation| violation.field.ends_with(name));
    let embeds = args.embed || args.embed_only;
    let name = &args.collection;
    let hint = match reason {
        "" if status.code() == Code::Unimplemented && embeds => {
            "the server has no embedder, so it makes no vectors of texts. Start it with one (docs/embedders.md), or search \
             by words without --embed, or by a vector with --vector"
                .to_owned()
        }
        "FIELD_TYPE" if embeds && is_at("vector_field") => format!(
            "name another with --vector-field, search by words without --embed, or give it one: antiphon collection \
             update {name} --embedder FIELD=EMBEDDER (`antiphon status` lists those of the server)"
        ),
        "FIELD_AMBIGUOUS" if is_at("text_fields") => format!(
            "search by a vector with --vector, or add a text field: antiphon collection update {name} --text FIELD:ANALYZER"
        ),
        _ => return client::failure(status),
    };
    Failure::new(format!("{}: {hint}", client::status_words(status)))
}

/// A JSON list of numbers from a file, or from standard input for `-`.
fn read_vector(path: &Path) -> Result<v1::Vector, Failure> {
    let (name, text) = read(path, MAX_VECTOR_BYTES)?;
    let values: Vec<f32> = serde_json::from_str(&text)
        .map_err(|error| Failure::of(format!("{name} holds no JSON list of numbers"), &error))?;
    Ok(vector::to_proto(&values))
}

/// A JSON list of queries.
fn read_queries(path: &Path) -> Result<Vec<Query>, Failure> {
    let (name, text) = read(path, MAX_QUERIES_BYTES)?;
    parse_queries(&text).map_err(|fault| Failure::new(format!("{name}: {fault}")))
}

/// A file's or standard input's name and text.
fn read(path: &Path, max_bytes: u64) -> Result<(String, String), Failure> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = if is_stdin {
        std::io::stdin().take(max_bytes).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(max_bytes).read_to_string(&mut text))
    };
    read.map_err(|error| Failure::of(format!("can't read {name}"), &error))?;
    Ok((name, text))
}
