//! Rows on their way to a client, and how their statement ended.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{Stream, stream};
use std::sync::Arc;
use tokio::sync::mpsc;
use tonic::Status;

use crate::door::Running;
use crate::encode;

/// The rows of a statement, as they are taken. It ends as this is dropped.
pub(crate) fn taken(
    running: Running,
    rows: mpsc::Receiver<Result<RecordBatch, Status>>,
    schema: SchemaRef,
) -> impl Stream<Item = Result<RecordBatch, Status>> + Send {
    stream::try_unfold((running, rows), move |(mut running, mut rows)| {
        let schema = Arc::clone(&schema);
        async move {
            let next = rows.recv().await.transpose();
            let next = next.and_then(|batch| batch.map(|batch| encode::plain(batch, &schema)).transpose());
            if !matches!(next, Ok(Some(_))) {
                running.ended(&next);
            }
            Ok(next?.map(|batch| (batch, (running, rows))))
        }
    })
}
