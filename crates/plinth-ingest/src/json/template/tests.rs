#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use proptest::prelude::*;

type TakeRun = fn(&[u8], usize, &Template, usize, &mut [&mut Vec<f64>]) -> (usize, usize);

/// The kernels this machine has.
fn kernels() -> Vec<TakeRun> {
    #[cfg(target_arch = "x86_64")]
    if Level::Avx2.available() {
        return vec![take::<Portable>, avx2::take];
    }
    vec![take::<Portable>]
}

fn learned(record: &str) -> Option<Template> {
    Template::learn(record.as_bytes(), 1 << 20, |key| key.parse().ok())
}

/// The number and what a run of one makes of it, by every kernel, with bytes before and behind so that nothing is too near.
fn number(text: &str, around: usize) -> Vec<Option<f64>> {
    let template = learned("{\"0\":1},").unwrap();
    let all = format!("{}{{\"0\":{text}}},{}", " ".repeat(around), "9".repeat(around));
    let take = |kernel: TakeRun| {
        let mut values = Vec::new();
        let (rows, end) = kernel(all.as_bytes(), around, &template, 9, &mut [&mut values]);
        assert_eq!(rows, values.len(), "{text}");
        assert_eq!(end, around + if rows == 1 { text.len() + 7 } else { 0 }, "{text}");
        values.pop()
    };
    kernels().into_iter().map(take).collect()
}

#[test]
fn templates_are_of_flat_records_of_numbers() {
    let template = learned("\n {\"1\": -1.5e3 , \"0\":2}\r\n").unwrap();
    let literals: Vec<_> = template.fields.iter().map(|(l, at)| (&l.bytes[..l.len], *at)).collect();
    assert_eq!(literals, [(b"\n {\"1\": ".as_slice(), 1), (b" , \"0\":", 0)]);
    assert_eq!(&template.tail.bytes[..template.tail.len], b"}\r\n");
    for other in [
        "{\"0\":null},",
        "{\"0\":true},",
        "{\"0\":[1]},",
        "{\"0\":\"x\"},",
        "{\"a\":1},",
        "{\"0\\u0030\":1},",
        "{\"0\":                                  1},",
        "{\"0\":1",
        "{\"0\":\"1\",\"2\":3},",
        "{\"0\":1,\"u\":\"x\"},",
        "{\"0\":1,\"u\":{}},",
        "{\"u\":{},\"0\":1},",
    ] {
        assert!(learned(other).is_none(), "{other}");
    }
    assert!(Template::learn(b"{\"0\":1},", 40, |_| Some(0)).is_none());
}

#[test]
fn numbers_are_those_of_the_standard_library_or_left() {
    let usual = [
        "0.5",
        "-0.0",
        "179.1234567890123456",
        "-90.0000000000000001",
        "1234567.25",
        "12",
        "-7",
        "0",
        "0.12345678901234567",
    ];
    for text in usual {
        for around in [0, 20, 70] {
            for (at, value) in number(text, around).into_iter().enumerate() {
                let expected: f64 = text.parse().unwrap();
                // Near the ends of the text some are left to the tokenizer.
                assert!(value.is_some() || around < 70, "{text} {at}");
                assert!(value.is_none_or(|value| value.to_bits() == expected.to_bits()), "{text} {at} {value:?}");
            }
        }
    }
    let others = [
        "",
        "-",
        "1.",
        ".5",
        "01.5",
        "-00.5",
        "1.5.5",
        "1e5",
        "1.5e5",
        "1,5",
        "x",
        "1.5x",
        "--1.5",
        "1.2345678901234567890123",
    ];
    for text in others {
        assert!(number(text, 70).iter().all(Option::is_none), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, ..ProptestConfig::default() })]

    #[test]
    fn doubles_are_those_of_the_standard_library(text in "-?(0|[1-9][0-9]{0,8})(\\.[0-9]{1,19})?", value in -1e7_f64..1e7, bits: u64) {
        let random = f64::from_bits(bits);
        for text in [text, format!("{value}"), format!("{value:.16}"), format!("{value:.6}"), format!("{random:e}"), format!("{:.15}", random % 1e3)] {
            for found in number(&text, 70).into_iter().flatten() {
                prop_assert_eq!(found.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{}", text);
            }
        }
    }
}
