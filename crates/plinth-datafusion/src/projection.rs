//! What a scan reads and what a table's reader gets.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_datasource::PartitionedFile;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_expr_adapter::rewrite::rewrite_input_file_name_in_projection;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use plinth_encoding::expr::Path;
use plinth_exec::vector::Vector;

use crate::columns::{Bound, FileColumns, Leaf};
use crate::error::from_exec;
use crate::evaluated::Evaluated;
use crate::schema::widen;

/// A projection bound to one file: the leaves its scan reads, and how the output is made from them.
#[derive(Clone, Debug)]
pub(crate) struct FileProjection {
    bound: Bound,
    /// The schema of the leaves, as the table types them.
    input: SchemaRef,
    output: SchemaRef,
}

impl FileProjection {
    /// Binds a projection to the file that `part` is of; `output` is the projection's schema over the whole table.
    pub(crate) fn new(
        projection: ProjectionExprs,
        part: &PartitionedFile,
        columns: &FileColumns,
        output: SchemaRef,
    ) -> Result<Self> {
        let projection = rewrite_input_file_name_in_projection(projection, part.object_meta.location.as_ref())?;
        let exprs: Vec<Arc<dyn PhysicalExpr>> = projection.expr_iter().collect();
        let bound = columns.bind(&exprs)?;
        let input = Arc::new(bound.schema());
        Ok(Self { bound, input, output })
    }

    /// What the scan is to read, in this order.
    pub(crate) fn paths(&self) -> Vec<Path> {
        self.bound.leaves.iter().map(|leaf| leaf.path.clone()).collect()
    }

    /// Makes an output batch from a batch of the scan.
    pub(crate) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.bound.leaves.len() {
            return Err(DataFusionError::Internal(format!(
                "a scan was asked for {} columns and gave {}",
                self.bound.leaves.len(),
                batch.num_columns()
            )));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch
            .columns()
            .iter()
            .zip(self.input.fields())
            .map(|(column, field)| widen(column, field.data_type()))
            .collect::<Result<Vec<_>>>()?;
        let columns = if self.is_identity() {
            columns
        } else {
            let input = RecordBatch::try_new_with_options(Arc::clone(&self.input), columns, &options)?;
            let evaluate = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&input)?.into_array(input.num_rows());
            self.bound.exprs.iter().map(evaluate).collect::<Result<Vec<ArrayRef>>>()?
        };
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    /// The output columns as expressions over leaves that may be codes.
    pub(crate) fn evaluated(&self) -> Result<Vec<Evaluated>> {
        self.bound.exprs.iter().map(|expr| Evaluated::new(expr, &self.input)).collect()
    }

    /// The leaves of rows of the scan in the types that the table has them in.
    pub(crate) fn typed(&self, leaves: Vec<Vector>) -> Result<Vec<Vector>> {
        let widened = |(leaf, vector): (&Leaf, Vector)| {
            if leaf.stored == *leaf.field.data_type() {
                return Ok(vector);
            }
            Ok(Vector::Array(widen(&vector.array().map_err(from_exec)?, leaf.field.data_type())?))
        };
        self.bound.leaves.iter().zip(leaves).map(widened).collect()
    }

    fn is_identity(&self) -> bool {
        self.bound.exprs.len() == self.bound.leaves.len()
            && self
                .bound
                .exprs
                .iter()
                .enumerate()
                .all(|(i, expr)| expr.downcast_ref::<Column>().is_some_and(|column| column.index() == i))
    }
}
