//! Codes hold what their text does.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Any codes of a table as a writer may put them: symbols, and bytes behind escapes.
fn codes(symbols: usize) -> impl Strategy<Value = Vec<u8>> {
    let symbol = (0..symbols).prop_map(|code| vec![u8::try_from(code).unwrap()]);
    let escaped = prop_oneof![Just(b'a'), Just(b'b'), Just(ESCAPE), any::<u8>()].prop_map(|byte| vec![ESCAPE, byte]);
    vec(prop_oneof![3 => symbol, 1 => escaped], 0..300).prop_map(|codes| codes.concat())
}

fn text(codes: &[u8], symbols: &[Vec<u8>]) -> Vec<u8> {
    let (mut text, mut codes) = (vec![], codes.iter());
    while let Some(&code) = codes.next() {
        match code {
            ESCAPE => text.push(*codes.next().unwrap()),
            code => text.extend(&symbols[usize::from(code)]),
        }
    }
    text
}

fn holds(text: &[u8], needle: &[u8]) -> bool {
    let tail = &needle[needle.len().saturating_sub(MOST)..];
    text.windows(tail.len()).any(|window| window == tail)
}

proptest! {
    #[test]
    fn vectors_hold_a_needle_if_their_text_does(
        (symbols, vectors) in vec(vec(prop_oneof![4 => Just(b'a'), 4 => Just(b'b'), 1 => any::<u8>()], 1..9), 1..40)
            .prop_flat_map(|symbols| (Just(symbols.clone()), vec(codes(symbols.len()), 0..10))),
        needle in prop_oneof![
            vec(prop_oneof![Just(b'a'), Just(b'b')], 1..8),
            vec(prop_oneof![9 => Just(b'a'), 1 => Just(b'b')], 1..40),
            vec(any::<u8>(), 1..3),
        ],
    ) {
        let table: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
        let read: Vec<&[u8]> = vectors.iter().map(Vec::as_slice).collect();
        let expected: Vec<bool> = vectors.iter().map(|codes| holds(&text(codes, &symbols), &needle)).collect();
        prop_assert_eq!(Automaton::new(&needle, &table).read(&read), expected);
    }
}

#[test]
fn damage_is_found() {
    let automaton = Automaton::new(b"needle", &[b"hay", b"stack"]);
    let long = [[0, 1].repeat(100), vec![2], [0, 1].repeat(100)].concat();
    let vectors: [&[u8]; 5] = [&[0, 1], &[0, 2, 0], &[0, ESCAPE], &[], &long];
    assert_eq!(automaton.read(&vectors), [false, true, true, false, true]);
}
