//! Aggregates of the rows that a filter leaves, without those blocks of which it leaves all: metadata has their sums, counts and
//! bounds.
//!
//! Which blocks these are is found as the scan meets them ([`Totals`]). To the engine they are one more row of
//! states, beside the one that its partial aggregate makes of all other rows.

use std::slice::Iter;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err};
use datafusion_datasource::file_scan_config::{FileScanConfig, FileScanConfigBuilder};
use datafusion_datasource::source::DataSourceExec;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;
use datafusion_physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::coop::CooperativeExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_session::PhysicalOptimizerRule;
use futures::{StreamExt, TryStreamExt, stream};
use plinth_encoding::expr::Scalar;
use plinth_format::{ColumnTotal, Totals};

use super::metadata::integers;
use crate::around::{Around, AroundExec};
use crate::config::is_native;
use crate::counted::{Counted, Wanted};
use crate::scalar::to_scalar_value;
use crate::source::PlinthSource;

/// Has aggregates without keys take blocks all of whose rows pass from metadata. Its place is behind the rules that push filters and
/// projections into scans.
#[derive(Debug)]
pub struct CoveredBlocks;

impl PhysicalOptimizerRule for CoveredBlocks {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if is_native(config) { plan.transform_up(replaced).data() } else { Ok(plan) }
    }

    fn name(&self) -> &'static str {
        "native_covered"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn replaced(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(first) = plan.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(plan)) };
    let is_of_all = first.group_expr().is_true_no_grouping() && first.filter_expr().iter().all(Option::is_none);
    if !matches!(first.mode(), AggregateMode::Partial | AggregateMode::Single) || !is_of_all {
        return Ok(Transformed::no(plan));
    }
    let below = first.input();
    let cooperative = below.downcast_ref::<CooperativeExec>();
    let scan = cooperative.map_or(below, CooperativeExec::input);
    let Some((config, source)) = filtered(scan) else { return Ok(Transformed::no(plan)) };
    let asked = first.aggr_expr().iter().map(|function| Asked::of(function, source)).collect::<Option<Vec<_>>>();
    // What bounds alone are asked of, filters that tighten as these are found do better.
    let Some(asked) = asked.filter(|asked| asked.iter().any(|asked| !asked.is_bound())) else {
        return Ok(Transformed::no(plan));
    };
    let counted = Arc::new(Counted::new(asked.iter().filter_map(|asked| asked.wanted).collect()));
    let source = source.clone().counting(Arc::clone(&counted));
    let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build();
    let mut below: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
    if cooperative.is_some() {
        below = Arc::new(CooperativeExec::new(below));
    }
    let of_mode = |mode, group_by, input| {
        let (functions, filters) = (first.aggr_expr().to_vec(), first.filter_expr().to_vec());
        AggregateExec::try_new(mode, group_by, functions, filters, input, first.input_schema())
    };
    let partial: Arc<dyn ExecutionPlan> = Arc::new(of_mode(AggregateMode::Partial, first.group_expr().clone(), below)?);
    let schema = partial.schema();
    let states = AroundExec::over(partial, Covered { asked: asked.into(), counted, schema });
    Ok(Transformed::yes(match first.mode() {
        AggregateMode::Single => Arc::new(of_mode(AggregateMode::Final, first.group_expr().as_final(), states)?),
        _ => states,
    }))
}

/// A scan of files that leaves out rows, and of which all others are wanted.
fn filtered(plan: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &PlinthSource)> {
    let (config, source) = plan.downcast_ref::<DataSourceExec>()?.downcast_to_file_source::<PlinthSource>()?;
    let is_filtered = !source.owned_predicates().is_empty() && source.dynamic_predicates().is_empty();
    (config.limit.is_none() && is_filtered).then_some((config, source))
}

/// What a function makes of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Rows,
    Values,
    Sum,
    Mean,
    Least,
    Greatest,
}

/// What a function asks of metadata.
#[derive(Clone, Debug)]
struct Asked {
    what: What,
    /// Of all functions but the number of rows.
    wanted: Option<Wanted>,
    /// Of the column.
    of: DataType,
    /// Of its states.
    states: Vec<DataType>,
}

