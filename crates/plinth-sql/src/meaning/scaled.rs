//! An interval times a number, and divided by one: the engine knows neither.
//!
//! As PostgreSQL has it, a part of a month is days of which it has 30, and a part of a day is hours.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef, IntervalMonthDayNanoArray, PrimitiveArray};
use arrow_schema::{DataType, IntervalUnit};
use datafusion::common::{DFSchema, DataFusionError, Result, exec_datafusion_err, exec_err, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_OF_MONTH: f64 = 30.0;
const NANOS_OF_DAY: f64 = 86_400e9;

/// Plans these operators.
#[derive(Debug)]
pub(super) struct Scaled;

impl ExprPlanner for Scaled {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_interval = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Interval(_)));
        let number = |expr: &Expr| match expr.get_type(schema) {
            Ok(to) if to.is_integer() && to != DataType::UInt64 => Some(DataType::Int64),
            Ok(to) if to.is_numeric() => Some(DataType::Float64),
            _ => None,
        };
        let (interval, factor, to, divides) = match expr.op {
            BinaryOperator::Multiply if is_interval(&expr.left) => match number(&expr.right) {
                Some(to) => (expr.left, expr.right, to, false),
                None => return Ok(PlannerResult::Original(expr)),
            },
            BinaryOperator::Multiply if is_interval(&expr.right) => match number(&expr.left) {
                Some(to) => (expr.right, expr.left, to, false),
                None => return Ok(PlannerResult::Original(expr)),
            },
            BinaryOperator::Divide if is_interval(&expr.left) => match number(&expr.right) {
                Some(_) => (expr.left, expr.right, DataType::Float64, true),
                None => return Ok(PlannerResult::Original(expr)),
            },
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let function = if divides { divided() } else { times() };
        let args = vec![cast(interval, INTERVAL), cast(factor, to)];
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), args))))
    }
}

/// An interval so many times.
pub(super) fn times() -> ScalarUDF {
    ScalarUDF::from(Scale { divides: false, signature: Signature::any(2, Volatility::Immutable) })
}

/// An interval in so many parts.
pub(super) fn divided() -> ScalarUDF {
    ScalarUDF::from(Scale { divides: true, signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Scale {
    divides: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Scale {
    fn name(&self) -> &'static str {
        if self.divides { "plinth_interval_part" } else { "plinth_interval_times" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let [intervals, by] = arrays.as_slice() else { return internal_err!("{}: of two values", self.name()) };
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let scaled = match by.data_type() {
            DataType::Int64 => of_each(intervals, by.as_primitive::<Int64Type>(), whole)?,
            DataType::Float64 if self.divides => {
                of_each(intervals, by.as_primitive::<Float64Type>(), |interval, by| {
                    if by == 0.0 {
                        return exec_err!("an interval divided by zero");
                    }
                    broken(interval, |part| part / by)
                })?
            }
            DataType::Float64 => {
                of_each(intervals, by.as_primitive::<Float64Type>(), |interval, by| broken(interval, |part| part * by))?
            }
            other => return internal_err!("{}: by {other}", self.name()),
        };
        Ok(ColumnarValue::Array(Arc::new(scaled) as ArrayRef))
    }
}

fn of_each<T: arrow_array::ArrowPrimitiveType>(
    intervals: &IntervalMonthDayNanoArray,
    by: &PrimitiveArray<T>,
    scale: impl Fn(IntervalMonthDayNano, T::Native) -> Result<IntervalMonthDayNano>,
) -> Result<IntervalMonthDayNanoArray> {
    let scaled = intervals.iter().zip(by.iter()).map(|(interval, by)| match (interval, by) {
        (Some(interval), Some(by)) => scale(interval, by).map(Some),
        _ => Ok(None),
    });
    scaled.collect()
}

fn too_long() -> DataFusionError {
    exec_datafusion_err!("an interval times a number is longer than intervals can be")
}

fn whole(interval: IntervalMonthDayNano, by: i64) -> Result<IntervalMonthDayNano> {
    let narrow = |part: i32| i64::from(part).checked_mul(by).and_then(|part| i32::try_from(part).ok());
    let scaled = narrow(interval.months).zip(narrow(interval.days)).zip(interval.nanoseconds.checked_mul(by));
    let ((months, days), nanos) = scaled.ok_or_else(too_long)?;
    Ok(IntervalMonthDayNano::new(months, days, nanos))
}

#[allow(clippy::cast_possible_truncation, reason = "the values are in bounds, which is asked before")]
fn broken(interval: IntervalMonthDayNano, scale: impl Fn(f64) -> f64) -> Result<IntervalMonthDayNano> {
    let narrow = |part: f64| if part.abs() < f64::from(i32::MAX) { Ok(part.trunc() as i32) } else { Err(too_long()) };
    // Microseconds are told apart, no more.
    let rounded = |part: f64| (part * 1e6).round() / 1e6;
    let (all_months, all_days) = (scale(f64::from(interval.months)), scale(f64::from(interval.days)));
    let months = narrow(all_months)?;
    let days_beyond = rounded((all_months - f64::from(months)) * DAYS_OF_MONTH);
    let days = f64::from(narrow(all_days)?) + days_beyond.trunc();
    let day_beyond = rounded(all_days.fract() + days_beyond.fract());
    let (days, day_beyond) = (narrow(days + day_beyond.trunc())?, day_beyond.fract());
    #[allow(clippy::cast_precision_loss, reason = "an interval times a fraction is told to the microsecond")]
    let nanos = (scale(interval.nanoseconds as f64) + day_beyond * NANOS_OF_DAY) / 1000.0;
    if !nanos.is_finite() || nanos.abs() >= 9.2e15 {
        return Err(too_long());
    }
    Ok(IntervalMonthDayNano::new(months, days, nanos.round() as i64 * 1000))
}
