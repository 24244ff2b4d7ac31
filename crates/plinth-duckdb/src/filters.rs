//! DuckDB's bound filters as predicates over encoded blocks: each the same as the filter, or true wherever the filter is.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use duckdb_neo::cast::CastMode;
use duckdb_neo::expression::{Expression, ExpressionType};
use duckdb_neo::logical_type::LogicalTypeID;
use duckdb_neo::types::{
    BlobValue, DateValue, DecimalValue, TimeValue, TimestampMsValue, TimestampNsValue, TimestampSecValue,
    TimestampTzValue, TimestampValue,
};
use duckdb_neo::value::Value;
use plinth_encoding::expr::{CompareOp, Expr, Path, Scalar};

use crate::failure::Result;
use crate::like::Like;

/// How deep an expression may be.
const DEPTH: usize = 64;

/// The columns that filters may speak of, by their place in the scan.
pub(crate) trait Columns {
    /// The name and the type of a column; `None` if filters on it are left to DuckDB.
    fn column(&self, place: usize) -> Option<(&str, DataType)>;
}

/// The predicate that a filter is, or that follows from it; `None` if only DuckDB can answer it.
///
/// # Errors
/// If DuckDB does not tell what the filter is.
pub(crate) fn translate(filter: &Expression<'_>, columns: &impl Columns) -> Result<Option<Expr>> {
    Ok(Translation { columns }.truth(filter, 0)?.map(|found| found.predicate))
}

/// What an expression became.
struct Found {
    /// True for all rows that the expression is true for.
    predicate: Expr,
    /// Whether for no others, and null where it is null: what is not can't be negated.
    exact: bool,
}

struct Translation<'a, C> {
    columns: &'a C,
}

/// A column or a field of one, with its type.
struct Place {
    path: Path,
    data_type: DataType,
}

