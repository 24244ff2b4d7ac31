#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn usual_moments_are_those_of_any_spelling(
        text in "[0-9]{3}[0-9x]-[01][0-9]-[0-3][0-9][T t][0-2][0-9]:[0-6][0-9][:.][0-6][0-9]([.,][0-9]{0,10})?[Zz+]?",
    ) {
        if let Some(moment) = usual_moment(text.as_bytes()) {
            prop_assert_eq!(any_moment(&text), Some(moment), "{}", text);
        }
    }

    #[test]
    fn what_is_spelled_as_most_are_is_taken_so(seconds in -62_167_219_200..253_402_300_800_i64, nanos in 0_u32..1_000_000_000, zoned: bool) {
        let days = seconds.div_euclid(86_400);
        let clock = seconds.rem_euclid(86_400);
        // The day by search: the calendar's arithmetic is what is tested.
        let year = (0..=9999).rev().find(|year| super::days(*year, 1, 1) <= days).unwrap();
        let month = (1..=12).rev().find(|month| super::days(year, *month, 1) <= days).unwrap();
        let day = days - super::days(year, month, 1) + 1;
        let zone = if zoned { "Z" } else { "" };
        let text = format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{nanos:09}{zone}",
            clock / 3_600, clock / 60 % 60, clock % 60,
        );
        prop_assert_eq!(usual_moment(text.as_bytes()), Some(Moment { seconds, nanos, zoned }), "{}", text);
    }
}

#[test]
fn calendar() {
    assert_eq!(date("1970-01-01"), Some(0));
    assert_eq!(date("2000-02-29"), Some(11_016));
    assert_eq!(date("1969-12-31"), Some(-1));
    assert_eq!(date("0000-03-01"), Some(-719_468));
    assert_eq!(date("-0001-01-01"), Some(-719_893));
    assert_eq!(date("+10000-01-01"), Some(2_932_897));
    for bad in ["", "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-01", "2024-1-01", "24-01-01", "10000-01-01"] {
        assert_eq!(date(bad), None, "{bad}");
    }
    assert_eq!(date("2024-01-01 "), None);
}

#[test]
fn moments() {
    let at = |text| moment(text).unwrap();
    assert_eq!(at("1970-01-01T00:00:01.5"), Moment { seconds: 1, nanos: 500_000_000, zoned: false });
    assert_eq!(at("1970-01-01 02:00:00+02:00"), Moment { seconds: 0, nanos: 0, zoned: true });
    assert_eq!(at("1969-12-31T22:30-0130"), Moment { seconds: 0, nanos: 0, zoned: true });
    assert_eq!(at("1970-01-01T00:00Z").seconds, 0);
    assert_eq!(at("1970-01-01T00:00:00.1234567890").nanos, 123_456_789);
    for bad in [
        "1970-01-01",
        "1970-01-01T",
        "1970-01-01T24:00",
        "1970-01-01T00:00:60",
        "1970-01-01T00:00:00.",
        "1970-01-01T00:00:00.1234567891",
        "1970-01-01T00:00+",
        "1970-01-01T00:00 Z",
    ] {
        assert_eq!(moment(bad), None, "{bad}");
    }
    assert_eq!(at("1969-12-31T23:59:59.999").in_units(1_000), Some(-1));
    assert_eq!(at("1969-12-31T23:59:59.999").in_units(1), None);
    assert_eq!(time("23:59:59.000000001"), Some(86_399_000_000_001));
    assert_eq!(time("24:00"), None);
}
