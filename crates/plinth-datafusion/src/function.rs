//! The engine's expressions as opaque functions of columns.

use std::any::Any;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::expressions::{Column, LikeExpr, Literal};
use datafusion_physical_expr_common::physical_expr::{PhysicalExpr, fmt_sql};
use plinth_encoding::Pattern;
use plinth_encoding::expr::ColumnFunction;

use crate::pattern::of_like;
use crate::schema::widen;

/// A boolean expression of the engine over a batch of the columns it mentions.
#[derive(Debug)]
pub(crate) struct EngineFunction {
    expr: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    /// What it asks of a column of text, if that is all; and whether it is the opposite.
    pattern: Option<(Pattern, bool)>,
}

impl EngineFunction {
    /// `expr` refers to the columns of `schema` by position.
    pub(crate) fn new(expr: Arc<dyn PhysicalExpr>, schema: SchemaRef) -> Self {
        let pattern = pattern(expr.as_ref());
        Self { expr, schema, pattern }
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
        // The engine looks for one text faster; several are a regular expression to it.
        if let (Some((pattern, negated)), [text]) = (&self.pattern, &*columns)
            && texts(pattern) > 1
            && let Some(text) = text.as_string_view_opt()
        {
            return Ok(text
                .iter()
                .map(|value| value.map(|value| pattern.matches(value.as_bytes()) != *negated))
                .collect());
        }
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

    fn pattern(&self) -> Option<(Pattern, bool)> {
        self.pattern.clone()
    }

    fn same_as(&self, other: &dyn ColumnFunction) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| self.schema == other.schema && self.expr.eq(&other.expr))
    }
}

/// What an expression asks of a column of text, if that is all; and whether it is the opposite.
fn pattern(expr: &dyn PhysicalExpr) -> Option<(Pattern, bool)> {
    let like = expr.downcast_ref::<LikeExpr>().filter(|like| !like.case_insensitive())?;
    like.expr().downcast_ref::<Column>()?;
    let pattern = like.pattern().downcast_ref::<Literal>()?.value().try_as_str()??;
    Some((of_like(pattern)?, like.negated()))
}

/// How many texts a pattern has.
fn texts(pattern: &Pattern) -> usize {
    let ends = [pattern.prefix(), pattern.suffix()];
    pattern.within().len() + ends.into_iter().filter(|text| !text.is_empty()).count()
}

/// Without the heading that [`crate::from_format`] will put back.
fn message(error: String) -> String {
    match error.strip_prefix("Execution error: ") {
        Some(rest) => rest.to_owned(),
        None => error,
    }
}
