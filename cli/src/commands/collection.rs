//! `antiphon collection`: create, list, show, update, delete.

use std::io::{IsTerminal as _, Write as _};

use antiphon_proto::v1;
use antiphon_proto::v1::collection_service_client::CollectionServiceClient;

use crate::args::{CollectionArgs, CollectionCommand, ConnectionArgs, CreateArgs, EmbedderSpec, UpdateArgs};
use crate::client::{self, Channel};
use crate::failure::Failure;
use crate::output::{CollectionJson, Table, bytes, count, plain, print, print_json};

/// Runs the command.
///
/// # Errors
/// Those of the call.
pub(crate) async fn run(args: &CollectionArgs) -> Result<(), Failure> {
    let connection = &args.connection;
    let mut client = CollectionServiceClient::new(client::connect(connection).await?);
    match &args.command {
        CollectionCommand::Create(create) => {
            let collection = self::create(&mut client, create, connection).await?;
            if args.json {
                print_json(&CollectionJson::from(&collection))
            } else {
                print(&format!(
                    "created {}: {} shards × {} replicas\n",
                    collection.name, collection.shard_count, collection.replica_count
                ))
            }
        }
        CollectionCommand::List => {
            let collections = list(&mut client, connection).await?;
            if args.json {
                print_json(&collections.iter().map(CollectionJson::from).collect::<Vec<_>>())
            } else if collections.is_empty() {
                print("There are no collections.\n")
            } else {
                print(&table(&collections).render(0))
            }
        }
        CollectionCommand::Show { name } => {
            let collection = get(&mut client, name, connection).await?;
            if args.json { print_json(&CollectionJson::from(&collection)) } else { print(&show(&collection)) }
        }
        CollectionCommand::Update(changes) => {
            let wanted = changed(get(&mut client, &changes.name, connection).await?, changes)?;
            let message = v1::UpdateCollectionRequest { collection: Some(wanted) };
            let answer = client.update_collection(client::request(message, connection)).await;
            let updated =
                answer.map_err(|status| client::failure(&status))?.into_inner().collection.unwrap_or_default();
            if args.json {
                print_json(&CollectionJson::from(&updated))
            } else {
                print(&format!("updated {}\n", updated.name))
            }
        }
        CollectionCommand::Delete { name, yes } => {
            if !yes {
                confirm(&get(&mut client, name, connection).await?)?;
            }
            let message = v1::DeleteCollectionRequest { name: name.clone() };
            let answer = client.delete_collection(client::request(message, connection)).await;
            answer.map_err(|status| client::failure(&status))?;
            if args.json {
                print_json(&serde_json::json!({ "deleted": name }))
            } else {
                print(&format!("deleted {name}\n"))
            }
        }
    }
}

async fn create(
    client: &mut CollectionServiceClient<Channel>,
    args: &CreateArgs,
    connection: &ConnectionArgs,
) -> Result<v1::Collection, Failure> {
    let key_case = if args.case_sensitive { v1::KeyCase::CaseSensitive } else { v1::KeyCase::CaseInsensitive };
    let mut vectors = args.vectors.clone();
    set_embedders(&mut vectors, &args.embedders)?;
    let (texts, attributes) = (args.texts.clone(), args.attributes.clone());
    let schema = v1::Schema { vectors, texts, attributes, key_case: key_case.into() };
    let collection = v1::Collection {
        name: args.name.clone(),
        schema: Some(schema),
        shard_count: args.shards,
        replica_count: args.replicas,
        ..v1::Collection::default()
    };
    let message = v1::CreateCollectionRequest { collection: Some(collection) };
    let answer = client.create_collection(client::request(message, connection)).await;
    Ok(answer.map_err(|status| client::failure(&status))?.into_inner().collection.unwrap_or_default())
}