impl<C: Columns> Translation<'_, C> {
    fn truth(&self, expression: &Expression<'_>, depth: usize) -> Result<Option<Found>> {
        if depth > DEPTH {
            return Ok(None);
        }
        let children = expression.children()?;
        let each = || children.iter().map(|child| self.truth(child, depth + 1)).collect::<Result<Vec<_>>>();
        let exact = match (expression.expression_type()?, &children[..]) {
            (ExpressionType::ConjunctionAnd, _) => {
                let each = each()?;
                let exact = each.iter().all(|child| child.as_ref().is_some_and(|child| child.exact));
                let all: Vec<Expr> = each.into_iter().flatten().map(|child| child.predicate).collect();
                return Ok((!all.is_empty()).then_some(Found { predicate: Expr::And(all), exact }));
            }
            (ExpressionType::ConjunctionOr, _) => {
                let Some(each) = each()?.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
                let exact = each.iter().all(|child| child.exact);
                let any = each.into_iter().map(|child| child.predicate).collect();
                return Ok(Some(Found { predicate: Expr::Or(any), exact }));
            }
            (ExpressionType::CompareBetween, [value, low, high]) => {
                // Its bounds may be excluded, which the interface does not tell.
                let low = self.compare(CompareOp::GtEq, value, low)?;
                let high = self.compare(CompareOp::LtEq, value, high)?;
                let all: Vec<Expr> = [low, high].into_iter().flatten().collect();
                return Ok((!all.is_empty()).then_some(Found { predicate: Expr::And(all), exact: false }));
            }
            (ExpressionType::OperatorNot, [inner]) => {
                not(self.truth(inner, depth + 1)?.filter(|inner| inner.exact).map(|inner| inner.predicate))
            }
            (ExpressionType::OperatorIsNull, [inner]) => self.place(inner, 0)?.map(|place| Expr::IsNull(place.path)),
            (ExpressionType::OperatorIsNotNull, [inner]) => {
                not(self.place(inner, 0)?.map(|place| Expr::IsNull(place.path)))
            }
            (ExpressionType::ValueConstant, _) => match expression.return_type()?.id()? {
                LogicalTypeID::Boolean => Some(Expr::Literal(expression.get_constant_value()?.get::<bool>()?)),
                _ => None,
            },
            (ExpressionType::CompareIn, [value, list @ ..]) => self.is_in(value, list)?,
            (ExpressionType::CompareNotIn, [value, list @ ..]) => not(self.is_in(value, list)?),
            (ExpressionType::CompareNotDistinctFrom, [left, right]) => {
                self.distinct(left, right)?.map(|(equal, null)| Expr::And(vec![Expr::Not(Box::new(null)), equal]))
            }
            (ExpressionType::CompareDistinctFrom, [left, right]) => {
                self.distinct(left, right)?.map(|(equal, null)| Expr::Or(vec![null, Expr::Not(Box::new(equal))]))
            }
            (ExpressionType::BoundColumnRef, _) => self.flag(expression)?,
            (ExpressionType::BoundFunction, _) => self.function(expression, &children)?,
            (kind, [left, right]) => match compared(kind) {
                Some(op) => self.compare(op, left, right)?,
                None => None,
            },
            _ => None,
        };
        Ok(exact.map(|predicate| Found { predicate, exact: true }))
    }

    /// A column that is itself a truth value.
    fn flag(&self, expression: &Expression<'_>) -> Result<Option<Expr>> {
        Ok(self.place(expression, 0)?.filter(|place| place.data_type == DataType::Boolean).map(|place| Expr::Compare {
            column: place.path,
            op: CompareOp::Eq,
            value: Scalar::Bool(true),
        }))
    }

    /// A column, a field of a struct, or a whole number made wider.
    fn place(&self, expression: &Expression<'_>, depth: usize) -> Result<Option<Place>> {
        if depth > DEPTH {
            return Ok(None);
        }
        match expression.expression_type()? {
            ExpressionType::BoundColumnRef => {
                let found = self.columns.column(expression.reference_index()?);
                Ok(found.map(|(name, data_type)| Place { path: Path::column(name), data_type }))
            }
            ExpressionType::OperatorCast if matches!(expression.cast_mode()?, CastMode::Normal) => {
                let inner = self.place(&expression.child(0)?, depth + 1)?;
                let to = whole(expression.return_type()?.id()?);
                Ok(inner.filter(|place| widens(&place.data_type, to)))
            }
            ExpressionType::BoundFunction if expression.function_name()? == "struct_extract" => {
                let children = expression.children()?;
                let [of, name] = &children[..] else { return Ok(None) };
                let Some(Place { path, data_type: DataType::Struct(fields) }) = self.place(of, depth + 1)? else {
                    return Ok(None);
                };
                if !matches!(name.expression_type()?, ExpressionType::ValueConstant) {
                    return Ok(None);
                }
                let Some(name) = name.get_constant_value()?.get::<String>().ok().flatten() else { return Ok(None) };
                let mut found = fields.iter().filter(|field| field.name().eq_ignore_ascii_case(&name));
                Ok(match (found.next(), found.next()) {
                    (Some(field), None) => {
                        Some(Place { path: path.child(field.name()), data_type: field.data_type().clone() })
                    }
                    _ => None,
                })
            }
            _ => Ok(None),
        }
    }

    fn compare(&self, op: CompareOp, left: &Expression<'_>, right: &Expression<'_>) -> Result<Option<Expr>> {
        if let Some(found) = self.compare_with(op, left, right)? {
            return Ok(Some(found));
        }
        self.compare_with(turned(op), right, left)
    }

    fn compare_with(&self, op: CompareOp, column: &Expression<'_>, constant: &Expression<'_>) -> Result<Option<Expr>> {
        let Some(place) = self.place(column, 0)? else { return Ok(None) };
        Ok(match constant_of(constant, &place.data_type)? {
            Constant::Null => Some(Expr::Literal(None)),
            Constant::Value(value) => Some(comparison(place.path, op, value)),
            Constant::Unknown => None,
        })
    }

    fn is_in(&self, value: &Expression<'_>, list: &[Expression<'_>]) -> Result<Option<Expr>> {
        let Some(place) = self.place(value, 0)? else { return Ok(None) };
        let (mut values, mut has_null) = (Vec::with_capacity(list.len()), false);
        for item in list {
            match constant_of(item, &place.data_type)? {
                Constant::Null => has_null = true,
                Constant::Value(value) => values.extend(equal_to(value)),
                Constant::Unknown => return Ok(None),
            }
        }
        let known = Expr::In { column: place.path, values };
        Ok(Some(if has_null { Expr::Or(vec![known, Expr::Literal(None)]) } else { known }))
    }

    /// That a column equals a constant, and that it is null.
    fn distinct(&self, left: &Expression<'_>, right: &Expression<'_>) -> Result<Option<(Expr, Expr)>> {
        for (column, constant) in [(left, right), (right, left)] {
            let Some(place) = self.place(column, 0)? else { continue };
            if let Constant::Value(value) = constant_of(constant, &place.data_type)? {
                let null = Expr::IsNull(place.path.clone());
                return Ok(Some((comparison(place.path, CompareOp::Eq, value), null)));
            }
        }
        Ok(None)
    }

    fn function(&self, expression: &Expression<'_>, children: &[Expression<'_>]) -> Result<Option<Expr>> {
        let name = expression.function_name()?;
        if name == "struct_extract" {
            return self.flag(expression);
        }
        let [column, pattern] = children else { return Ok(None) };
        let Some(place) = self.place(column, 0)?.filter(|place| place.data_type == DataType::Utf8View) else {
            return Ok(None);
        };
        let Constant::Value(Scalar::Bytes(text)) = constant_of(pattern, &place.data_type)? else { return Ok(None) };
        let Ok(text) = std::str::from_utf8(&text) else { return Ok(None) };
        let like = |text| Like::parse(text).map(|pattern| pattern.of(place.path.clone()));
        Ok(match name.as_str() {
            "prefix" | "starts_with" | "^@" if !text.is_empty() => {
                Some(Expr::starts_with(&place.path, text.as_bytes()))
            }
            "contains" => Some(Like::contains(text).of(place.path)),
            "suffix" | "ends_with" => Some(Like::ends_with(text).of(place.path)),
            "~~" => like(text),
            "!~~" => like(text).map(|inner| Expr::Not(Box::new(inner))),
            _ => None,
        })
    }
}

