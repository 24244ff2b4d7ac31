#![allow(clippy::unwrap_used)]

use super::*;

fn of(values: &[&str]) -> DataType {
    let mut seen = Seen::default();
    values.iter().for_each(|value| seen.field(value));
    // However the values are cut, the type is the same.
    let mut united = Seen::default();
    for value in values {
        let mut one = Seen::default();
        one.field(value);
        united.unite(one);
    }
    let data_type = seen.data_type(0);
    assert_eq!(data_type, united.data_type(0));
    data_type
}

#[test]
fn fields_have_the_narrowest_type_that_keeps_them_as_they_are() {
    use DataType::*;
    let utc = || Some(Arc::from("UTC"));
    assert_eq!(of(&[]), Utf8View);
    assert_eq!(of(&["", "1", "-5"]), Int64);
    assert_eq!(of(&["1", "18446744073709551615"]), UInt64);
    assert_eq!(of(&["-1", "18446744073709551615"]), Decimal128(38, 0));
    assert_eq!(of(&[&"9".repeat(39)]), Utf8View);
    assert_eq!(of(&["1", "1.5", "NaN"]), Float64);
    assert_eq!(of(&["9007199254740992", "0.5"]), Float64);
    assert_eq!(of(&["9007199254740993", "0.5"]), Utf8View);
    assert_eq!(of(&["1", "1e999"]), Utf8View);
    assert_eq!(of(&["NaN"]), Utf8View);
    assert_eq!(of(&["1", "007"]), Utf8View);
    assert_eq!(of(&["true", "FALSE"]), Boolean);
    assert_eq!(of(&["true", "1"]), Utf8View);
    assert_eq!(of(&["2024-01-01", "0001-12-31"]), Date32);
    assert_eq!(of(&["2024-01-01", "2024-01-01 10:00"]), Utf8View);
    assert_eq!(of(&["2024-01-01T10:00:00", "2024-01-01 10:00"]), Timestamp(TimeUnit::Microsecond, None));
    assert_eq!(of(&["2024-01-01T10:00:00Z", "2024-01-01T10:00+02"]), Timestamp(TimeUnit::Microsecond, utc()));
    assert_eq!(of(&["2024-01-01T10:00:00.123456789Z"]), Timestamp(TimeUnit::Nanosecond, utc()));
    assert_eq!(of(&["2024-01-01T10:00:00.123456789", "2900-01-01T10:00"]), Utf8View);
    assert_eq!(of(&["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"]), Utf8View);
}
