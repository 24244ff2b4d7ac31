use std::sync::Arc;

use arrow_array::{
    BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, TimestampMillisecondArray, UInt64Array,
};

use super::*;

/// An array's numbers, and the array made of them.
fn there_and_back(array: &ArrayRef) -> (Vec<Vec<i64>>, ArrayRef) {
    let numbers = Numbers::of(array.data_type()).unwrap();
    let mut read = vec![Vec::new(); numbers.width()];
    numbers.read(array.as_ref(), &mut read).unwrap();
    let back = numbers.write(array.data_type(), &read, array.nulls().cloned()).unwrap();
    (read, back)
}

#[test]
fn values_come_back() {
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(Int8Array::from(vec![i8::MIN, -1, 0, i8::MAX])),
        Arc::new(UInt64Array::from(vec![0, 1, u64::MAX, 1 << 63])),
        Arc::new(Float32Array::from(vec![-1.5, 0.0, f32::INFINITY, f32::MIN_POSITIVE])),
        Arc::new(Float64Array::from(vec![f64::NEG_INFINITY, -0.1, 5e-324, f64::MAX])),
        Arc::new(TimestampMillisecondArray::from(vec![i64::MIN, i64::MAX]).with_timezone("UTC")),
        Arc::new(Decimal128Array::from(vec![i128::MIN, -1, 0, 1, 1 << 64, i128::MAX])),
    ];
    for array in arrays {
        assert_eq!(&there_and_back(&array).1, &array);
        let part = array.slice(1, array.len() - 1);
        assert_eq!(&there_and_back(&part).1, &part);
    }
}

#[test]
fn numbers_order_as_values_do() {
    let doubles = [f64::NEG_INFINITY, -2.0, -5e-324, 0.0, 5e-324, 1.0, f64::INFINITY, f64::NAN];
    assert!(doubles.map(of_double).is_sorted());
    assert_eq!(of_double(-0.0), of_double(0.0));
    assert_eq!(of_double(-f64::NAN), of_double(f64::NAN));
    let wide: ArrayRef = Arc::new(Decimal128Array::from(vec![i128::MIN, -(1 << 70), -1, 0, 1, 1 << 63, 1 << 64]));
    let read = there_and_back(&wide).0;
    let pairs: Vec<_> = read[0].iter().zip(&read[1]).collect();
    assert!(pairs.is_sorted());
    let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![0, 1, 1 << 63, u64::MAX]));
    assert!(there_and_back(&unsigned).0[0].is_sorted());
}