fn not(inner: Option<Expr>) -> Option<Expr> {
    inner.map(|inner| Expr::Not(Box::new(inner)))
}

fn compared(kind: ExpressionType) -> Option<CompareOp> {
    Some(match kind {
        ExpressionType::CompareEqual => CompareOp::Eq,
        ExpressionType::CompareNotEqual => CompareOp::NotEq,
        ExpressionType::CompareLessThan => CompareOp::Lt,
        ExpressionType::CompareLessThanOrEqualTo => CompareOp::LtEq,
        ExpressionType::CompareGreaterThan => CompareOp::Gt,
        ExpressionType::CompareGreaterThanOrEqualTo => CompareOp::GtEq,
        _ => return None,
    })
}

/// The comparison with its sides exchanged.
fn turned(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::LtEq => CompareOp::GtEq,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::GtEq => CompareOp::LtEq,
        same => same,
    }
}

/// A comparison as DuckDB means it. Scans compare floats in the total order of IEEE 754; DuckDB holds both zeros equal, and every NaN
/// above all numbers, whatever its sign.
fn comparison(column: Path, op: CompareOp, value: Scalar) -> Expr {
    let Scalar::Float(number) = value else { return Expr::Compare { column, op, value } };
    let compare = |op, number: f64| Expr::Compare { column: column.clone(), op, value: Scalar::Float(number) };
    let zero = number == 0.0;
    let below_all = || compare(CompareOp::Lt, f64::NEG_INFINITY);
    let not_below_all = || compare(CompareOp::GtEq, f64::NEG_INFINITY);
    match op {
        CompareOp::Eq => Expr::In { column: column.clone(), values: equal_to(Scalar::Float(number)) },
        CompareOp::NotEq => {
            Expr::Not(Box::new(Expr::In { column: column.clone(), values: equal_to(Scalar::Float(number)) }))
        }
        CompareOp::Lt => Expr::And(vec![compare(op, if zero { -0.0 } else { number }), not_below_all()]),
        CompareOp::LtEq => Expr::And(vec![compare(op, if zero { 0.0 } else { number }), not_below_all()]),
        CompareOp::Gt => Expr::Or(vec![compare(op, if zero { 0.0 } else { number }), below_all()]),
        CompareOp::GtEq => Expr::Or(vec![compare(op, if zero { -0.0 } else { number }), below_all()]),
    }
}

