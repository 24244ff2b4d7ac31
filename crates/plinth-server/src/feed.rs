//! Rows on their way, from a query or from what was gathered.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Fields, Schema, SchemaRef};
use futures::{StreamExt, stream};
use plinth_profile::Profiler;
use plinth_sql::{Params, SqlError, Statement as Parsed};
use tonic::Status;

use crate::engine::{Begun, Engine};
use crate::failure::{engine, status};
use crate::statement::{Rows, Statement};

/// Rows that are there.
pub(crate) fn of_batches(batches: Vec<RecordBatch>) -> Rows {
    Box::pin(stream::iter(batches.into_iter().map(Ok)))
}

/// The rows of what was begun.
///
/// # Errors
/// If it fails before its rows come.
pub(crate) async fn of_begun(begun: Begun, profiler: &Profiler) -> Result<Rows, SqlError> {
    Ok(match begun {
        Begun::Query(query) => Box::pin(query.start_with(profiler).await?.map(|batch| batch.map_err(engine))),
        Begun::Done(_, batches) => of_batches(batches),
    })
}

/// A query once for each row of values, the first of which was planned.
pub(crate) struct Each {
    pub(crate) engine: Arc<Engine>,
    pub(crate) query: Parsed,
    pub(crate) values: Vec<Params>,
}

/// The columns of such a query: one value may be NULL where another is not.
pub(crate) fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect::<Fields>();
    Arc::new(Schema::new(fields))
}

impl Each {
    /// The rows, one row of values after the other.
    pub(crate) fn rows(self, first: Rows, schema: SchemaRef, statement: Arc<Statement>) -> Rows {
        let state = (self, first, 0_usize, statement);
        Box::pin(stream::try_unfold(state, move |(each, mut rows, at, statement)| {
            let schema = Arc::clone(&schema);
            async move {
                let mut at = at;
                loop {
                    if let Some(batch) = rows.next().await {
                        let batch = RecordBatch::try_new(schema, batch?.columns().to_vec()).map_err(|_| {
                            Status::invalid_argument(
                                "one row of values leads to columns of other types than another: bind them apart",
                            )
                        })?;
                        return Ok(Some((batch, (each, rows, at, statement))));
                    }
                    let Some(params) = each.values.get(at) else { return Ok(None) };
                    let begun = each.engine.begin(each.query.clone(), params, |flag| statement.listen(flag)).await;
                    rows = of_begun(begun.map_err(|e| status(&e))?, &Profiler::off()).await.map_err(|e| status(&e))?;
                    at += 1;
                }
            }
        }))
    }
}
