//! `antiphon search`: by keywords, by a vector, or by both; the vector may be the server's to make.

use std::io::Read as _;
use std::path::Path;

use antiphon_proto::v1;
use antiphon_proto::v1::hybrid_search_service_client::HybridSearchServiceClient;
use antiphon_proto::v1::hybrid_text_search_service_client::HybridTextSearchServiceClient;
use antiphon_proto::v1::keyword_search_service_client::KeywordSearchServiceClient;
use antiphon_proto::v1::text_search_service_client::TextSearchServiceClient;
use antiphon_proto::v1::vector_search_service_client::VectorSearchServiceClient;
use antiphon_proto::vector;

use super::search_output;
use crate::args::SearchArgs;
use crate::client::{self, MAX_ANSWER_BYTES};
use crate::failure::Failure;
use crate::output::{print, print_json};

/// Most bytes of a file with a vector: 65,536 components at some 30 characters.
const MAX_VECTOR_BYTES: u64 = 4 << 20;
/// Characters of a string that a table needs at most.
const TABLE_TEXT_LIMIT: u32 = 20_000;

/// Runs the command.
///
/// # Errors
/// Those of the call, and a vector that can't be read.
pub(crate) async fn run(args: &SearchArgs) -> Result<(), Failure> {
    let vector = args.vector.as_deref().map(read_vector).transpose()?;
    let text = args.text.clone().unwrap_or_default();
    let options = Some(options(args));
    let keyword = (args.all_words || args.query_syntax).then(|| v1::Keyword {
        operator: if args.all_words { v1::Operator::And } else { v1::Operator::Unspecified }.into(),
        syntax: if args.query_syntax { v1::Syntax::Query } else { v1::Syntax::Unspecified }.into(),
        ..v1::Keyword::default()
    });
    let connection = &args.connection;
    let channel = client::connect(connection).await?;
    let vector_field = args.vector_field.clone().unwrap_or_default();
    let fusion = args.fusion.map(|fusion| v1::Fusion { method: fusion.method().into(), ..v1::Fusion::default() });
    let answer = match (args.text.is_some(), vector) {
        _ if args.embed_only => {
            let message =
                v1::SearchTextRequest { text: text.clone(), vector_field, options, ..v1::SearchTextRequest::default() };
            let mut client = TextSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
            client.search_text(client::request(message, connection)).await
        }
        _ if args.embed => {
            let message = v1::SearchHybridTextRequest {
                text: text.clone(),
                vector_field,
                text_fields: args.text_fields.clone(),
                keyword,
                fusion,
                options,
                ..v1::SearchHybridTextRequest::default()
            };
            let mut client = HybridTextSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
            client.search_hybrid_text(client::request(message, connection)).await
        }
        (true, Some(vector)) => {
            let message = v1::SearchHybridRequest {
                vector: Some(vector),
                vector_field,
                text: text.clone(),
                text_fields: args.text_fields.clone(),
                keyword,
                fusion,
                options,
                ..v1::SearchHybridRequest::default()
            };
            let mut client = HybridSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
            client.search_hybrid(client::request(message, connection)).await
        }
        (false, Some(vector)) => {
            let message = v1::SearchVectorRequest {
                vector: Some(vector),
                vector_field,
                options,
                ..v1::SearchVectorRequest::default()
            };
            let mut client = VectorSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
            client.search_vector(client::request(message, connection)).await
        }
        (_, None) => {
            let message = v1::SearchKeywordRequest {
                text: text.clone(),
                text_fields: args.text_fields.clone(),
                keyword,
                options,
                ..v1::SearchKeywordRequest::default()
            };
            let mut client = KeywordSearchServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
            client.search_keyword(client::request(message, connection)).await
        }
    };
    let answer = answer.map_err(|status| client::failure(&status))?.into_inner();
    if args.json {
        print_json(&search_output::json(&answer))
    } else {
        let mut out = search_output::render(&answer.matches, &text, &args.text_fields, &|_| "");
        out.push_str(&search_output::footer(&answer));
        print(&out)
    }
}

fn options(args: &SearchArgs) -> v1::SearchOptions {
    let consistency = if args.refresh { v1::Consistency::Refresh } else { v1::Consistency::Unspecified };
    let partial = if args.partial { v1::Partial::Allow } else { v1::Partial::Unspecified };
    v1::SearchOptions {
        collection: args.collection.clone(),
        page: args.page.unwrap_or_default(),
        page_size: args.page_size.unwrap_or_default(),
        skip: args.skip.unwrap_or_default(),
        fields: args.fields.clone(),
        text_limit: if args.json { 0 } else { TABLE_TEXT_LIMIT },
        exact: args.exact,
        filter: args.filter.clone(),
        min_score: args.min_score,
        consistency: consistency.into(),
        snapshot: args.snapshot.clone().unwrap_or_default(),
        partial: partial.into(),
        ..v1::SearchOptions::default()
    }
}

/// A JSON list of numbers from a file, or from standard input for `-`.
fn read_vector(path: &Path) -> Result<v1::Vector, Failure> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = if is_stdin {
        std::io::stdin().take(MAX_VECTOR_BYTES).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MAX_VECTOR_BYTES).read_to_string(&mut text))
    };
    read.map_err(|error| Failure::of(format!("can't read {name}"), &error))?;
    let values: Vec<f32> = serde_json::from_str(&text)
        .map_err(|error| Failure::of(format!("{name} holds no JSON list of numbers"), &error))?;
    Ok(vector::to_proto(&values))
}
