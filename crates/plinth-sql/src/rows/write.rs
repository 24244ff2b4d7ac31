//! Rows on their way from a query to a table.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DataFusionError, Result, exec_err};
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use plinth_datafusion::{Writing, within_digits};
use plinth_encoding::text::{compact, compact_batch};
use plinth_rowstore::{TableError, Transaction};

use crate::error::{ErrorKind, SqlError};
use crate::{Params, Session};

/// Bytes that a transaction takes for each row that changes, beside its values.
const A_ROW: usize = 128;

/// Rows that wait to be written.
pub(super) struct Gathered {
    pub(super) batches: Vec<RecordBatch>,
    pub(super) rows: u64,
    /// What they take, and what the transaction will take for them.
    pub(super) memory: MemoryReservation,
}

/// What a statement changes.
#[derive(Default)]
pub(super) struct Changes {
    /// What tells the rows that go.
    pub(super) gone: Vec<RecordBatch>,
    /// Whether a row that goes twice is an error.
    pub(super) once: bool,
    pub(super) come: Vec<RecordBatch>,
}

impl Changes {
    /// Makes them: how many rows went.
    pub(super) fn apply(self, statement: &str, transaction: &mut Transaction<'static>) -> Result<u64> {
        let mut deleted = 0;
        for keys in &self.gone {
            let gone = transaction.delete_batch(keys).map_err(|error| explain(statement, error))?;
            if self.once && gone < keys.num_rows() as u64 {
                return exec_err!(
                    "{statement}: a row is changed more than once, by several rows that match it; make these one"
                );
            }
            deleted += gone;
        }
        for rows in &self.come {
            transaction.insert(rows).map_err(|error| explain(statement, error))?;
        }
        Ok(deleted)
    }
}

/// A table's error in the words of SQL.
pub(super) fn explain(statement: &str, error: TableError) -> DataFusionError {
    let (kind, what) = match error {
        TableError::Duplicate { key } if statement.starts_with("INSERT") => (
            ErrorKind::Constraint,
            format!(
                "a row with the key {key} is there already, or comes twice; ON CONFLICT DO NOTHING or DO UPDATE says what becomes \
                 of it"
            ),
        ),
        TableError::Duplicate { key } => (ErrorKind::Constraint, format!("two rows would have the key {key}")),
        TableError::Conflict { key } => (
            ErrorKind::Operation,
            format!("the row with the key {key} was changed by another transaction since this one began; begin again"),
        ),
        other @ TableError::NotUnique { .. } => (ErrorKind::Constraint, other.to_string()),
        other => (ErrorKind::Operation, other.to_string()),
    };
    SqlError::of(kind, format!("{statement}: {what}")).into()
}

impl Session {
    /// Runs a query whose columns become these types.
    pub(super) async fn query(
        &self,
        query: ast::Query,
        types: &[DataType],
        params: &Params,
    ) -> Result<SendableRecordBatchStream> {
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let plan = self.context.state().statement_to_plan(statement).await?;
        self.run(with_types(plan, types)?, params).await
    }

    /// Runs a plan.
    pub(super) async fn run(&self, plan: LogicalPlan, params: &Params) -> Result<SendableRecordBatchStream> {
        let rows = DataFrame::new(self.context.state(), params.bind(plan)?).execute_stream().await?;
        let schema = rows.schema();
        let within = rows.map(|batch| batch.and_then(within_digits));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, within)))
    }

    /// None yet.
    pub(super) fn nothing_gathered(&self) -> Gathered {
        let memory = MemoryConsumer::new("rows to be written").register(&self.context.runtime_env().memory_pool);
        Gathered { batches: Vec::new(), rows: 0, memory }
    }

    /// All rows of a stream.
    pub(super) async fn gather(&self, mut stream: SendableRecordBatchStream) -> Result<Gathered> {
        let mut gathered = self.nothing_gathered();
        while let Some(batch) = stream.next().await {
            gathered.push(batch?)?;
        }
        Ok(gathered)
    }

    /// Makes changes on a thread that may wait for the device, and gives back their count.
    pub(super) async fn apply(
        &self,
        writing: Writing,
        gathered: Gathered,
        changes: impl FnOnce(Vec<RecordBatch>, &mut Transaction<'static>) -> Result<u64> + Send + 'static,
    ) -> Result<u64> {
        let Gathered { batches, memory, .. } = gathered;
        blocking(move || writing.apply(memory, |transaction| changes(batches, transaction))).await
    }
}

/// Runs what waits for the device.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
}

impl Gathered {
    /// Adds rows.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        // Rows that were filtered would else keep all the text that they came with.
        let batch = compact_batch(&batch, compact).map_err(|e| DataFusionError::External(Box::new(e)))?;
        self.memory.try_grow(batch.get_array_memory_size() + batch.num_rows() * A_ROW)?;
        self.rows += batch.num_rows() as u64;
        self.batches.push(batch);
        Ok(())
    }

    /// Bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.memory.size()
    }
}

/// The columns of a batch that tell rows apart.
pub(super) fn keys_of(batch: &RecordBatch, count: usize) -> Result<RecordBatch> {
    Ok(batch.project(&(0..count).collect::<Vec<_>>())?)
}

/// A plan whose columns are cast to types; a parameter that is a column by itself has that type.
pub(super) fn with_types(plan: LogicalPlan, types: &[DataType]) -> Result<LogicalPlan> {
    if let LogicalPlan::Projection(Projection { expr, input, .. }) = plan {
        // Within the projection, so that a number is seen beside the type that it becomes.
        let cast = expr.into_iter().zip(types).map(|(expr, data_type)| {
            let (qualifier, name) = expr.qualified_name();
            Ok(typed(expr, data_type)?.unalias().cast_to(data_type, input.schema())?.alias_qualified(qualifier, name))
        });
        return Ok(LogicalPlan::Projection(Projection::try_new(cast.collect::<Result<_>>()?, Arc::clone(&input))?));
    }
    let schema = Arc::clone(plan.schema());
    let cast = schema.iter().zip(types).map(|((qualifier, field), data_type)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        Ok(column.cast_to(data_type, &schema)?.alias(field.name()))
    });
    LogicalPlanBuilder::from(plan).project(cast.collect::<Result<Vec<_>>>()?)?.build()
}

fn typed(expr: Expr, data_type: &DataType) -> Result<Expr> {
    let is_parameter = |expr: &Expr| match expr {
        Expr::Alias(alias) => matches!(alias.expr.as_ref(), Expr::Placeholder(_)),
        other => matches!(other, Expr::Placeholder(_)),
    };
    if !is_parameter(&expr) {
        return Ok(expr);
    }
    let field = Arc::new(arrow_schema::Field::new("", data_type.clone(), true));
    let transformed = expr.transform(|expr| {
        Ok(match expr {
            Expr::Placeholder(Placeholder { id, field: None }) => {
                Transformed::yes(Expr::Placeholder(Placeholder { id, field: Some(Arc::clone(&field)) }))
            }
            other => Transformed::no(other),
        })
    });
    Ok(transformed?.data)
}
