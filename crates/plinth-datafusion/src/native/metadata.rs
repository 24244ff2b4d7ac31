//! Aggregates of whole tables that the files' metadata answer.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, ScalarValue};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::memory::MemorySourceConfig;
use datafusion_datasource::source::DataSourceExec;
use datafusion_expr::Operator;
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;
use datafusion_physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::projection::ProjectionExec;

use super::aggregate::GroupExec;
use crate::checked::operands;
use crate::source::PlinthSource;
use crate::statistics::Told;

/// The row that a final aggregate over a partial one without keys gives, if metadata has all of it.
pub(super) fn answered(last: &AggregateExec, partial: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !partial.group_expr().is_empty() || partial.filter_expr().iter().any(Option::is_some) {
        return Ok(None);
    }
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (function, field) in partial.aggr_expr().iter().zip(last.schema().fields()) {
        let value = match distinct(function, partial.input())? {
            Some(value) => Some(value),
            None => value(function, partial.input())?,
        };
        match value.filter(|value| value.data_type() == *field.data_type()) {
            Some(value) => columns.push(value.to_array()?),
            None => return Ok(None),
        }
    }
    let row = RecordBatch::try_new(last.schema(), columns)?;
    Ok(Some(MemorySourceConfig::try_new_exec(&[vec![row]], last.schema(), None)?))
}

/// A plan that scans files.
struct Scan<'a> {
    source: &'a PlinthSource,
    parts: Vec<PartitionedFile>,
    /// Above the scan, which may take it up later.
    projection: Option<&'a ProjectionExec>,
}

impl<'a> Scan<'a> {
    fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        let projection = plan.downcast_ref::<ProjectionExec>();
        let scan = projection.map_or(plan, ProjectionExec::input);
        let (config, source) = scan.downcast_ref::<DataSourceExec>()?.downcast_to_file_source::<PlinthSource>()?;
        let parts = config.file_groups.iter().flat_map(FileGroup::iter).cloned().collect();
        config.limit.is_none().then_some(Self { source, parts, projection })
    }

    /// An expression over the plan's rows as one over the table's columns.
    fn over_table(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let projected = |column: usize| self.projection?.expr().get(column).map(|expr| Arc::clone(&expr.expr));
        let expr = replaced(expr, projected)?;
        replaced(&expr, |column| self.source.output(column))
    }

    /// What is told of the rows and of a column of the table.
    fn told(&self, column: Option<&Arc<dyn PhysicalExpr>>) -> Result<Option<Told>> {
        self.source.told(&self.parts, column)
    }
}

