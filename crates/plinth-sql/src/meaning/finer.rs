//! Timestamps beside values that are finer than they are: `m = TIMESTAMP '2024-01-01 00:00:00.0005'` of milliseconds.
//!
//! The engine takes the cast off the column and puts it on the value, which it cuts: the comparison would be with another value. Dates beside
//! time stamps it makes nanoseconds, which dates after 2262 have none of, whatever the unit beside them; time stamps that are written as text,
//! as in `m < '9999-12-31'`, too.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator, lit, when};

use super::nearest::per_second;

/// A comparison of a timestamp with a value between two of its own, as one with its own.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Transformed { data: expr, transformed, .. } = as_coarse_as_they_are(expr, schema)?;
    let mended = between_its_own(expr, schema)?;
    Ok(Transformed { transformed: mended.transformed || transformed, ..mended })
}

/// Dates, time stamps and texts that a comparison makes nanoseconds though none has them, in the finest unit that one of them has.
fn as_coarse_as_they_are(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let units = sides(&mut expr).into_iter().map(|side| unit_before(side, schema)).collect::<Result<Vec<_>>>()?;
    let finest = units.into_iter().collect::<Option<Vec<_>>>().and_then(|units| units.into_iter().max());
    let Some(finest) = finest.filter(|finest| *finest < TimeUnit::Nanosecond) else { return Ok(Transformed::no(expr)) };
    for side in sides(&mut expr) {
        if let Expr::Cast(Cast { field, .. }) = side
            && let DataType::Timestamp(_, zone) = field.data_type()
        {
            let coarse = DataType::Timestamp(finest, zone.clone());
            *field = Arc::new(field.as_ref().clone().with_data_type(coarse));
        }
    }
    Ok(Transformed::yes(expr))
}

const COMPARISONS: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];

/// What is compared.
fn sides(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if COMPARISONS.contains(op) => {
            vec![left, right]
        }
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        Expr::InList(InList { expr, list, .. }) => std::iter::once(expr.as_mut()).chain(list).collect(),
        _ => Vec::new(),
    }
}

/// The unit that a value had before it was made nanoseconds, a second of a date, that of its digits of a text; `None` if it is anything else.
fn unit_before(side: &Expr, schema: &DFSchema) -> Result<Option<TimeUnit>> {
    let Expr::Cast(Cast { expr, field }) = side else { return Ok(None) };
    if !matches!(field.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _)) {
        return Ok(None);
    }
    Ok(match expr.get_type(schema)? {
        DataType::Date32 => Some(TimeUnit::Second),
        DataType::Timestamp(unit, _) => Some(unit),
        _ => match expr.as_ref() {
            Expr::Literal(text, _) => text.try_as_str().map(|text| text.map_or(TimeUnit::Second, unit_of_text)),
            _ => None,
        },
    })
}

/// The unit that the digits behind the point of a time stamp are of.
fn unit_of_text(text: &str) -> TimeUnit {
    let places = text.rsplit_once('.').map_or("", |(_, places)| places);
    match places.bytes().take_while(u8::is_ascii_digit).count() {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

fn between_its_own(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mended = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op.swap() {
            Some(turned) => match comparison(left, *op, right, schema)? {
                None => comparison(right, turned, left, schema)?,
                mended => mended,
            },
            None => match op {
                Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => match comparison(left, *op, right, schema)? {
                    None => comparison(right, *op, left, schema)?,
                    mended => mended,
                },
                _ => None,
            },
        },
        Expr::Between(between) => of_between(between, schema)?,
        Expr::InList(list) => of_list(list, schema)?,
        _ => None,
    };
    Ok(mended.map_or(Transformed::no(expr), Transformed::yes))
}

/// What is compared: a timestamp that was made finer, and the value as the last of its own before it.
struct Found<'e> {
    value: &'e Expr,
    before: ScalarValue,
}

/// Whether a value lies between two of a timestamp's own.
fn between<'e>(cast: &'e Expr, literal: &Expr, schema: &DFSchema) -> Result<Option<Found<'e>>> {
    let (Expr::Cast(Cast { expr: value, field }), Some(literal)) = (cast, constant(literal)) else { return Ok(None) };
    let DataType::Timestamp(to, to_zone) = field.data_type() else { return Ok(None) };
    let DataType::Timestamp(from, zone) = value.get_type(schema)? else { return Ok(None) };
    let ratio = per_second(*to) / per_second(from);
    let count = match literal {
        ScalarValue::TimestampMillisecond(Some(count), _) if *to == TimeUnit::Millisecond => count,
        ScalarValue::TimestampMicrosecond(Some(count), _) if *to == TimeUnit::Microsecond => count,
        ScalarValue::TimestampNanosecond(Some(count), _) if *to == TimeUnit::Nanosecond => count,
        _ => return Ok(None),
    };
    if ratio < 2 || count.rem_euclid(ratio) == 0 || zone.is_some() != to_zone.is_some() {
        return Ok(None);
    }
    let before = Some(count.div_euclid(ratio));
    let before = match from {
        TimeUnit::Second => ScalarValue::TimestampSecond(before, zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(before, zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(before, zone),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(before, zone),
    };
    Ok(Some(Found { value, before }))
}

/// A value that is written out, such as `TIMESTAMP '2024-01-01 00:00:00.5'`, which is a cast of its text.
fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => constant(expr)?.cast_to(field.data_type()).ok(),
        _ => None,
    }
}

fn comparison(cast: &Expr, op: Operator, literal: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some(Found { value, before }) = between(cast, literal, schema)? else { return Ok(None) };
    let value = value.clone();
    Ok(Some(match op {
        Operator::Lt | Operator::LtEq => value.lt_eq(lit(before)),
        Operator::Gt | Operator::GtEq => value.gt(lit(before)),
        Operator::Eq => unless_null(value, false)?,
        Operator::NotEq => unless_null(value, true)?,
        Operator::IsDistinctFrom => lit(true),
        Operator::IsNotDistinctFrom => lit(false),
        _ => return Ok(None),
    }))
}

/// A truth, and NULL of NULL.
fn unless_null(value: Expr, truth: bool) -> Result<Expr> {
    when(value.is_not_null(), lit(truth)).end()
}

fn of_between(of: &Between, schema: &DFSchema) -> Result<Option<Expr>> {
    let Between { expr, negated, low, high } = of;
    if between(expr, low, schema)?.is_none() && between(expr, high, schema)?.is_none() {
        return Ok(None);
    }
    let from = comparison(expr, Operator::GtEq, low, schema)?;
    let to = comparison(expr, Operator::LtEq, high, schema)?;
    let from = from.unwrap_or_else(|| expr.as_ref().clone().gt_eq(low.as_ref().clone()));
    let to = to.unwrap_or_else(|| expr.as_ref().clone().lt_eq(high.as_ref().clone()));
    let both = from.and(to);
    Ok(Some(if *negated { Expr::Not(Box::new(both)) } else { both }))
}

/// A list without the values that a timestamp never has.
fn of_list(of: &InList, schema: &DFSchema) -> Result<Option<Expr>> {
    let mut kept = Vec::with_capacity(of.list.len());
    let mut value = None;
    for item in &of.list {
        match between(&of.expr, item, schema)? {
            Some(found) => value = Some(found.value.clone()),
            None => kept.push(item.clone()),
        }
    }
    let Some(value) = value else { return Ok(None) };
    if kept.is_empty() {
        return unless_null(value, of.negated).map(Some);
    }
    Ok(Some(Expr::InList(InList { expr: of.expr.clone(), list: kept, negated: of.negated })))
}
