//! The order of intervals: a month has 30 days and a day 24 hours, as PostgreSQL has it.
//!
//! The engine compares months, then days, then the rest, so that 96 hours were less than a day.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType};
use arrow_array::{Array, ArrayRef, Decimal128Array};
use arrow_schema::{DataType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{BinaryExpr, InList, ScalarFunction};
use datafusion::logical_expr::{
    Between, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

const MONTH: i128 = 30 * DAY;
const DAY: i128 = 24 * 3600 * 1_000_000_000;

/// Nanoseconds: more digits than an interval can have.
const LENGTH: DataType = DataType::Decimal128(38, 0);

/// A comparison of intervals by how long they are.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_interval = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Interval(_)));
    let length = |expr: Box<Expr>| Box::new(length_of(*expr));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op) && is_interval(&left) && is_interval(&right) =>
        {
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(length(left), op, length(right)))))
        }
        Expr::Between(Between { expr, negated, low, high })
            if [&expr, &low, &high].into_iter().all(|expr| is_interval(expr)) =>
        {
            Ok(Transformed::yes(Expr::Between(Between::new(length(expr), negated, length(low), length(high)))))
        }
        Expr::InList(InList { expr, list, negated }) if is_interval(&expr) && list.iter().all(is_interval) => {
            let list = list.into_iter().map(length_of).collect();
            Ok(Transformed::yes(Expr::InList(InList::new(length(expr), list, negated))))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// A key of an order, of intervals by how long they are.
pub(super) fn sorted(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr.get_type(schema) {
        Ok(DataType::Interval(_)) => Transformed::yes(length_of(expr)),
        _ => Transformed::no(expr),
    }
}

/// How long an interval is.
pub(super) fn length_of(interval: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(length()), vec![interval]))
}

pub(super) fn length() -> ScalarUDF {
    ScalarUDF::from(Length { signature: Signature::any(1, Volatility::Immutable) })
}

/// How long an interval is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Length {
    signature: Signature,
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &'static str {
        "length_of_interval"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(LENGTH)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(lengths(array)?)),
            [ColumnarValue::Scalar(value)] => {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths(&value.to_array()?)?, 0)?))
            }
            _ => internal_err!("the length of one interval"),
        }
    }
}

/// The lengths of intervals.
pub(super) fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    let lengths: Decimal128Array = match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            array.as_primitive::<IntervalMonthDayNanoType>().unary(|interval| {
                i128::from(interval.months) * MONTH + i128::from(interval.days) * DAY + i128::from(interval.nanoseconds)
            })
        }
        DataType::Interval(IntervalUnit::DayTime) => array
            .as_primitive::<IntervalDayTimeType>()
            .unary(|interval| i128::from(interval.days) * DAY + i128::from(interval.milliseconds) * 1_000_000),
        DataType::Interval(IntervalUnit::YearMonth) => {
            array.as_primitive::<IntervalYearMonthType>().unary(|months| i128::from(months) * MONTH)
        }
        other => return internal_err!("the length of an interval was asked of {other}"),
    };
    Ok(Arc::new(lengths.with_data_type(LENGTH)))
}
