//! RETURNING: what a statement answers of the rows that it changes.
//!
//! Rows are known before they are written, so what fails in the answer fails before anything is changed.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Ident, SelectItem};
use futures::TryStreamExt;

use super::query::{alone, select};
use super::{Done, Target};
use crate::{Params, Session};

impl Session {
    /// The answer of a statement that asks for one, from the rows as they will be, or as they were if they go.
    pub(super) async fn returned(
        &self,
        target: &Target,
        alias: &Ident,
        items: Option<Vec<SelectItem>>,
        rows: impl FnOnce() -> Result<Vec<RecordBatch>>,
        params: &Params,
    ) -> Result<Option<SendableRecordBatchStream>> {
        let Some(items) = items else { return Ok(None) };
        let scratch = self.scratch(Arc::new(MemTable::try_new(target.schema(), vec![rows()?])?))?;
        let query = select(items, vec![alone(scratch.as_table(alias)?)], None)?;
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let plan = self.context.state().statement_to_plan(statement).await?;
        let stream = self.run(plan, params).await?;
        let schema = stream.schema();
        let batches: Vec<RecordBatch> = stream.try_collect().await?;
        Ok(Some(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches.into_iter().map(Ok))))))
    }
}

/// What a statement says when it is done: its answer, or how many rows it changed.
pub(super) fn done(answer: Option<SendableRecordBatchStream>, rows: u64) -> Done {
    answer.map_or(Done::Rows(rows), Done::Returned)
}
