#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// What a document comes to: where its rows start and values are, or what is wrong, however it is cut.
fn run(root: &str, text: &[u8], step: usize) -> Result<Vec<(usize, usize)>, Option<usize>> {
    let mut reader = PathReader::new(Root::parse(root).unwrap(), 64);
    let (mut at, mut found, mut start) = (0, Vec::new(), 0);
    let mut end = 0;
    while at < text.len() || end < text.len() {
        end = (end + step).min(text.len());
        loop {
            match reader.next(&text[..end], at).map_err(|flaw| Some(flaw.at))? {
                Halt::More => break at = end,
                Halt::Rows(rows) => {
                    found.push((rows, rows));
                    // The rows here are what no bracket is in.
                    at = rows + text[rows..].iter().position(|b| *b == b']').ok_or(None)? + 1;
                    end = end.max(at);
                    reader.close_rows();
                }
                Halt::Value(value) => {
                    start = value;
                    at = value + 1;
                }
                Halt::ValueEnd(over) => {
                    found.push((start, over));
                    at = over;
                }
            }
        }
    }
    reader.finish().map_err(|_| None)?;
    if reader.is_in_value() {
        found.push((start, text.len()));
    }
    Ok(found)
}

fn spans<'a>(root: &str, text: &'a str) -> Result<Vec<&'a str>, Option<usize>> {
    let whole = run(root, text.as_bytes(), usize::MAX / 2);
    for step in 1..8 {
        assert_eq!(run(root, text.as_bytes(), step), whole, "{root} {text} {step}");
    }
    Ok(whole?.into_iter().map(|(start, end)| &text[start..if start == end { start + 1 } else { end }]).collect())
}

#[test]
fn paths_lead_to_arrays_and_values() {
    let text = r#" {"x":[1,{"pairs":[9]}],"p\u0061irs":[7,8],"o":{"pairs":{"a":5},"l":[[1],[2,[3]]],"n":-1.5e3}} "#;
    assert_eq!(spans("pairs", text), Ok(vec!["7"]));
    assert_eq!(spans("o.pairs", text), Ok(vec![r#"{"a":5}"#]));
    assert_eq!(spans("/o/n", text), Ok(vec!["-1.5e3"]));
    assert_eq!(spans("/x/1/pairs", text), Ok(vec!["9"]));
    assert_eq!(spans("$.x[0]", text), Ok(vec!["1"]));
    assert_eq!(spans("nothing", text), Ok(vec![]));
    for (text, value) in [("1", "1"), (" \"a\" ", "\"a\""), ("null", "null"), ("-0.5", "-0.5"), ("{} ", "{}")] {
        assert_eq!(spans("", text), Ok(vec![value]), "{text}");
    }
    assert_eq!(spans("$.a[*].b", r#"{"a":[{"b":[1]},{"c":2},{"b":[3]}]}"#), Ok(vec!["1", "3"]));
    assert_eq!(spans("a", r#"{"a":[1],"b":0,"a":[2]}"#), Err(Some(19)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_document_is_sound_where_serde_says_so(
        text in "[\\[\\]{}:,\"a1\\\\un0e.\\- ]{0,14}|[\\[{]{0,3}(\"[a\\\\n/u0-9d-fé\u{1f600}]{0,8}\"[:,]?|[0-9.e+-]{1,4}[,]?|true,?|null){0,5}[\\]}]{0,3}",
    ) {
        // A path that leads nowhere: everything is around.
        let sound = spans("/no/such/path", &text).is_ok();
        prop_assert_eq!(sound, serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn bytes_are_utf8_where_the_standard_library_says_so(inner in prop::collection::vec(prop_oneof![any::<u8>(), 0x80_u8..0xc0, 0xe0_u8..0xf5], 0..6)) {
        let inner: Vec<u8> = inner.into_iter().filter(|b| *b >= 0x20 && *b != b'"' && *b != b'\\').collect();
        let text = [b"\"".as_slice(), &inner, b"\""].concat();
        prop_assert_eq!(run("/no", &text, 1).is_ok(), std::str::from_utf8(&inner).is_ok());
    }
}
