#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// The whole text as one value.
fn check(text: &str) -> Result<(), Flaw> {
    let mut scratch = Scratch::new(128);
    let mut tokens = Tokenizer::new(text, &mut scratch, false);
    tokens.skip()?;
    if tokens.at() < text.len() { Err(tokens.flaw("something after the JSON value")) } else { Ok(()) }
}

#[test]
fn strict() {
    for good in ["1", " [ ] ", "{}", r#"{"a":[1,-0.5e+3,"\ud83d\ude00\n"],"b":{"c":null}}"#, "true", "-0"] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    for bad in [
        "",
        "[1 2]",
        r#"{,"a":1}"#,
        r#"{"a":1,}"#,
        "[1,]",
        "01",
        "1.",
        "-",
        ".5",
        "+1",
        "1e",
        "\"\t\"",
        r#""\ud800""#,
        r#""\x""#,
        "tru",
        "nul",
        "1 1",
        "[",
        "\"",
        r#"{"a" 1}"#,
        "{1:2}",
        "NaN",
        r#"{"a":}"#,
        "[1}",
        r#""\u12"#,
        "[\"a",
        "truex",
        "1x",
        "nullnull",
        "\"a\"b",
        "{\"a\":1]",
        "[1:2]",
        ",",
        "]",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
    assert!(check(&format!("{}{}", "[".repeat(128), "]".repeat(128))).is_ok());
    assert_eq!(check(&"[".repeat(100_000)), Err(Flaw { at: 128, what: TOO_DEEP }));
    assert_eq!(check(&"{\"a\":".repeat(100_000)), Err(Flaw { at: 640, what: TOO_DEEP }));
}

#[test]
fn expected_keys_are_those_and_no_others() {
    for (name, text, expected) in [
        ("a", r#""a":1}"#, true),
        ("a", r#""a" :1}"#, false),
        ("a", r#""ab":1}                    "#, false),
        ("ab", r#""a":1}                    "#, false),
        ("a long name of many bytes", r#""a long name of many bytes":1"#, true),
        ("a long name of many bytes", r#""a long name of many bytez":1"#, false),
        ("a\"", r#""a"":1"#, false),
        ("", r#""":1"#, true),
        ("abcdefghijklm", r#""abcdefghijklm":"#, true),
        ("abcdefghijklmn", r#""abcdefghijklmn":"#, true),
        ("abcdefghijklmn", r#""abcdefghijklmn";"#, false),
    ] {
        let mut scratch = Scratch::new(128);
        let mut tokens = Tokenizer::new(text, &mut scratch, false);
        assert_eq!(tokens.expected_key(&Spelled::new(name)), expected, "{name} {text}");
        assert_eq!(tokens.at(), if expected && text.ends_with(['1', '}']) { name.len() + 3 } else { tokens.at() });
    }
}

#[test]
fn strings_end_where_they_end() {
    // Each length, so that what ends them is at each place of a word.
    for len in 0..20 {
        let plain = "\u{e9}\u{7f}a ".repeat(5)[..].chars().take(len).collect::<String>();
        for (spelled, what) in [(plain.clone(), plain.clone()), (format!("{plain}\\\"\\\\"), format!("{plain}\"\\"))] {
            for after in ["", ",", "\" \\ \u{1}"] {
                let text = format!("\"{spelled}\"{after}");
                let mut scratch = Scratch::new(128);
                let mut tokens = Tokenizer::new(&text, &mut scratch, true);
                assert_eq!(tokens.string(), Ok(what.as_str()), "{text}");
                assert_eq!((tokens.at(), tokens.end()), (spelled.len() + 2, spelled.len() + 2), "{text}");
            }
        }
        for (bad, at, flaw) in
            [("\t\"", len + 1, "control"), ("\\", 0, UNCLOSED), ("", 0, UNCLOSED), ("\\x\"", len + 1, "escape")]
        {
            let text = format!("\"{}{bad}", "x".repeat(len));
            let mut scratch = Scratch::new(128);
            let found = Tokenizer::new(&text, &mut scratch, true).string().map(str::to_owned).unwrap_err();
            assert!(found.at == at && found.what.contains(flaw), "{text} {found:?}");
        }
    }
}

#[test]
fn spaces_are_passed_over_and_line_feeds_where_they_mean_nothing() {
    for len in 0..30 {
        let spaces = " ".repeat(len);
        for between in [spaces.clone(), format!("\t{spaces}\r"), format!("{spaces}\t ")] {
            let mut scratch = Scratch::new(128);
            assert_eq!(Tokenizer::new(&format!("{between}1"), &mut scratch, true).at(), between.len());
            assert_eq!(Tokenizer::new(&between, &mut scratch, true).at(), between.len());
            let feeds = format!("{between}\n{between}1");
            assert_eq!(Tokenizer::new(&feeds, &mut scratch, true).at(), between.len());
            assert_eq!(Tokenizer::new(&feeds, &mut scratch, false).at(), 2 * between.len() + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_text_is_a_value_where_serde_says_so(text in "[\\[\\]{}:,\"a1\\\\un0e.\\- ]{0,14}|[\\[{]{0,3}(\"[a\\\\n/u0-9d-f]{0,8}\"[:,]?|[0-9.e+-]{1,4}[,]?|true,?|null){0,5}[\\]}]{0,3}") {
        prop_assert_eq!(check(&text).is_ok(), serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
    }
}
