//! What the demo does with its server and what it says about it.

use std::path::Path;
use std::time::Instant;

use antiphon_proto::v1::collection_service_client::CollectionServiceClient;
use antiphon_proto::v1::document_service_client::DocumentServiceClient;
use antiphon_proto::v1::hybrid_search_service_client::HybridSearchServiceClient;
use antiphon_proto::{v1, vector};
use tokio::sync::mpsc;

use super::data::{self, DIMENSIONS, Record, RecordKind};
use crate::args::ConnectionArgs;
use crate::client::{self, Channel};
use crate::commands::{Shown, render_matches};
use crate::failure::Failure;
use crate::import::{BatchLimits, Batcher, Import, Item, Origin, Progress, Read, Rejects};
use crate::output::{count, print, seconds};

const COLLECTION: &str = "demo";
const NUM_SHARDS: u32 = 3;
const PAGE_SIZE: u32 = 5;
const LANGUAGES: [(&str, &str); 3] = [("en", "English"), ("ru", "Russian"), ("zh", "Chinese")];
/// The questions asked in every language: when Priestley found oxygen, and what flows between Bingen and Bonn.
const ASKED: [&str; 2] = ["571c8539dd7acb1400e4c0e3", "572f6a0ba23a5019007fc5eb"];

/// Creates, imports, asks, explains.
///
/// # Errors
/// Any call that fails.
pub(super) async fn tell(address: &str, data: &Path, keep: bool) -> Result<(), Failure> {
    let connection = ConnectionArgs::plain(address, 60);
    let channel = client::connect(&connection).await?;
    print(&format!("A server listens on {address}; its data are in {}.\n\n", data.display()))?;
    let records = data::records()?;
    create(&channel, &connection).await?;
    import(&channel, &records).await?;
    let questions: Vec<&Record> = ASKED
        .iter()
        .flat_map(|id| LANGUAGES.iter().map(move |(lang, _)| (*id, *lang)))
        .filter_map(|(id, lang)| {
            records.iter().find(|record| record.kind == RecordKind::Question && record.id == id && record.lang == lang)
        })
        .collect();
    print(
        "Each question is asked by its vector, which finds paragraphs of any language, and by its words, which find those \
         of its own. The two channels take turns; a paragraph already placed is passed over. `*` marks the paragraph that \
         answers the question, in any of its translations; `vector` and `keyword` are its ranks in the two channels.\n",
    )?;
    for question in questions {
        ask(&channel, &connection, question).await?;
    }
    print(&farewell(address, data, keep))
}

async fn create(channel: &Channel, connection: &ConnectionArgs) -> Result<(), Failure> {
    let text = |lang: &str| v1::TextField { name: format!("text_{lang}"), analyzer: lang.to_owned(), boost: 0.0 };
    let vectors = vec![v1::VectorField {
        name: "use".to_owned(),
        dimensions: DIMENSIONS as u32,
        metric: v1::Metric::Cosine.into(),
        ..v1::VectorField::default()
    }];
    let schema =
        v1::Schema { vectors, texts: LANGUAGES.iter().map(|(lang, _)| text(lang)).collect(), ..v1::Schema::default() };
    let collection = v1::Collection {
        name: COLLECTION.to_owned(),
        schema: Some(schema),
        shard_count: NUM_SHARDS,
        ..v1::Collection::default()
    };
    let message = v1::CreateCollectionRequest { collection: Some(collection) };
    let mut client = CollectionServiceClient::new(channel.clone());
    client.create_collection(client::request(message, connection)).await.map_err(|status| client::failure(&status))?;
    print(&format!(
        "Created the collection {COLLECTION} in {NUM_SHARDS} shards: a vector of {DIMENSIONS} dimensions, and a text field for \
         each language with an analyzer of its own.\n"
    ))
}

