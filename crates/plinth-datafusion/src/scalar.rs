//! Constants between the engine's terms and the physical terms of a column.

use arrow_array::types::{ArrowPrimitiveType, Float16Type};
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::ScalarValue;
use plinth_encoding::expr::Scalar;

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// A constant of the engine in the physical terms of a column of type `column`; `None` if it is null, or if comparing
/// the two would need a conversion that this function can't prove harmless: another unit, scale, zone or kind.
///
/// Integers, floats, text and binaries of any width are in the same physical terms as their narrower and wider
/// relatives, so a constant of another width of the same kind is fine.
pub fn to_plinth(value: &ScalarValue, column: &DataType) -> Option<Scalar> {
    let int = |value: i128| Some(Scalar::Int(value));
    let bytes = |value: &[u8]| Some(Scalar::Bytes(value.into()));
    match (kind(column)?, value) {
        (Kind::Bool, ScalarValue::Boolean(Some(v))) => Some(Scalar::Bool(*v)),
        (Kind::Int, ScalarValue::Int8(Some(v))) => int((*v).into()),
        (Kind::Int, ScalarValue::Int16(Some(v))) => int((*v).into()),
        (Kind::Int, ScalarValue::Int32(Some(v))) => int((*v).into()),
        (Kind::Int, ScalarValue::Int64(Some(v))) => int((*v).into()),
        (Kind::Int, ScalarValue::UInt8(Some(v))) => int((*v).into()),
        (Kind::Int, ScalarValue::UInt16(Some(v))) => int((*v).into()),
        (Kind::Int, ScalarValue::UInt32(Some(v))) => int((*v).into()),
        (Kind::Int, ScalarValue::UInt64(Some(v))) => int((*v).into()),
        (Kind::Float, ScalarValue::Float16(Some(v))) => Some(Scalar::Float(v.to_f64())),
        (Kind::Float, ScalarValue::Float32(Some(v))) => Some(Scalar::Float((*v).into())),
        (Kind::Float, ScalarValue::Float64(Some(v))) => Some(Scalar::Float(*v)),
        (Kind::Text, ScalarValue::Utf8(Some(v)) | ScalarValue::LargeUtf8(Some(v)) | ScalarValue::Utf8View(Some(v))) => {
            bytes(v.as_bytes())
        }
        (
            Kind::Binary,
            ScalarValue::Binary(Some(v)) | ScalarValue::LargeBinary(Some(v)) | ScalarValue::BinaryView(Some(v)),
        ) => bytes(v),
        (Kind::Exact, value) if value.data_type() == *column => match value {
            ScalarValue::Date32(Some(v))
            | ScalarValue::Time32Second(Some(v))
            | ScalarValue::Time32Millisecond(Some(v)) => int((*v).into()),
            ScalarValue::Date64(Some(v))
            | ScalarValue::Time64Microsecond(Some(v))
            | ScalarValue::Time64Nanosecond(Some(v))
            | ScalarValue::TimestampSecond(Some(v), _)
            | ScalarValue::TimestampMillisecond(Some(v), _)
            | ScalarValue::TimestampMicrosecond(Some(v), _)
            | ScalarValue::TimestampNanosecond(Some(v), _)
            | ScalarValue::DurationSecond(Some(v))
            | ScalarValue::DurationMillisecond(Some(v))
            | ScalarValue::DurationMicrosecond(Some(v))
            | ScalarValue::DurationNanosecond(Some(v)) => int((*v).into()),
            ScalarValue::FixedSizeBinary(_, Some(v)) => bytes(v),
            _ => None,
        },
        (Kind::Decimal(scale), ScalarValue::Decimal32(Some(v), _, s)) if *s == scale => int((*v).into()),
        (Kind::Decimal(scale), ScalarValue::Decimal64(Some(v), _, s)) if *s == scale => int((*v).into()),
        (Kind::Decimal(scale), ScalarValue::Decimal128(Some(v), _, s)) if *s == scale => int(*v),
        (Kind::Decimal(scale), ScalarValue::Decimal256(Some(v), _, s)) if *s == scale => v.to_i128().map(Scalar::Int),
        _ => None,
    }
}

