//! `antiphon get`: documents by key, as JSON Lines that an import reads.

use antiphon_proto::v1;
use antiphon_proto::v1::document_service_client::DocumentServiceClient;

use crate::args::GetArgs;
use crate::client::{self, MAX_ANSWER_BYTES};
use crate::failure::{EXIT_FAILED, EXIT_OK, Failure};
use crate::output::{DocumentJson, note, plain, print};

/// Most keys the API takes in one call.
const MAX_KEYS: usize = 1000;

/// Runs the command; the exit code says whether all keys named a document.
///
/// # Errors
/// Those of the call.
pub(crate) async fn run(args: &GetArgs) -> Result<u8, Failure> {
    let channel = client::connect(&args.connection).await?;
    let mut client = DocumentServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
    let mut is_complete = true;
    for keys in args.keys.chunks(MAX_KEYS) {
        let message = v1::GetDocumentsRequest {
            collection: args.collection.clone(),
            keys: keys.to_vec(),
            fields: args.fields.clone(),
            include_vectors: args.vectors,
        };
        let answer = client.get_documents(client::request(message, &args.connection)).await;
        let answer = answer.map_err(|status| client::failure(&status))?.into_inner();
        let mut lines = String::new();
        for document in &answer.documents {
            let line = serde_json::to_string(&DocumentJson::from(document));
            lines.push_str(&line.map_err(|error| Failure::of("can't write JSON", &error))?);
            lines.push('\n');
        }
        print(&lines)?;
        for key in &answer.missing_keys {
            note(&format!("antiphon: no document `{}`", plain(key)));
            is_complete = false;
        }
    }
    Ok(if is_complete { EXIT_OK } else { EXIT_FAILED })
}
