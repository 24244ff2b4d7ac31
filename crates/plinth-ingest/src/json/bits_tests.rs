#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// Token starts and where brackets say values end, one byte after the other.
fn naive(text: &[u8], lines: bool) -> Vec<usize> {
    let (mut starts, mut string, mut escaped, mut scalar) = (Vec::new(), false, false, false);
    for (at, byte) in text.iter().enumerate() {
        let was_escaped = escaped;
        escaped = *byte == b'\\' && !was_escaped;
        let operator = b"{}[]:,".contains(byte);
        let space = b" \n\r\t".contains(byte);
        let is_scalar = !operator && !space && *byte != b'"';
        if *byte == b'"' && !was_escaped {
            string = !string;
            starts.push(at);
        } else if !string && (operator || (is_scalar && !scalar) || (lines && *byte == b'\n')) {
            starts.push(at);
        }
        scalar = is_scalar;
    }
    starts
}

fn found(level: Level, text: &[u8], lines: bool, from: usize) -> Vec<usize> {
    let mut tokens = Tokens::new(level);
    tokens.seek(from, lines);
    let mut starts = Vec::new();
    loop {
        let at = tokens.peek(text);
        if at == text.len() {
            return starts;
        }
        starts.push(at);
        tokens.pass();
    }
}

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
    fn every_level_finds_the_tokens_of_a_naive_reader(text in text(), lines: bool, from in 0_usize..70) {
        let from = from.min(text.len());
        let expected: Vec<usize> = naive(&text[from..], lines).into_iter().map(|at| at + from).collect();
        for level in Level::all() {
            prop_assert_eq!(&found(level, &text, lines, from), &expected, "{:?}", level);
        }
    }

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
            for around in [b' ', b'a'] {
                let mut text = [around; 64];
                text[place] = byte;
                let expected = naive(&text, true);
                for level in Level::all() {
                    assert_eq!(found(level, &text, true, 0), expected, "{byte} at {place} {level:?}");
                }
            }
        }
    }
}

#[test]
fn windows_are_seamless() {
    let text = br#"{"key with \" and \\":[1,2.5,"x"],"more":null}"#.repeat(2_000);
    let expected = naive(&text, false);
    for level in Level::all() {
        assert_eq!(found(level, &text, false, 0), expected, "{level:?}");
    }
    // In a string that goes on for windows, what was special stays so.
    let long = [b"\"\\n".as_slice(), &b"x".repeat(100_000), b"\"", &b" ".repeat(40_000), b"\"y\""].concat();
    let mut tokens = Tokens::new(Level::best());
    tokens.seek(0, false);
    let mut special = Vec::new();
    while tokens.peek(&long) < long.len() {
        special.push(tokens.special());
        tokens.pass();
    }
    assert_eq!((special.len(), special[1], special[3]), (4, true, false));
}
