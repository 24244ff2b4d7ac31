//! The share of rows that a condition holds for, by what is known of its columns.

use std::sync::Arc;

use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion_physical_expr::utils::split_conjunction;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

/// A condition of which nothing is known.
const UNKNOWN: f64 = 0.2;
/// A comparison with a value whose place among a column's is not known, or of two columns.
const COMPARED: f64 = 0.4;
/// Text that has some other text in it.
const CONTAINS: f64 = 0.1;
/// The values of an expression of which nothing is known.
const VALUES: f64 = 10.0;

/// What is known of a column.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Its values.
    pub(super) distinct: Option<f64>,
    /// The smallest and the largest, as numbers.
    pub(super) bounds: Option<(f64, f64)>,
    /// The share of rows that have none.
    pub(super) nulls: f64,
}

/// What is asked for columns by their index.
pub(super) type Columns<'a> = dyn Fn(usize) -> Known + 'a;

/// The share of rows that a condition holds for.
pub(super) fn selectivity(condition: &Arc<dyn PhysicalExpr>, columns: &Columns<'_>) -> f64 {
    let mut share = 1.0;
    // Of each column that is compared with values the part of its range that is left.
    let mut ranges: Vec<(usize, f64, f64)> = Vec::new();
    for part in split_conjunction(condition) {
        match range(part, columns) {
            Some((column, from, to)) => match ranges.iter_mut().find(|(of, ..)| *of == column) {
                Some((_, least, most)) => (*least, *most) = (least.max(from), most.min(to)),
                None => ranges.push((column, from, to)),
            },
            None => share *= of_one(part, columns),
        }
    }
    let part = |(column, from, to): &(usize, f64, f64)| {
        let one = 1.0 / columns(*column).distinct.unwrap_or(VALUES).max(1.0);
        (to - from).max(one)
    };
    let ranges: f64 = ranges.iter().map(part).product();
    (share * ranges).clamp(0.0, 1.0)
}

/// The part of a column's range that a comparison leaves, from 0 to 1.
fn range(condition: &Arc<dyn PhysicalExpr>, columns: &Columns<'_>) -> Option<(usize, f64, f64)> {
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    let (column, value, op) = match (column(binary.left()), column(binary.right())) {
        (Some(column), None) => (column, binary.right(), *binary.op()),
        (None, Some(column)) => (column, binary.left(), binary.op().swap()?),
        _ => return None,
    };
    let value = number(value.downcast_ref::<Literal>()?.value())?;
    let (least, most) = columns(column).bounds?;
    let place = if most > least { ((value - least) / (most - least)).clamp(0.0, 1.0) } else { 0.5 };
    match op {
        Operator::Lt | Operator::LtEq => Some((column, 0.0, place)),
        Operator::Gt | Operator::GtEq => Some((column, place, 1.0)),
        _ => None,
    }
}

/// The share of rows that a condition without AND at its top holds for.
fn of_one(condition: &Arc<dyn PhysicalExpr>, columns: &Columns<'_>) -> f64 {
    let within = |share: f64| share.clamp(0.0, 1.0);
    let known = |expr: &Arc<dyn PhysicalExpr>| column(expr).map(columns).unwrap_or_default();
    let distinct = |expr: &Arc<dyn PhysicalExpr>| known(expr).distinct.unwrap_or(VALUES).max(1.0);
    if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
        let (left, right) = (binary.left(), binary.right());
        return match binary.op() {
            Operator::Or => within(1.0 - (1.0 - selectivity(left, columns)) * (1.0 - selectivity(right, columns))),
            // A literal has one value.
            Operator::Eq | Operator::IsNotDistinctFrom => 1.0 / of_either(left, right, distinct),
            Operator::NotEq | Operator::IsDistinctFrom => within(1.0 - 1.0 / of_either(left, right, distinct)),
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => COMPARED,
            _ => UNKNOWN,
        };
    }
    if let Some(not) = condition.downcast_ref::<NotExpr>() {
        return within(1.0 - selectivity(not.arg(), columns));
    }
    if let Some(list) = condition.downcast_ref::<InListExpr>() {
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let share = within(list.len() as f64 / distinct(list.expr()));
        return if list.negated() { within(1.0 - share) } else { share };
    }
    if let Some(like) = condition.downcast_ref::<LikeExpr>() {
        let pattern =
            like.pattern().downcast_ref::<Literal>().and_then(|literal| literal.value().try_as_str().flatten());
        let share = match pattern {
            Some(text) if !text.contains(['%', '_']) => 1.0 / distinct(like.expr()),
            _ => CONTAINS,
        };
        return if like.negated() { within(1.0 - share) } else { share };
    }
    if let Some(null) = condition.downcast_ref::<IsNullExpr>() {
        return within(known(null.arg()).nulls);
    }
    if let Some(null) = condition.downcast_ref::<IsNotNullExpr>() {
        return within(1.0 - known(null.arg()).nulls);
    }
    match condition.downcast_ref::<Literal>().map(Literal::value) {
        Some(ScalarValue::Boolean(Some(true))) => 1.0,
        Some(_) => 0.0,
        None => UNKNOWN,
    }
}

/// The values of the side that has more of them.
fn of_either(
    left: &Arc<dyn PhysicalExpr>,
    right: &Arc<dyn PhysicalExpr>,
    distinct: impl Fn(&Arc<dyn PhysicalExpr>) -> f64,
) -> f64 {
    let values = |expr: &Arc<dyn PhysicalExpr>| if expr.is::<Literal>() { 1.0 } else { distinct(expr) };
    values(left).max(values(right))
}

/// The column that an expression is, perhaps in another type.
fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    match expr.downcast_ref::<CastExpr>() {
        Some(cast) => column(cast.expr()),
        None => expr.downcast_ref::<Column>().map(Column::index),
    }
}

/// A value's place among those of its type.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn number(value: &ScalarValue) -> Option<f64> {
    use ScalarValue::{
        Date32, Date64, Decimal32, Decimal64, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64,
        Time32Millisecond, Time32Second, Time64Microsecond, Time64Nanosecond, TimestampMicrosecond,
        TimestampMillisecond, TimestampNanosecond, TimestampSecond, UInt8, UInt16, UInt32, UInt64,
    };
    Some(match value {
        Int8(Some(v)) => f64::from(*v),
        Int16(Some(v)) => f64::from(*v),
        Int32(Some(v)) | Date32(Some(v)) | Time32Second(Some(v)) | Time32Millisecond(Some(v)) => f64::from(*v),
        Int64(Some(v))
        | Date64(Some(v))
        | Time64Microsecond(Some(v))
        | Time64Nanosecond(Some(v))
        | TimestampSecond(Some(v), _)
        | TimestampMillisecond(Some(v), _)
        | TimestampMicrosecond(Some(v), _)
        | TimestampNanosecond(Some(v), _) => *v as f64,
        UInt8(Some(v)) => f64::from(*v),
        UInt16(Some(v)) => f64::from(*v),
        UInt32(Some(v)) => f64::from(*v),
        UInt64(Some(v)) => *v as f64,
        Float32(Some(v)) => f64::from(*v),
        Float64(Some(v)) => *v,
        Decimal32(Some(v), _, scale) => f64::from(*v) / 10_f64.powi(i32::from(*scale)),
        Decimal64(Some(v), _, scale) => *v as f64 / 10_f64.powi(i32::from(*scale)),
        Decimal128(Some(v), _, scale) => *v as f64 / 10_f64.powi(i32::from(*scale)),
        _ => return None,
    })
    .filter(|number| number.is_finite())
}
