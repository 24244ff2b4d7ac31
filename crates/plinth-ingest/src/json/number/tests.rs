#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_precision_loss)]

use super::*;
use crate::values::digits::{USUAL, usual_float};
use proptest::prelude::*;

fn same(text: &str) {
    let parsed = float(text, 0).unwrap();
    let expected: f64 = text.parse().unwrap();
    assert_eq!((parsed.value.to_bits(), parsed.end), (expected.to_bits(), text.len()), "{text}");
    assert_eq!(number_end(text.as_bytes(), 0).unwrap(), text.len());
    for after in [",", "}", ".", "5"] {
        let padded = format!(" {text}{after}{}", "7".repeat(USUAL));
        if let Some((value, end)) = usual_float(padded.as_bytes(), 1)
            && end == text.len() + 1
        {
            assert_eq!(value.to_bits(), expected.to_bits(), "{text}");
        }
    }
}

#[test]
fn doubles_that_are_hard() {
    for text in [
        "0",
        "-0",
        "0.0",
        "-0.0",
        "1",
        "0.1",
        "1e23",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.0",
        "102.1633205722960440",
        "-24.9977499718717624",
        "1.7976931348623157e308",
        "4.9e-324",
        "2.2250738585072011e-308",
        "8.5e15",
        "1e22",
        "1e-22",
        "123456789012345678e-27",
        "9999999999999999999",
        "9223372036854775808e55",
        "0.000000000000000000000000001",
        "1e-400",
        "0e999999999999999999999",
        "1e999",
        "18014398509481986",
        "18014398509481990",
        "36028797018963970e1",
        "1125899906842624.125",
        "1125899906842901.875",
        "5e-1",
        "7e55",
        "3e-27",
        "12345678901234567890123",
        "0.12345678901234567890123",
    ] {
        same(text);
    }
    assert!(float("9007199254740993", 0).unwrap().long_integer && !float("9007199254740992", 0).unwrap().long_integer);
    assert!(!float("9007199254740993.5", 0).unwrap().long_integer && float(&"9".repeat(30), 0).unwrap().long_integer);
}

#[test]
fn ties_go_to_the_even() {
    // Numbers half way between two doubles, and their neighbours, at every power where there are such.
    for power in 0..=23_u32 {
        let five = 5_u128.pow(power);
        for odd in [(1_u128 << 53) + 1, (1 << 53) + 3, (1 << 54) - 1, (1 << 54) - 3] {
            for near in [odd * five - 1, odd * five, odd * five + 1] {
                // Times ten to the minus power: odd over a power of two.
                if power <= 4 {
                    same(&format!("{near}e-{power}"));
                }
            }
            if odd % five == 0 {
                same(&format!("{}e{power}", odd / five));
            }
        }
    }
    for odd in ((1_u64 << 53) + 1..(1 << 53) + 4_000).step_by(2) {
        for power in 1..=3_u32 {
            let five = 5_u64.pow(power);
            if odd % five == 0 {
                same(&format!("{}e{power}", odd / five));
            }
            same(&format!("{}e-{power}", u128::from(odd) * u128::from(five)));
        }
    }
}

#[test]
fn what_is_no_number_is_refused() {
    for text in ["", "-", ".5", "01", "-01", "1.", "1.e5", "1e", "1e+", "00", "+1", "-a", "Infinity", "NaN"] {
        assert!(float(text, 0).is_err() && number_end(text.as_bytes(), 0).is_err(), "{text}");
        assert_eq!(integer(text.as_bytes(), 0).filter(|(_, end)| *end == text.len()), None, "{text}");
    }
    let integers = [("7", 7), ("-12", -12), ("0", 0), ("999999999999999999", 999_999_999_999_999_999)];
    for (text, value) in integers {
        assert_eq!(integer(text.as_bytes(), 0), Some((value, text.len())));
    }
    for text in ["1.5", "1e2", "-0", "1234567890123456789"] {
        assert_eq!(integer(text.as_bytes(), 0), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, ..ProptestConfig::default() })]

    #[test]
    fn doubles_are_those_of_the_standard_library(
        text in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", bits: u64, digits: u64, power in -30_i32..60,
    ) {
        same(&text);
        same(&format!("{digits}e{power}"));
        let value = f64::from_bits(bits);
        if value.is_finite() {
            same(&format!("{value:e}"));
            if value.abs() < 1e20 {
                same(&format!("{value:.16}"));
                same(&format!("{value:.17e}"));
            }
        }
    }
}
