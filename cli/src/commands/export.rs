//! `antiphon export`: documents as JSON Lines that an import reads.

use antiphon_proto::v1;
use antiphon_proto::v1::document_service_client::DocumentServiceClient;
use tonic::Request;

use crate::args::ExportArgs;
use crate::client::{self, MAX_ANSWER_BYTES};
use crate::failure::Failure;
use crate::output::{DocumentJson, print};

/// Runs the command. It takes as long as it takes: the timeout of other calls is not that of the stream.
///
/// # Errors
/// Those of the call; what was written then is a part.
pub(crate) async fn run(args: &ExportArgs) -> Result<(), Failure> {
    let channel = client::connect(&args.connection).await?;
    let mut client = DocumentServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
    let message = v1::ExportDocumentsRequest {
        collection: args.collection.clone(),
        filter: args.filter.clone(),
        include_vectors: args.vectors,
    };
    let answer = client.export_documents(Request::new(message)).await;
    let mut answers = answer.map_err(|status| client::failure(&status))?.into_inner();
    while let Some(answer) = answers.message().await.map_err(|status| client::failure(&status))? {
        let mut lines = String::new();
        for document in &answer.documents {
            let line = serde_json::to_string(&DocumentJson::from(document));
            lines.push_str(&line.map_err(|error| Failure::of("can't write JSON", &error))?);
            lines.push('\n');
        }
        print(&lines)?;
    }
    Ok(())
}
