#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// Boundaries, and where the array ends.
fn boundaries(level: Level, between: Between, text: &[u8], cuts: &[usize]) -> (Vec<usize>, Option<usize>) {
    let mut scan = Scan::new(level, between);
    let (mut at, mut found) = (0, Vec::new());
    for cut in cuts.iter().copied().chain([text.len()]) {
        let last = cut == text.len();
        loop {
            match scan.next(&text[..cut], at, 0, last) {
                Stop::Boundary(next) => {
                    found.push(next);
                    at = next;
                }
                Stop::End(end) => return (found, Some(end)),
                Stop::More(next) => {
                    at = next;
                    break;
                }
            }
        }
    }
    (found, None)
}

fn naive_boundaries(between: Between, text: &[u8]) -> (Vec<usize>, Option<usize>) {
    let (mut found, mut depth, mut string, mut escaped) = (Vec::new(), 0_usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        let was_escaped = escaped;
        escaped = *byte == b'\\' && !was_escaped;
        match byte {
            b'"' if !was_escaped => string = !string,
            _ if string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if between == Between::Commas && depth == 0 => return (found, Some(at)),
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if between == Between::Nothing && depth == 0 {
                    (escaped, string) = (false, false);
                    found.push(at + 1);
                }
            }
            b',' if between == Between::Commas && depth == 0 => {
                escaped = false;
                found.push(at + 1);
            }
            _ => {}
        }
    }
    (found, None)
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let alphabet = b"{}[]:,\"\"\"\\\\ \n\t\r\x0c\x1a\x00az019-\x7f\x80\xc3\xff;<{}[]";
    let byte = prop_oneof![8 => prop::sample::select(alphabet.to_vec()), 1 => any::<u8>()];
    prop_oneof![
        prop::collection::vec(byte, 0..400),
        prop::collection::vec(prop::sample::select(b"\\\"a".to_vec()), 0..200),
        "(\\[[0-9]{0,9}\\],|\\{\"[a-z\\\\\"]{0,90}\":[0-9]{0,4}\\}[, ]){0,20}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_level_finds_the_same_boundaries_however_the_bytes_come(
        text in text(), commas: bool, mut cuts in prop::collection::vec(0_usize..400, 0..6),
    ) {
        let between = if commas { Between::Commas } else { Between::Nothing };
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(text.len().saturating_sub(1)));
        cuts.sort_unstable();
        cuts.retain(|cut| *cut < text.len());
        let expected = naive_boundaries(between, &text);
        for level in Level::all() {
            prop_assert_eq!(&boundaries(level, between, &text, &cuts), &expected, "{:?}", level);
        }
    }
}

#[test]
fn every_byte_is_what_it_is_at_every_level() {
    for byte in 0..=u8::MAX {
        for place in [0, 1, 15, 16, 31, 32, 63] {
            for between in [Between::Commas, Between::Nothing] {
                let mut text = *b"[x,{y}],x,\"a,\\\"b\",[\"{\"],{x,y},                      [1],{\"a\":2}]";
                text[place] = byte;
                let expected = naive_boundaries(between, &text);
                for level in Level::all() {
                    assert_eq!(boundaries(level, between, &text, &[]), expected, "{byte} at {place} {level:?}");
                }
            }
        }
    }
}