/// An expression with others in the place of columns.
fn replaced(
    expr: &Arc<dyn PhysicalExpr>,
    by: impl Fn(usize) -> Option<Arc<dyn PhysicalExpr>>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let column = |node: Arc<dyn PhysicalExpr>| {
        Ok(match node.downcast_ref::<Column>().and_then(|column| by(column.index())) {
            Some(expr) => Transformed::new(expr, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    };
    Arc::clone(expr).transform_down(column).data()
}

/// How many values there are, each once: what is left of `count(DISTINCT x)` counts groups by x, or says so itself.
fn distinct(function: &AggregateFunctionExpr, input: &Arc<dyn ExecutionPlan>) -> Result<Option<ScalarValue>> {
    let [argument] = &function.expressions()[..] else { return Ok(None) };
    let Some(column) = argument.downcast_ref::<Column>().filter(|_| function.fun().name() == "count") else {
        return Ok(None);
    };
    let (column, input) = match input.downcast_ref::<GroupExec>().and_then(GroupExec::distinct_values_of) {
        Some((key, input)) if !function.is_distinct() => (Column::new(column.name(), key), input),
        None if function.is_distinct() => (column.clone(), input),
        _ => return Ok(None),
    };
    let Some(scan) = Scan::of(input) else { return Ok(None) };
    let column: Arc<dyn PhysicalExpr> = Arc::new(column);
    let told = scan.told(Some(&scan.over_table(&column)?))?;
    let count = told.and_then(|told| told.distinct).and_then(|count| i64::try_from(count).ok());
    Ok(count.map(|count| ScalarValue::Int64(Some(count))))
}

/// The value of a function of numbers.
fn value(function: &AggregateFunctionExpr, input: &Arc<dyn ExecutionPlan>) -> Result<Option<ScalarValue>> {
    let ([argument], Some(scan), false) = (&function.expressions()[..], Scan::of(input), function.is_distinct()) else {
        return Ok(None);
    };
    let argument = scan.over_table(argument)?;
    let schema = scan.source.table_schema().table_schema();
    let result = function.field().data_type().clone();
    let count = |rows: u64| i64::try_from(rows).ok().map(|rows| ScalarValue::Int64(Some(rows)));
    Ok(match function.fun().name() {
        "count" if argument.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null()) => {
            scan.told(None)?.and_then(|told| count(told.rows))
        }
        "count" if argument.downcast_ref::<Column>().is_some() => {
            scan.told(Some(&argument))?.and_then(|told| count(told.values()))
        }
        "count" => Shifted::of(&argument, schema, &scan)?.and_then(|of| count(of.told.values())),
        "sum" => Shifted::of(&argument, schema, &scan)?.and_then(|of| of.sum_as(&result)),
        "avg" if result == DataType::Float64 => {
            // The engine's mean of integers is that of doubles; the sum is exact here.
            let cast = argument.downcast_ref::<CastExpr>().filter(|cast| *cast.cast_type() == DataType::Float64);
            let of = cast.map_or(&argument, CastExpr::expr);
            let is_integer = of.data_type(schema)?.is_integer();
            if is_integer { Shifted::of(of, schema, &scan)?.and_then(|of| of.mean()) } else { None }
        }
        _ => None,
    })
}

/// The integers of a column, with the same number added to each.
struct Shifted {
    told: Told,
    /// Of the results.
    bounds: Option<(i128, i128)>,
    added: i128,
}

impl Shifted {
    /// An expression, if it is a column of integers or decimals, perhaps in another type, to which constants were added, and no row's value leaves its type.
    fn of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema, scan: &Scan<'_>) -> Result<Option<Self>> {
        if expr.downcast_ref::<Column>().is_some() {
            let told = scan.told(Some(expr))?;
            return Ok(told.map(|told| Self { bounds: told.bounds, told, added: 0 }));
        }
        let (inner, added) = if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            (cast.expr(), Some(0))
        } else if let Some((operator, left, right)) = operands(expr) {
            match (operator, constant(left), constant(right)) {
                (Operator::Plus, Some(added), None) => (right, Some(added)),
                (Operator::Plus, None, Some(added)) => (left, Some(added)),
                (Operator::Minus, None, Some(taken)) => (left, taken.checked_neg()),
                _ => return Ok(None),
            }
        } else {
            return Ok(None);
        };
        let (from, to) = (inner.data_type(schema)?, expr.data_type(schema)?);
        let (true, Some((least, greatest)), Some(more)) = (from.is_integer(), integers(&to), added) else {
            return Ok(None);
        };
        let Some(inner) = Self::of(inner, schema, scan)? else { return Ok(None) };
        let shifted = |bound: i128| bound.checked_add(more).filter(|bound| (least..=greatest).contains(bound));
        let bounds = match inner.bounds {
            Some((min, max)) => shifted(min).zip(shifted(max)),
            None => None,
        };
        // Without values there is nothing to leave the type.
        let fits = bounds.is_some() || inner.told.values() == 0;
        Ok(inner.added.checked_add(more).filter(|_| fits).map(|added| Self { told: inner.told, bounds, added }))
    }

    fn sum(&self) -> Option<i128> {
        self.told.sum?.checked_add(self.added.checked_mul(i128::from(self.told.values()))?)
    }

    /// The sum in the type that the engine gives it.
    fn sum_as(&self, result: &DataType) -> Option<ScalarValue> {
        let sum = match self.told.values() {
            0 => None,
            _ => Some(self.sum()?),
        };
        Some(match result {
            DataType::Int64 => ScalarValue::Int64(sum.map(i64::try_from).transpose().ok()?),
            DataType::UInt64 => ScalarValue::UInt64(sum.map(u64::try_from).transpose().ok()?),
            DataType::Decimal128(precision, scale) if self.told.scale == Some(*scale) => {
                let most = 10_i128.checked_pow(u32::from(*precision))?;
                if sum.is_some_and(|sum| sum.checked_abs().is_none_or(|sum| sum >= most)) {
                    return None;
                }
                ScalarValue::Decimal128(sum, *precision, *scale)
            }
            _ => return None,
        })
    }

    #[allow(clippy::cast_precision_loss, reason = "a mean is a double")]
    fn mean(&self) -> Option<ScalarValue> {
        Some(ScalarValue::Float64(match self.told.values() {
            0 => None,
            values => Some(self.sum()? as f64 / values as f64),
        }))
    }
}

/// What an integer type holds.
pub(super) fn integers(data_type: &DataType) -> Option<(i128, i128)> {
    Some(match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// The integer that a literal holds.
fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<i128> {
    Some(match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Int8(value) => (*value)?.into(),
        ScalarValue::Int16(value) => (*value)?.into(),
        ScalarValue::Int32(value) => (*value)?.into(),
        ScalarValue::Int64(value) => (*value)?.into(),
        ScalarValue::UInt8(value) => (*value)?.into(),
        ScalarValue::UInt16(value) => (*value)?.into(),
        ScalarValue::UInt32(value) => (*value)?.into(),
        ScalarValue::UInt64(value) => (*value)?.into(),
        _ => return None,
    })
}