/// The values that DuckDB holds equal to one.
fn equal_to(value: Scalar) -> Vec<Scalar> {
    match value {
        // Which both zeros match.
        Scalar::Float(0.0) => vec![Scalar::Float(0.0), Scalar::Float(-0.0)],
        other => vec![other],
    }
}

/// What a column is compared with.
enum Constant {
    Null,
    Value(Scalar),
    /// Not a constant, or of a type that is not the column's.
    Unknown,
}

fn constant_of(expression: &Expression<'_>, column: &DataType) -> Result<Constant> {
    if !matches!(expression.expression_type()?, ExpressionType::ValueConstant) {
        return Ok(Constant::Unknown);
    }
    let value = expression.get_constant_value()?;
    if value.is_null()? {
        return Ok(Constant::Null);
    }
    Ok(scalar(&value, column)?.map_or(Constant::Unknown, Constant::Value))
}

/// A constant in the terms of a column; `None` if its type is another.
fn scalar(value: &Value, column: &DataType) -> Result<Option<Scalar>> {
    let constant = value.logical_type()?.id()?;
    let int = |number: Option<i128>| number.map(Scalar::Int);
    Ok(match (column, constant) {
        (DataType::Boolean, LogicalTypeID::Boolean) => value.get::<bool>()?.map(Scalar::Bool),
        (column, constant) if bits(column).is_some() && whole(constant).is_some() => {
            int(value.to_string().parse::<i128>().ok())
        }
        (DataType::Float32, LogicalTypeID::Float) => number(value.get::<f32>()?.map(f64::from)),
        (DataType::Float64, LogicalTypeID::Double) => number(value.get::<f64>()?),
        (
            DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale),
            LogicalTypeID::Decimal,
        ) => {
            let decimal = value.get::<DecimalValue>()?;
            int(decimal.filter(|decimal| i16::from(*scale) == i16::from(decimal.scale)).map(|decimal| decimal.value))
        }
        (DataType::Date32, LogicalTypeID::Date) => {
            int(value.get::<DateValue>()?.map(|date| date.0.into()).filter(is_finite))
        }
        (DataType::Time64(TimeUnit::Microsecond), LogicalTypeID::Time) => {
            int(value.get::<TimeValue>()?.map(|time| time.0.into()))
        }
        (DataType::Timestamp(TimeUnit::Second, None), LogicalTypeID::TimestampSec) => {
            int(value.get::<TimestampSecValue>()?.map(|time| time.0.into()).filter(is_finite))
        }
        (DataType::Timestamp(TimeUnit::Millisecond, None), LogicalTypeID::TimestampMs) => {
            int(value.get::<TimestampMsValue>()?.map(|time| time.0.into()).filter(is_finite))
        }
        (DataType::Timestamp(TimeUnit::Microsecond, None), LogicalTypeID::Timestamp) => {
            int(value.get::<TimestampValue>()?.map(|time| time.0.into()).filter(is_finite))
        }
        (DataType::Timestamp(TimeUnit::Nanosecond, None), LogicalTypeID::TimestampNs) => {
            int(value.get::<TimestampNsValue>()?.map(|time| time.0.into()).filter(is_finite))
        }
        (DataType::Timestamp(TimeUnit::Microsecond, Some(_)), LogicalTypeID::TimestampTz) => {
            int(value.get::<TimestampTzValue>()?.map(|time| time.0.into()).filter(is_finite))
        }
        (DataType::Utf8View, LogicalTypeID::Varchar) => value.get::<String>()?.map(|text| Scalar::from(text.as_str())),
        (DataType::BinaryView, LogicalTypeID::Blob) => {
            value.get::<BlobValue>()?.map(|blob| Scalar::Bytes(Arc::from(blob.0)))
        }
        _ => None,
    })
}

