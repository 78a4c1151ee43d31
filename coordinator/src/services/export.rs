//! The stream of an export: shard by shard, the next stretch asked for when the last one was taken.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_proto::deadline::Deadline;
use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_proto::internal::Projection;
use antiphon_proto::v1::{ExportDocumentsRequest, ExportDocumentsResponse};
use tokio::sync::mpsc::Sender;
use tonic::Status;

use super::Service;
use super::matching::Walk;
use crate::collections::Resolved;
use crate::validate::check_filter;

/// How often the views of shards to come are named, so that nodes keep them.
const TOUCH_EVERY: Duration = Duration::from_secs(5);

/// Sends the documents of one view of each shard, and at a fault its error.
pub(super) async fn export(
    service: Service,
    request: ExportDocumentsRequest,
    whole: Option<Deadline>,
    answers: Sender<Result<ExportDocumentsResponse, Status>>,
) {
    if let Err(error) = run(&service, request, whole, &answers).await {
        // A reader that went needs no error.
        let _ = answers.send(Err(error.into())).await;
    }
}

async fn run(
    service: &Service,
    request: ExportDocumentsRequest,
    whole: Option<Deadline>,
    answers: &Sender<Result<ExportDocumentsResponse, Status>>,
) -> Result<(), ApiError> {
    // Without a deadline of the caller's each step has the server's own.
    let step = || {
        let own = Deadline::after(service.0.config.default_timeout);
        whole.map_or(own, |whole| whole.min(own))
    };
    let collection: Arc<Resolved> = service.0.collections.find_newest(&request.collection).await?;
    check_filter(request.filter.as_ref(), &collection.schema, "filter")?;
    let projection = Projection { include_vectors: request.include_vectors, ..Projection::default() };
    let views = service.newest_views(&collection, step()).await?;
    let mut touched = Instant::now();
    for (shard, seen) in (0u32..).zip(views.iter().cloned()) {
        let filter = request.filter.clone();
        let mut walk = Walk::new(Arc::clone(&collection), shard, filter, Some(projection.clone()), seen);
        while let Some(documents) = walk.next(service, step()).await? {
            let answer = answers.send(Ok(ExportDocumentsResponse { documents }));
            let sent = match whole {
                None => answer.await,
                Some(deadline) => match tokio::time::timeout(deadline.left(), answer).await {
                    Ok(sent) => sent,
                    Err(_) => return Err(ApiError::new(ErrorKind::Deadline, "the reader took too long")),
                },
            };
            if sent.is_err() {
                return Ok(()); // The reader went.
            }
            if touched.elapsed() >= TOUCH_EVERY {
                service.touch_views(&collection, shard + 1, &views, step()).await?;
                touched = Instant::now();
            }
        }
    }
    Ok(())
}
