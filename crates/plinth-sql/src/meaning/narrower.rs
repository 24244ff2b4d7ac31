//! Casts that are more than another name for a value, beside what they are compared with: `TRY_CAST(n AS TINYINT) < 50`, and a timestamp
//! without a zone beside a point in time.
//!
//! The engine takes any cast off a column and puts it on the constant, which is right of casts that give each value back alone: others fail,
//! or give NULL, or shift the clock. It also takes the difference of two dates for a duration where it estimates what a filter
//! leaves.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, InList, TryCast};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator};

use super::lists::Itself;
use super::zones::is_utc;

/// A comparison whose operands keep their casts; the difference of dates as it is.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right })
            if is_date(&left, schema) && is_date(&right, schema) =>
        {
            let difference = Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right });
            Transformed::yes(Itself::of(difference, 0))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let (left, right) = (kept(*left, schema), kept(*right, schema));
            let transformed = left.transformed || right.transformed;
            let (left, right) = (Box::new(left.data), Box::new(right.data));
            Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), transformed)
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let (expr, low, high) = (kept(*expr, schema), kept(*low, schema), kept(*high, schema));
            let transformed = expr.transformed || low.transformed || high.transformed;
            let (expr, low, high) = (Box::new(expr.data), Box::new(low.data), Box::new(high.data));
            Transformed::new_transformed(Expr::Between(Between { expr, negated, low, high }), transformed)
        }
        Expr::InList(InList { expr, list, negated }) => {
            let expr = kept(*expr, schema);
            let mut transformed = expr.transformed;
            let list = list.into_iter().map(|item| {
                let item = kept(item, schema);
                transformed |= item.transformed;
                item.data
            });
            let list = list.collect();
            let expr = Box::new(expr.data);
            Transformed::new_transformed(Expr::InList(InList { expr, list, negated }), transformed)
        }
        other => Transformed::no(other),
    })
}

fn is_comparison(op: Operator) -> bool {
    op.swap().is_some() || matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

fn is_date(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Date32))
}

/// An operand, out of the engine's reach if it is a cast that changes values, or one within others that do not.
fn kept(operand: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })) = &operand else {
        return Transformed::no(operand);
    };
    // What is known now is no column.
    let changes = !matches!(expr.as_ref(), Expr::Literal(..))
        && expr.get_type(schema).is_ok_and(|from| changes_values(&from, field.data_type()));
    if changes {
        return Transformed::yes(Itself::of(operand, 0));
    }
    match operand {
        Expr::Cast(Cast { expr, field }) => {
            kept(*expr, schema).update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field }))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            kept(*expr, schema).update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field }))
        }
        other => Transformed::no(other),
    }
}

/// Whether a cast has values that it does not give back as they are.
fn changes_values(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(zone)))
        | (DataType::Timestamp(_, Some(zone)), DataType::Timestamp(_, None)) => !is_utc(zone),
        (from, to) if from.is_numeric() && to.is_numeric() => match (digits(from), digits(to)) {
            (Some(from), Some(to)) => !to.holds(&from),
            _ => true,
        },
        _ => false,
    }
}

/// The numbers of a type: so many digits before the point and behind it, and whether some are negative.
struct Digits {
    before: i16,
    behind: i16,
    is_signed: bool,
    /// Of integers: the bits that a value has beside its sign.
    bits: Option<u8>,
}

impl Digits {
    fn holds(&self, other: &Self) -> bool {
        let holds_sign = self.is_signed || !other.is_signed;
        match (self.bits, other.bits) {
            (Some(own), Some(others)) => holds_sign && own >= others,
            (Some(_), None) => false,
            _ => holds_sign && self.before >= other.before && self.behind >= other.behind,
        }
    }
}

fn digits(of: &DataType) -> Option<Digits> {
    let integer = |before, bits, is_signed| Some(Digits { before, behind: 0, is_signed, bits: Some(bits) });
    match of {
        DataType::Int8 => integer(3, 7, true),
        DataType::UInt8 => integer(3, 8, false),
        DataType::Int16 => integer(5, 15, true),
        DataType::UInt16 => integer(5, 16, false),
        DataType::Int32 => integer(10, 31, true),
        DataType::UInt32 => integer(10, 32, false),
        DataType::Int64 => integer(19, 63, true),
        DataType::UInt64 => integer(20, 64, false),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let (precision, behind) = (i16::from(*precision), i16::from(*scale));
            Some(Digits { before: precision - behind, behind, is_signed: true, bits: None })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_that_widen_are_left_to_the_engine() {
        let stamp = |zone: Option<&str>| {
            DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Microsecond, zone.map(Into::into))
        };
        let decimal = |precision, scale| DataType::Decimal128(precision, scale);
        for (from, to) in [
            (DataType::Int8, DataType::Int64),
            (DataType::UInt32, DataType::Int64),
            (DataType::Int32, decimal(12, 2)),
            (DataType::UInt64, decimal(20, 0)),
            (decimal(10, 2), decimal(12, 3)),
            (stamp(None), stamp(Some("+00:00"))),
            (stamp(Some("Europe/Paris")), stamp(Some("UTC"))),
            (DataType::Int64, DataType::Utf8View),
        ] {
            assert!(!changes_values(&from, &to), "{from} to {to}");
        }
        for (from, to) in [
            (DataType::Int64, DataType::Int8),
            (DataType::Int64, DataType::UInt64),
            (DataType::UInt64, DataType::Int64),
            (DataType::Int64, decimal(12, 2)),
            (decimal(10, 2), DataType::Int64),
            (decimal(10, 2), decimal(10, 1)),
            (decimal(10, 2), decimal(10, 3)),
            (DataType::Int64, DataType::Float64),
            (DataType::Float64, DataType::Int64),
            (stamp(None), stamp(Some("America/New_York"))),
            (stamp(Some("America/New_York")), stamp(None)),
        ] {
            assert!(changes_values(&from, &to), "{from} to {to}");
        }
    }
}