/// NaN has an order of DuckDB's own.
fn number(value: Option<f64>) -> Option<Scalar> {
    value.filter(|value| !value.is_nan()).map(Scalar::Float)
}

/// DuckDB's infinite dates are numbers of days or of parts of seconds at the ends of their types, which files have as such.
fn is_finite(value: &i128) -> bool {
    ![i128::from(i32::MAX), i128::from(i64::MAX), -i128::from(i32::MAX), -i128::from(i64::MAX)].contains(value)
}

/// Bits of a whole number, negative if it has a sign.
fn bits(data_type: &DataType) -> Option<i32> {
    Some(match data_type {
        DataType::Int8 => -8,
        DataType::Int16 => -16,
        DataType::Int32 => -32,
        DataType::Int64 => -64,
        DataType::UInt8 => 8,
        DataType::UInt16 => 16,
        DataType::UInt32 => 32,
        DataType::UInt64 => 64,
        _ => return None,
    })
}

/// As [`bits`], of DuckDB's types.
fn whole(id: LogicalTypeID) -> Option<i32> {
    Some(match id {
        LogicalTypeID::TinyInt => -8,
        LogicalTypeID::SmallInt => -16,
        LogicalTypeID::Integer => -32,
        LogicalTypeID::BigInt => -64,
        LogicalTypeID::HugeInt => -128,
        LogicalTypeID::UTinyInt => 8,
        LogicalTypeID::USmallInt => 16,
        LogicalTypeID::UInteger => 32,
        LogicalTypeID::UBigInt => 64,
        LogicalTypeID::UHugeInt => 128,
        _ => return None,
    })
}

/// Whether all numbers of one type are numbers of the other.
fn widens(from: &DataType, to: Option<i32>) -> bool {
    match (bits(from), to) {
        (Some(from @ ..0), Some(to @ ..0)) => to <= from,
        (Some(from), Some(to @ 0..)) if from > 0 => to >= from,
        (Some(from), Some(to)) if from > 0 => -to > from,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_types_hold_all_numbers() {
        for (from, to, holds) in [
            (DataType::Int8, LogicalTypeID::SmallInt, true),
            (DataType::Int64, LogicalTypeID::BigInt, true),
            (DataType::Int64, LogicalTypeID::Integer, false),
            (DataType::UInt8, LogicalTypeID::SmallInt, true),
            (DataType::UInt64, LogicalTypeID::BigInt, false),
            (DataType::UInt64, LogicalTypeID::HugeInt, true),
            (DataType::Int8, LogicalTypeID::UBigInt, false),
            (DataType::UInt8, LogicalTypeID::UTinyInt, true),
            (DataType::UInt32, LogicalTypeID::USmallInt, false),
            (DataType::Int32, LogicalTypeID::Double, false),
            (DataType::Utf8View, LogicalTypeID::BigInt, false),
        ] {
            assert_eq!(widens(&from, whole(to)), holds, "{from} to {to:?}");
        }
    }
}
