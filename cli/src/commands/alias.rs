//! `antiphon alias`: set, delete, list.

use antiphon_proto::v1;
use antiphon_proto::v1::collection_service_client::CollectionServiceClient;

use crate::args::{AliasArgs, AliasCommand};
use crate::client;
use crate::failure::Failure;
use crate::output::{Table, print, print_json};

/// Runs the command.
///
/// # Errors
/// Those of the call.
pub(crate) async fn run(args: &AliasArgs) -> Result<(), Failure> {
    let connection = &args.connection;
    let mut client = CollectionServiceClient::new(client::connect(connection).await?);
    match &args.command {
        AliasCommand::Set { alias, collection } => {
            let message = v1::SetAliasRequest { name: alias.clone(), collection: collection.clone() };
            let answer = client.set_alias(client::request(message, connection)).await;
            let alias = answer.map_err(|status| client::failure(&status))?.into_inner().alias.unwrap_or_default();
            if args.json {
                print_json(&json(&alias))
            } else {
                print(&format!("{} means {}\n", alias.name, alias.collection))
            }
        }
        AliasCommand::Delete { alias } => {
            let message = v1::DeleteAliasRequest { name: alias.clone() };
            let answer = client.delete_alias(client::request(message, connection)).await;
            answer.map_err(|status| client::failure(&status))?;
            if args.json {
                print_json(&serde_json::json!({ "deleted": alias }))
            } else {
                print(&format!("deleted the alias {alias}\n"))
            }
        }
        AliasCommand::List { collection } => {
            let message = v1::ListAliasesRequest { collection: collection.clone().unwrap_or_default() };
            let answer = client.list_aliases(client::request(message, connection)).await;
            let aliases = answer.map_err(|status| client::failure(&status))?.into_inner().aliases;
            if args.json {
                print_json(&aliases.iter().map(json).collect::<Vec<_>>())
            } else if aliases.is_empty() {
                print("There are no aliases.\n")
            } else {
                let mut table = Table::new(&["alias", "collection"]);
                for alias in aliases {
                    table.row([alias.name, alias.collection]);
                }
                print(&table.render(0))
            }
        }
    }
}

fn json(alias: &v1::Alias) -> serde_json::Value {
    serde_json::json!({ "name": alias.name, "collection": alias.collection })
}
