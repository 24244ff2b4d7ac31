//! Expressions over columns that may be codes.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use plinth_exec::vector::Vector;

use crate::error::from_exec;

/// An expression: a column is passed on as it is, all else is evaluated by the engine on values.
#[derive(Clone, Debug)]
pub(crate) enum Evaluated {
    /// A column.
    Column(usize),
    /// Anything else.
    Computed {
        /// The expression, over the columns that it mentions.
        expr: Arc<dyn PhysicalExpr>,
        /// These, among all.
        columns: Vec<usize>,
        /// Theirs.
        schema: SchemaRef,
    },
}

impl Evaluated {
    /// An expression over columns of a schema.
    pub(crate) fn new(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return Ok(Self::Column(column.index()));
        }
        let mut columns: Vec<usize> = Vec::new();
        let renumber = |node: Arc<dyn PhysicalExpr>| {
            let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
            let at = columns.iter().position(|known| *known == column.index()).unwrap_or_else(|| {
                columns.push(column.index());
                columns.len() - 1
            });
            Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)) as Arc<dyn PhysicalExpr>))
        };
        let expr = Arc::clone(expr).transform_down(renumber).data()?;
        let schema = Arc::new(schema.project(&columns)?);
        Ok(Self::Computed { expr, columns, schema })
    }

    /// The expression's values for some rows.
    pub(crate) fn evaluate(&self, vectors: &[Vector], rows: usize) -> Result<Vector> {
        let vector = |column: usize| {
            vectors
                .get(column)
                .ok_or_else(|| DataFusionError::Internal(format!("there is no column {column} to evaluate")))
        };
        match self {
            Self::Column(column) => vector(*column).cloned(),
            Self::Computed { expr, columns, schema } => {
                let array = |&column: &usize| vector(column)?.array().map_err(from_exec);
                let arrays = columns.iter().map(array).collect::<Result<Vec<ArrayRef>>>()?;
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?;
                Ok(Vector::Array(expr.evaluate(&batch)?.into_array(rows)?))
            }
        }
    }
}