/// A collection as it shall be: the fields of the flags in place of those of their names, or behind the others. The server
/// says what cannot be changed.
fn changed(mut collection: v1::Collection, changes: &UpdateArgs) -> Result<v1::Collection, Failure> {
    collection.replica_count = changes.replicas.unwrap_or(collection.replica_count);
    let schema = collection.schema.get_or_insert_default();
    for field in &changes.vectors {
        match schema.vectors.iter_mut().find(|held| held.name == field.name) {
            Some(held) => *held = v1::VectorField { hnsw: held.hnsw, ..field.clone() },
            None => schema.vectors.push(field.clone()),
        }
    }
    for field in &changes.attributes {
        match schema.attributes.iter_mut().find(|held| held.name == field.name) {
            Some(held) => *held = field.clone(),
            None => schema.attributes.push(field.clone()),
        }
    }
    for field in &changes.texts {
        match schema.texts.iter_mut().find(|held| held.name == field.name) {
            Some(held) => *held = field.clone(),
            None => schema.texts.push(field.clone()),
        }
    }
    set_embedders(&mut schema.vectors, &changes.embedders)?;
    for (name, number) in &changes.expansions {
        let field = schema.vectors.iter_mut().find(|held| held.name == *name);
        let field = field.ok_or_else(|| Failure::new(format!("there is no vector field `{name}`")))?;
        field.hnsw.get_or_insert_default().expansion_search = *number;
    }
    Ok(collection)
}

/// Gives vector fields their embedders.
fn set_embedders(fields: &mut [v1::VectorField], specs: &[EmbedderSpec]) -> Result<(), Failure> {
    for spec in specs {
        let field = fields.iter_mut().find(|field| field.name == spec.field && field.embedder.is_empty());
        let Some(field) = field else {
            let words =
                format!("--embedder {}=…: there is no such vector field, or it has an embedder already", spec.field);
            return Err(Failure::new(words));
        };
        field.embedder.clone_from(&spec.embedder);
        field.embed_fields.clone_from(&spec.texts);
    }
    Ok(())
}

async fn get(
    client: &mut CollectionServiceClient<Channel>,
    name: &str,
    connection: &ConnectionArgs,
) -> Result<v1::Collection, Failure> {
    let message = v1::GetCollectionRequest { name: name.to_owned() };
    let answer = client.get_collection(client::request(message, connection)).await;
    Ok(answer.map_err(|status| client::failure(&status))?.into_inner().collection.unwrap_or_default())
}

/// All collections.
///
/// # Errors
/// Those of the call.
pub(super) async fn list(
    client: &mut CollectionServiceClient<Channel>,
    connection: &ConnectionArgs,
) -> Result<Vec<v1::Collection>, Failure> {
    let answer = client.list_collections(client::request(v1::ListCollectionsRequest {}, connection)).await;
    Ok(answer.map_err(|status| client::failure(&status))?.into_inner().collections)
}

/// Collections, one a row.
pub(super) fn table(collections: &[v1::Collection]) -> Table {
    let mut table = Table::new(&["collection", "#shards", "#replicas", "#documents", "#deleted", "#segments", "#size"]);
    for collection in collections {
        table.row([
            collection.name.clone(),
            collection.shard_count.to_string(),
            collection.replica_count.to_string(),
            count(collection.num_docs),
            count(collection.num_deleted),
            count(collection.num_segments),
            bytes(collection.size_bytes),
        ]);
    }
    table
}

fn show(collection: &v1::Collection) -> String {
    let json = CollectionJson::from(collection);
    let created = collection.create_time.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut lines = vec![
        ("name", collection.name.clone()),
        ("uid", collection.uid.clone()),
        ("created", created),
        ("shards", format!("{} × {} replicas", collection.shard_count, collection.replica_count)),
        ("documents", format!("{} (and {} deleted)", count(collection.num_docs), count(collection.num_deleted))),
        ("segments", format!("{} ({})", count(collection.num_segments), bytes(collection.size_bytes))),
    ];
    let schema = json.schema_words();
    lines.extend(schema.into_iter().enumerate().map(|(place, words)| (if place == 0 { "schema" } else { "" }, words)));
    lines.iter().map(|(name, value)| format!("{name:<10}{}\n", plain(value))).collect()
}

/// Asks on the terminal.
fn confirm(collection: &v1::Collection) -> Result<(), Failure> {
    let name = &collection.name;
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(format!("won't delete {name} without being sure; pass --yes")));
    }
    let mut out = std::io::stderr();
    let documents = count(collection.num_docs);
    let _ = write!(out, "Delete {name} with {documents} documents for good? Type its name to confirm: ");
    let _ = out.flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| Failure::of("can't read stdin", &error))?;
    if line.trim() == name { Ok(()) } else { Err(Failure::new("nothing was deleted")) }
}
