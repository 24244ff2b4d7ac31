//! Constants of the engine as Plinth's, and back.

use super::*;
use std::sync::Arc;

#[test]
fn every_typed_constant_survives_the_round_trip() {
    let zone: Arc<str> = "+02:00".into();
    let values = [
        ScalarValue::Boolean(Some(true)),
        ScalarValue::Int8(Some(-128)),
        ScalarValue::Int16(Some(i16::MIN)),
        ScalarValue::Int32(Some(i32::MAX)),
        ScalarValue::Int64(Some(i64::MIN)),
        ScalarValue::UInt8(Some(255)),
        ScalarValue::UInt16(Some(65_535)),
        ScalarValue::UInt32(Some(u32::MAX)),
        ScalarValue::UInt64(Some(u64::MAX)),
        ScalarValue::Float16(Some(Half::from_f64(-0.5))),
        ScalarValue::Float32(Some(0.1)),
        ScalarValue::Float32(Some(-0.0)),
        ScalarValue::Float64(Some(f64::INFINITY)),
        ScalarValue::Utf8(Some("größe".into())),
        ScalarValue::LargeUtf8(Some(String::new())),
        ScalarValue::Utf8View(Some("a rather long value".into())),
        ScalarValue::Binary(Some(vec![0, 255])),
        ScalarValue::LargeBinary(Some(vec![])),
        ScalarValue::BinaryView(Some(vec![1])),
        ScalarValue::FixedSizeBinary(2, Some(vec![7, 9])),
        ScalarValue::Date32(Some(-1)),
        ScalarValue::Date64(Some(86_400_000)),
        ScalarValue::Time32Second(Some(1)),
        ScalarValue::Time32Millisecond(Some(1)),
        ScalarValue::Time64Microsecond(Some(1)),
        ScalarValue::Time64Nanosecond(Some(1)),
        ScalarValue::TimestampSecond(Some(1), None),
        ScalarValue::TimestampMillisecond(Some(-1), Some(Arc::clone(&zone))),
        ScalarValue::TimestampMicrosecond(Some(1), Some(zone)),
        ScalarValue::TimestampNanosecond(Some(i64::MAX), None),
        ScalarValue::DurationSecond(Some(1)),
        ScalarValue::DurationMillisecond(Some(1)),
        ScalarValue::DurationMicrosecond(Some(1)),
        ScalarValue::DurationNanosecond(Some(1)),
        ScalarValue::Decimal32(Some(-12_345), 9, 2),
        ScalarValue::Decimal64(Some(12_345), 18, 2),
        ScalarValue::Decimal128(Some(i128::MAX), 38, -3),
        ScalarValue::Decimal256(Some(i256::from_i128(i128::MIN)), 76, 4),
    ];
    for value in values {
        let column = value.data_type();
        let scalar = to_plinth(&value, &column).unwrap_or_else(|| panic!("{value:?}"));
        assert_eq!(to_scalar_value(&scalar, &column), Some(value));
    }
}

#[test]
fn what_would_need_a_conversion_is_refused() {
    let second = ScalarValue::TimestampSecond(Some(1), None);
    assert_eq!(to_plinth(&second, &DataType::Timestamp(TimeUnit::Millisecond, None)), None);
    assert_eq!(to_plinth(&second, &DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))), None);
    let decimal = ScalarValue::Decimal128(Some(1), 10, 2);
    assert_eq!(to_plinth(&decimal, &DataType::Decimal128(10, 3)), None);
    assert_eq!(to_plinth(&decimal, &DataType::Decimal256(76, 2)), Some(Scalar::Int(1)));
    assert_eq!(to_plinth(&ScalarValue::Int64(Some(1)), &DataType::Float64), None);
    assert_eq!(to_plinth(&ScalarValue::Int64(None), &DataType::Int64), None);
    assert_eq!(to_plinth(&ScalarValue::Int64(Some(1 << 40)), &DataType::Int8), Some(Scalar::Int(1 << 40)));
    assert_eq!(to_scalar_value(&Scalar::Int(300), &DataType::UInt8), None);
    assert_eq!(to_scalar_value(&Scalar::Bytes([255].as_slice().into()), &DataType::Utf8View), None);
}