impl Asked {
    /// Of a function of a column of the table, if metadata can tell it.
    fn of(function: &AggregateFunctionExpr, source: &PlinthSource) -> Option<Self> {
        let states = function.state_fields().ok()?.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        let [argument] = function.expressions().try_into().ok()?;
        if function.is_distinct() || !function.order_bys().is_empty() {
            return None;
        }
        let name = function.fun().name();
        if name == "count" && argument.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null()) {
            return Some(Self { what: What::Rows, wanted: None, of: DataType::Null, states });
        }
        let (column, cast) = column_of(&argument, source)?;
        let of = source.table_type(column)?;
        let is_exact = matches!(of, DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..));
        // A sum of what was cast from integers is theirs.
        let adds = match &cast {
            None => of.is_integer() || is_exact,
            Some(DataType::Float64) => of.is_integer(),
            Some(to) => integers(&of).zip(integers(to)).is_some_and(|(of, to)| to.0 <= of.0 && of.1 <= to.1),
        };
        let sums = |state: &DataType| match state {
            DataType::Decimal128(_, scale) => scale_of(&of) == Some(*scale),
            DataType::Float64 => of.is_integer(),
            _ => false,
        };
        let (what, sum, bounds) = match (name, states.as_slice()) {
            ("count", [DataType::Int64]) if cast.is_none() => (What::Values, false, false),
            ("sum", [state]) if adds && *state != DataType::Float64 && sums(state) => (What::Sum, true, false),
            ("avg", [DataType::UInt64, state]) if adds && sums(state) => (What::Mean, true, false),
            ("min", [state]) if cast.is_none() && *state == of => (What::Least, false, true),
            ("max", [state]) if cast.is_none() && *state == of => (What::Greatest, false, true),
            _ => return None,
        };
        // Bounds of text are cut, and those of floats are none where there is NaN.
        let is_whole = to_scalar_value(&Scalar::Int(0), &of).is_some();
        (!bounds || is_whole).then_some(Self { what, wanted: Some(Wanted { column, sum, bounds }), of, states })
    }

    /// Whether it is the least or the greatest value.
    fn is_bound(&self) -> bool {
        matches!(self.what, What::Least | What::Greatest)
    }

    /// Its states of rows of which metadata tells this.
    fn states(&self, totals: &Totals, columns: &mut Iter<'_, ColumnTotal>) -> Option<Vec<ScalarValue>> {
        let count = |rows: u64| i64::try_from(rows).ok().map(|rows| ScalarValue::Int64(Some(rows)));
        let Some(_) = self.wanted else { return Some(vec![count(totals.rows)?]) };
        let total = columns.next()?;
        let any = total.values > 0;
        let bound = |bound: Option<i128>| match bound {
            Some(bound) => to_scalar_value(&Scalar::Int(bound), &self.of),
            None if any => None,
            None => ScalarValue::try_from(&self.of).ok(),
        };
        Some(match self.what {
            What::Rows => return None,
            What::Values => vec![count(total.values)?],
            What::Sum => vec![sum_as(any.then_some(total.sum), self.states.first()?)?],
            What::Mean => {
                vec![ScalarValue::UInt64(Some(total.values)), sum_as(any.then_some(total.sum), self.states.get(1)?)?]
            }
            What::Least => vec![bound(total.bounds.map(|(min, _)| min))?],
            What::Greatest => vec![bound(total.bounds.map(|(_, max)| max))?],
        })
    }
}

/// The column of the table that an expression over the rows of a scan is, and the type that it is cast to.
fn column_of(expr: &Arc<dyn PhysicalExpr>, source: &PlinthSource) -> Option<(usize, Option<DataType>)> {
    let mut expr = Arc::clone(expr);
    let mut cast = None;
    let mut of_scan = true;
    loop {
        if let Some(inner) = expr.downcast_ref::<CastExpr>() {
            if cast.is_some() {
                return None;
            }
            cast = Some(inner.cast_type().clone());
            expr = Arc::clone(inner.expr());
        } else {
            let column = expr.downcast_ref::<Column>()?.index();
            if !of_scan {
                return Some((column, cast));
            }
            expr = source.output(column)?;
            of_scan = false;
        }
    }
}

fn scale_of(of: &DataType) -> Option<i8> {
    match of {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => Some(*scale),
        of if of.is_integer() => Some(0),
        _ => None,
    }
}

#[allow(clippy::cast_precision_loss, reason = "a mean is a double")]
fn sum_as(sum: Option<i128>, state: &DataType) -> Option<ScalarValue> {
    match state {
        DataType::Float64 => Some(ScalarValue::Float64(sum.map(|sum| sum as f64))),
        DataType::Decimal128(precision, scale) => {
            let most = 10_i128.checked_pow(u32::from((*precision).min(DECIMAL128_MAX_PRECISION)))?;
            let fits = sum.is_none_or(|sum| sum.checked_abs().is_some_and(|sum| sum < most));
            fits.then_some(ScalarValue::Decimal128(sum, *precision, *scale))
        }
        _ => None,
    }
}

/// A partial aggregate, beside which blocks are counted.
#[derive(Clone)]
struct Covered {
    asked: Arc<[Asked]>,
    counted: Arc<Counted>,
    schema: SchemaRef,
}

impl Covered {
    /// The states of what a partition has counted.
    fn states(&self, partition: usize) -> Result<Option<RecordBatch>> {
        let Some(totals) = self.counted.take(partition) else { return Ok(None) };
        let mut columns = totals.columns.iter();
        let states = self.asked.iter().map(|asked| asked.states(&totals, &mut columns));
        let states = states.collect::<Option<Vec<_>>>();
        let states = states.ok_or_else(|| exec_datafusion_err!("a sum or a count is out of the range of its type"))?;
        let arrays = states.iter().flatten().map(ScalarValue::to_array).collect::<Result<Vec<ArrayRef>>>()?;
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?))
    }
}

impl Around for Covered {
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.counted.begin(partition);
        let rows = operator.execute(partition, context)?;
        let covered = self.clone();
        // Once its rows have ended, all that the partition's scans have counted is known.
        let counted =
            stream::once(async move { covered.states(partition) }).try_filter_map(|states| async { Ok(states) });
        Ok(Box::pin(RecordBatchStreamAdapter::new(rows.schema(), rows.chain(counted))))
    }

    fn remark(&self) -> Option<String> {
        Some("counted=blocks all of whose rows pass".to_owned())
    }
}
