#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

#[test]
fn numbers_of_people() {
    let of = |thousands, decimal, text: &str| {
        let mut out = String::new();
        Numbers { thousands, decimal }.plain(text, &mut out).map(str::to_owned)
    };
    let english = |text: &str| of(Some(b','), b'.', text);
    let german = |text: &str| of(Some(b'.'), b',', text);
    for (text, expected) in [
        ("1,234", "1234"),
        ("-1,234,567.25", "-1234567.25"),
        ("12", "12"),
        ("1234", "1234"),
        ("1.5e3", "1.5e3"),
        ("1,23", "1,23"),
        ("1234,567", "1234,567"),
        ("0,123", "0,123"),
        (",123", ",123"),
        ("1,234,", "1,234,"),
        ("1,,234", "1,,234"),
        ("1.123,456", "1.123,456"),
        ("a,123", "a,123"),
        ("2024-01-01", "2024-01-01"),
        ("", ""),
        ("é", "é"),
    ] {
        assert_eq!(english(text).as_deref(), Some(expected), "{text}");
    }
    for (text, expected) in [
        ("1.234,5", Some("1234.5")),
        ("3,5", Some("3.5")),
        ("3,5e2", Some("3.5e2")),
        // To programs a number, here none.
        ("1.5", None),
        ("1.2345", None),
        ("1,5.5", Some("1,5.5")),
        ("12.05.2024", Some("12.05.2024")),
        ("a,b", Some("a,b")),
        ("2024-01-01T10:00:00,5", Some("2024-01-01T10:00:00,5")),
    ] {
        assert_eq!(german(text).as_deref(), expected, "{text}");
    }
    assert_eq!(of(None, b',', "1.5"), None);
    assert_eq!(of(None, b',', "1,5").as_deref(), Some("1.5"));
    assert_eq!(of(Some(b' '), b',', "1 234,5").as_deref(), Some("1234.5"));
}

proptest! {
    #[test]
    fn usual_integers_are_those_of_the_standard_library(value: i64, shift in 0_u32..64, after in "[0-9,;\n]{0,9}") {
        let value = value >> shift;
        let text = format!("x{value}{after}");
        let range = 1..text.len() - after.len();
        if let Some(found) = usual_integer(text.as_bytes(), &range) {
            prop_assert_eq!(found, value);
        } else {
            prop_assert!(value.unsigned_abs() >= 10_u64.pow(16) || after.len() < 8);
        }
    }

    #[test]
    fn what_is_no_usual_integer_is_left(text in "[-+0-9. ]{1,12}") {
        let padded = format!("{text},0123456789");
        let found = usual_integer(padded.as_bytes(), &(0..text.len()));
        let usual = super::form(&text) == Some(crate::values::number::Form::Integer);
        prop_assert_eq!(found, text.parse().ok().filter(|_| usual));
    }
}