async fn import(channel: &Channel, records: &[Record]) -> Result<(), Failure> {
    let started = Instant::now();
    let documents: Vec<v1::Document> =
        records.iter().filter(|record| record.kind == RecordKind::Paragraph).map(Record::document).collect();
    let (sender, receiver) = mpsc::channel(documents.len().max(1));
    for (place, document) in documents.into_iter().enumerate() {
        let origin = Origin { file: "demo-data".into(), line: place as u64 + 1 };
        let item = Item { origin, document, raw: None, has_generated_key: false, bytes_read: 0 };
        // There is room for all of them.
        let _ = sender.try_send(Read::Document(item));
    }
    drop(sender);
    let batcher = Batcher::new(receiver, BatchLimits { max_docs: 100, max_bytes: 4 << 20 });
    let client = DocumentServiceClient::new(channel.clone());
    let mut import = Import::new(client, COLLECTION, batcher, 4, Progress::silent(), Rejects::default());
    import.run().await?;
    let tally = import.finish()?;
    print(&format!(
        "Imported {} paragraphs of XQuAD (CC BY-SA 4.0) in English, Russian and Chinese in {}.\n\n",
        count(tally.num_imported),
        seconds(started.elapsed())
    ))
}

/// Two pages of the same state of the data.
async fn ask(channel: &Channel, connection: &ConnectionArgs, question: &Record) -> Result<(), Failure> {
    let language = LANGUAGES.iter().find(|(lang, _)| *lang == question.lang).map_or("", |(_, name)| name);
    print(&format!("\n── {language}: {}\n", question.text))?;
    let answers: Vec<&str> =
        question.answers.iter().filter_map(|id| id.split_once('-')).map(|(_, paragraph)| paragraph).collect();
    let mark = |key: &str| {
        let is_answer = key.split_once('-').is_some_and(|(_, paragraph)| answers.contains(&paragraph));
        if is_answer { "*" } else { " " }
    };
    let mut client = HybridSearchServiceClient::new(channel.clone());
    let mut snapshot = String::new();
    for page in 1..=2 {
        let options = v1::SearchOptions {
            collection: COLLECTION.to_owned(),
            page,
            page_size: PAGE_SIZE,
            snapshot: std::mem::take(&mut snapshot),
            ..v1::SearchOptions::default()
        };
        let text_fields = vec![question.text_field()];
        let message = v1::SearchHybridRequest {
            vector: Some(vector::to_proto(&question.vector)),
            text: question.text.clone(),
            text_fields: text_fields.clone(),
            options: Some(options),
            ..v1::SearchHybridRequest::default()
        };
        let started = Instant::now();
        let answer = client.search_hybrid(client::request(message, connection)).await;
        let answer = answer.map_err(|status| client::failure(&status))?.into_inner();
        let span = started.elapsed();
        print(&format!("\nPage {page} of at most {} ({:.1} ms)\n", answer.last_page, span.as_secs_f64() * 1000.0))?;
        let shown = Shown { query: &question.text, text_fields: &text_fields, num_queries: 1 };
        print(&render_matches(&answer.matches, &shown, &mark))?;
        snapshot = answer.snapshot;
    }
    Ok(())
}

fn farewell(address: &str, data: &Path, keep: bool) -> String {
    let folder = data.display();
    let host = address.trim_start_matches("http://");
    let search = format!(
        "grpcurl -plaintext -d '{{\"text\":\"oxygen\",\"options\":{{\"collection\":\"{COLLECTION}\",\"page_size\":3}}}}' \\\n      {host} \
         antiphon.v1.KeywordSearchService/SearchKeyword"
    );
    if keep {
        format!(
            "\nThe server goes on until Ctrl-C. Try:\n\n  {search}\n  antiphon search --address {address} --collection {COLLECTION} \
             oxygen\n  antiphon status --address {address}\n\nIts data are in {folder}; delete the folder when you are done.\n"
        )
    } else {
        let search = search.replace(host, "127.0.0.1:7700");
        format!(
            "\nThe server stops now; its data stay in {folder}. To go on with them:\n\n  antiphon serve --data {folder}\n  {search}\n\n\
             Delete the folder when you are done, or run `antiphon demo --keep` to go on at once.\n"
        )
    }
}
