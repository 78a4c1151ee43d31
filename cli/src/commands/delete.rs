//! `antiphon delete`: documents by key or by filter.

use antiphon_proto::v1;
use antiphon_proto::v1::document_service_client::DocumentServiceClient;

use crate::args::DeleteArgs;
use crate::client;
use crate::failure::Failure;
use crate::output::print;

/// Most keys the API takes in one call.
const MAX_KEYS: usize = 10_000;

/// Runs the command.
///
/// # Errors
/// Those of the call; what was deleted before stays so.
pub(crate) async fn run(args: &DeleteArgs) -> Result<(), Failure> {
    let mut client = DocumentServiceClient::new(client::connect(&args.connection).await?);
    let parts: Vec<Vec<String>> = match args.filter {
        Some(_) => vec![Vec::new()],
        None => args.keys.chunks(MAX_KEYS).map(<[String]>::to_vec).collect(),
    };
    let mut num_deleted = 0;
    for keys in parts {
        let (collection, filter) = (args.collection.clone(), args.filter.clone());
        let message = v1::DeleteDocumentsRequest { collection, keys, filter };
        let answer = client.delete_documents(client::request(message, &args.connection)).await;
        num_deleted += answer.map_err(|status| client::failure(&status))?.into_inner().num_deleted;
    }
    print(&format!("deleted {num_deleted} documents\n"))
}
