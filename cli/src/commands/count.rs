//! `antiphon count`: how many documents there are.

use antiphon_proto::v1;
use antiphon_proto::v1::document_service_client::DocumentServiceClient;

use crate::args::CountArgs;
use crate::client;
use crate::failure::Failure;
use crate::output::print;

/// Runs the command.
///
/// # Errors
/// Those of the call.
pub(crate) async fn run(args: &CountArgs) -> Result<(), Failure> {
    let mut client = DocumentServiceClient::new(client::connect(&args.connection).await?);
    let message = v1::CountDocumentsRequest { collection: args.collection.clone(), filter: args.filter.clone() };
    let answer = client.count_documents(client::request(message, &args.connection)).await;
    let count = answer.map_err(|status| client::failure(&status))?.into_inner().count;
    print(&format!("{count}\n"))
}
