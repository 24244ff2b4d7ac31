//! The engine's expressions as opaque functions of columns.

use std::any::Any;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::expressions::{Column, LikeExpr, Literal};
use datafusion_physical_expr_common::physical_expr::{PhysicalExpr, fmt_sql};
use plinth_encoding::expr::ColumnFunction;

use crate::pattern::contained;
use crate::schema::widen;

/// A boolean expression of the engine over a batch of the columns it mentions.
#[derive(Debug)]
pub(crate) struct EngineFunction {
    expr: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl EngineFunction {
    /// `expr` refers to the columns of `schema` by position.
    pub(crate) fn new(expr: Arc<dyn PhysicalExpr>, schema: SchemaRef) -> Self {
        Self { expr, schema }
    }

    fn truth(&self, columns: &[ArrayRef]) -> Result<BooleanArray> {
        let fields = self.schema.fields();
        if columns.len() != fields.len() {
            return Err(DataFusionError::Internal(format!(
                "{} takes {} columns but was given {}",
                self.name(),
                fields.len(),
                columns.len()
            )));
        }
        let columns = columns.iter().zip(fields).map(|(c, f)| widen(c, f.data_type())).collect::<Result<Vec<_>>>()?;
        let rows = columns.first().map_or(0, |column| column.len());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let truth = self.expr.evaluate(&batch)?.into_array(rows)?;
        truth.as_boolean_opt().cloned().ok_or_else(|| {
            DataFusionError::Internal(format!("{} is of type {}, not boolean", self.name(), truth.data_type()))
        })
    }
}

impl ColumnFunction for EngineFunction {
    fn name(&self) -> String {
        fmt_sql(self.expr.as_ref()).to_string()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        self.truth(columns).map_err(|error| message(error.strip_backtrace()))
    }

    fn contained(&self) -> Option<Vec<u8>> {
        let like = self.expr.downcast_ref::<LikeExpr>().filter(|like| !like.negated() && !like.case_insensitive())?;
        like.expr().downcast_ref::<Column>()?;
        let pattern = like.pattern().downcast_ref::<Literal>()?.value().try_as_str()??;
        contained(pattern).map(String::into_bytes)
    }

    fn same_as(&self, other: &dyn ColumnFunction) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| self.schema == other.schema && self.expr.eq(&other.expr))
    }
}

/// Without the heading that [`crate::from_format`] will put back.
fn message(error: String) -> String {
    match error.strip_prefix("Execution error: ") {
        Some(rest) => rest.to_owned(),
        None => error,
    }
}
