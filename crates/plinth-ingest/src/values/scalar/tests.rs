#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use super::*;

#[test]
fn dates_outside_the_range_are_refused() {
    let push = |data_type, text| column_builder(&data_type, true).unwrap().push(text).map_err(Cow::into_owned);
    for far in ["+999999999-01-01", "-999999999-01-01"] {
        assert_eq!(push(DataType::Date64, far), Err("outside the range of the type".to_owned()));
        assert_eq!(push(DataType::Date32, far), Err("outside the range of the type".to_owned()));
    }
    assert_eq!(push(DataType::Date64, "+292000000-01-01"), Ok(()));
    assert_eq!(push(DataType::Date64, "+292000000-01-01T00:00"), Ok(()));
    assert_eq!(push(DataType::Date64, "2024-02-30"), Err("not a date such as 2024-12-31".to_owned()));
}

#[test]
fn no_text_and_no_type_panics() {
    use DataType::*;
    let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    let mut types = vec![Boolean, Int8, UInt64, Int64, Float16, Float32, Float64, Date32, Date64, Utf8View, BinaryView];
    types.extend([Decimal32(9, 9), Decimal64(18, -128), Decimal128(38, 127), Decimal256(76, -128), Decimal128(0, 0)]);
    types.extend([FixedSizeBinary(2), FixedSizeBinary(0), FixedSizeBinary(-1), FixedSizeBinary(i32::MAX)]);
    types.extend([IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval));
    for unit in units {
        types.extend([Time32(unit), Time64(unit), Timestamp(unit, None), Duration(unit)]);
        types.push(Timestamp(unit, Some("UTC".into())));
    }
    let nines = "9".repeat(400);
    let (year, nano) = (format!("{nines} years"), format!("0.{nines} secs"));
    let mut texts =
        vec!["", " ", "-", "+", ".", "\u{e9}", "e", "1e999999999999", "-1e-99999", "1e32767", "1e-32768", "0x"];
    texts.extend([
        "+999999999-12-31T23:59:59.999999999-23:59",
        "-999999999-01-01T00:00+23:59",
        "9999-12-31",
        "23:59:60",
    ]);
    texts.extend([nines.as_str(), &year, &nano, "-9223372036854775808", "9223372036854775807 months", "1 year 2 mons"]);
    texts.extend(["-178956970 years -8 mons", "2147483647 years", "9223372036854775807 days", "-2147483649 days"]);
    texts.extend(["1e308 hours", "P1Y", "1-2 3 4:5:6.7", "99999999999:59:59", "-1 week 9223372036854775807 secs"]);
    for data_type in &types {
        for given in [false, true] {
            let Some(mut column) = column_builder(data_type, given) else { continue };
            let taken = texts.iter().filter(|text| column.push(text).is_ok()).count();
            assert_eq!(column.finish().len(), taken, "{data_type}");
        }
    }
    // Such types there are not.
    for unknown in [FixedSizeBinary(-1), Time32(TimeUnit::Nanosecond), Time64(TimeUnit::Second), Null] {
        assert!(column_builder(&unknown, true).is_none(), "{unknown}");
    }
}
