//! A date and hours are a time stamp.

use arrow_schema::{DataType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans `date + interval` and `date - interval` as time stamps, where the engine drops the hours. By a constant of months and
/// days a date stays a date: that is right, and is what filters on columns of dates are made of.
#[derive(Debug)]
pub(super) struct DatesAndHours;

impl ExprPlanner for DatesAndHours {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, mut left, mut right } = expr;
        let is_date = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Date32 | DataType::Date64));
        let is_fine = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Interval(_))) && !is_of_days(expr);
        let moment = |date: Expr| cast(date, DataType::Timestamp(TimeUnit::Microsecond, None));
        match op {
            BinaryOperator::Plus | BinaryOperator::Minus if is_date(&left) && is_fine(&right) => left = moment(left),
            BinaryOperator::Plus if is_fine(&left) && is_date(&right) => right = moment(right),
            _ => return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        }
        Ok(PlannerResult::Planned(if op == BinaryOperator::Plus { left + right } else { left - right }))
    }
}

/// Whether an interval is a constant of whole months and days.
fn is_of_days(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _) => value.nanoseconds == 0,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(value)), _) => value.milliseconds == 0,
        Expr::Literal(ScalarValue::IntervalYearMonth(_), _) => true,
        Expr::Negative(inner) => is_of_days(inner),
        _ => false,
    }
}