/// A constant in a column's physical terms as the engine's, of exactly the column's type; `None` if the type has no
/// such constants or can't hold this one.
pub fn to_scalar_value(value: &Scalar, column: &DataType) -> Option<ScalarValue> {
    Some(match (column, value) {
        (DataType::Boolean, Scalar::Bool(v)) => ScalarValue::Boolean(Some(*v)),
        (_, Scalar::Int(v)) => int_value(*v, column)?,
        (DataType::Float16, Scalar::Float(v)) => ScalarValue::Float16(Some(Half::from_f64(*v))),
        (DataType::Float32, Scalar::Float(v)) => ScalarValue::Float32(Some(narrow(*v))),
        (DataType::Float64, Scalar::Float(v)) => ScalarValue::Float64(Some(*v)),
        (DataType::Utf8, Scalar::Bytes(v)) => ScalarValue::Utf8(Some(text(v)?)),
        (DataType::LargeUtf8, Scalar::Bytes(v)) => ScalarValue::LargeUtf8(Some(text(v)?)),
        (DataType::Utf8View, Scalar::Bytes(v)) => ScalarValue::Utf8View(Some(text(v)?)),
        (DataType::Binary, Scalar::Bytes(v)) => ScalarValue::Binary(Some(v.to_vec())),
        (DataType::LargeBinary, Scalar::Bytes(v)) => ScalarValue::LargeBinary(Some(v.to_vec())),
        (DataType::BinaryView, Scalar::Bytes(v)) => ScalarValue::BinaryView(Some(v.to_vec())),
        (DataType::FixedSizeBinary(width), Scalar::Bytes(v)) if usize::try_from(*width) == Ok(v.len()) => {
            ScalarValue::FixedSizeBinary(*width, Some(v.to_vec()))
        }
        _ => return None,
    })
}

/// Which constants a column's values compare with.
enum Kind {
    Bool,
    Int,
    Float,
    Text,
    Binary,
    /// Only of the very same type.
    Exact,
    /// Of the same scale.
    Decimal(i8),
}

fn kind(column: &DataType) -> Option<Kind> {
    Some(match column {
        DataType::Boolean => Kind::Bool,
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => Kind::Int,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Kind::Float,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Kind::Binary,
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(_, _)
        | DataType::Duration(_)
        | DataType::FixedSizeBinary(_) => Kind::Exact,
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Kind::Decimal(*scale),
        _ => return None,
    })
}

fn int_value(v: i128, column: &DataType) -> Option<ScalarValue> {
    let wide = || i64::try_from(v).ok();
    let narrow = || i32::try_from(v).ok();
    Some(match column {
        DataType::Int8 => ScalarValue::Int8(Some(v.try_into().ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(v.try_into().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(narrow()?)),
        DataType::Int64 => ScalarValue::Int64(Some(wide()?)),
        DataType::UInt8 => ScalarValue::UInt8(Some(v.try_into().ok()?)),
        DataType::UInt16 => ScalarValue::UInt16(Some(v.try_into().ok()?)),
        DataType::UInt32 => ScalarValue::UInt32(Some(v.try_into().ok()?)),
        DataType::UInt64 => ScalarValue::UInt64(Some(v.try_into().ok()?)),
        DataType::Date32 => ScalarValue::Date32(Some(narrow()?)),
        DataType::Date64 => ScalarValue::Date64(Some(wide()?)),
        DataType::Time32(TimeUnit::Second) => ScalarValue::Time32Second(Some(narrow()?)),
        DataType::Time32(TimeUnit::Millisecond) => ScalarValue::Time32Millisecond(Some(narrow()?)),
        DataType::Time64(TimeUnit::Microsecond) => ScalarValue::Time64Microsecond(Some(wide()?)),
        DataType::Time64(TimeUnit::Nanosecond) => ScalarValue::Time64Nanosecond(Some(wide()?)),
        DataType::Timestamp(unit, zone) => {
            let (v, zone) = (Some(wide()?), zone.clone());
            match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(v, zone),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(v, zone),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(v, zone),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(v, zone),
            }
        }
        DataType::Duration(unit) => {
            let v = Some(wide()?);
            match unit {
                TimeUnit::Second => ScalarValue::DurationSecond(v),
                TimeUnit::Millisecond => ScalarValue::DurationMillisecond(v),
                TimeUnit::Microsecond => ScalarValue::DurationMicrosecond(v),
                TimeUnit::Nanosecond => ScalarValue::DurationNanosecond(v),
            }
        }
        DataType::Decimal32(p, s) => ScalarValue::Decimal32(Some(narrow()?), *p, *s),
        DataType::Decimal64(p, s) => ScalarValue::Decimal64(Some(wide()?), *p, *s),
        DataType::Decimal128(p, s) => ScalarValue::Decimal128(Some(v), *p, *s),
        DataType::Decimal256(p, s) => ScalarValue::Decimal256(Some(i256::from_i128(v)), *p, *s),
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

#[allow(clippy::cast_possible_truncation, reason = "the value was an f32 before it was widened")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
