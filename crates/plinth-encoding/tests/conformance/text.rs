//! Questions to text, however it is encoded, by whomever.

use arrow_buffer::{BooleanBuffer, Buffer};
use plinth_encoding::expr::{CompareOp, Scalar};
use plinth_encoding::{Block, Effort, Encoding, Pattern, Physical, ValueSet, evaluate_column};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::model::{Row, rows};
use crate::{encoded, open, with_nulls};

const TEXT: Physical = Physical::Bytes { utf8: true };
const EFFORTS: [Effort; 4] = [Effort::Plain, Effort::Fast, Effort::Balanced, Effort::Compact];

/// Sets of all kinds made of some bytes.
fn sets(bytes: &[u8], other: &[u8]) -> Vec<ValueSet> {
    let scalar = |bytes: &[u8]| Scalar::Bytes(bytes.into());
    let compare = |op, bytes: &[u8]| ValueSet::compare(TEXT, op, &scalar(bytes)).unwrap();
    let mut sets = vec![
        compare(CompareOp::Eq, bytes),
        compare(CompareOp::Lt, bytes),
        compare(CompareOp::GtEq, bytes),
        ValueSet::any_of(TEXT, &[scalar(bytes), scalar(other)]).unwrap(),
        ValueSet::any_of(TEXT, &[]).unwrap(),
        ValueSet::BytesLike(Pattern::containing(bytes)),
        ValueSet::BytesLike(Pattern::new(b"", [bytes, other], b"")),
        ValueSet::BytesLike(Pattern::new(b"", [other, bytes.get(..1).unwrap_or_default()], b"")),
        ValueSet::BytesLike(Pattern::new(bytes, [], other)),
        ValueSet::BytesLike(Pattern::new(
            bytes.get(..1).unwrap_or_default(),
            [other],
            bytes.get(1..).unwrap_or_default(),
        )),
    ];
    let range = |lo, hi| compare(lo, bytes).of_both(&compare(hi, other));
    sets.extend(range(CompareOp::GtEq, CompareOp::Lt));
    sets.extend(range(CompareOp::Gt, CompareOp::LtEq));
    // All that begin with them.
    if let Some((&last, rest)) = bytes.split_last()
        && let Some(last) = last.checked_add(1)
    {
        let end = compare(CompareOp::Lt, &[rest, &[last]].concat());
        sets.extend(compare(CompareOp::GtEq, bytes).of_both(&end));
        sets.extend(compare(CompareOp::Gt, bytes).of_both(&end));
    }
    sets.extend(sets.clone().into_iter().map(|set| ValueSet::Not(Box::new(set))));
    sets
}

/// Asks a block about all rows and about some.
fn check(block: &Block, input: &[Row], sets: &[ValueSet], selection: &BooleanBuffer) -> Result<(), TestCaseError> {
    let decoded = block.decode(None).unwrap();
    prop_assert_eq!(&rows(TEXT, &decoded), input, "{}", block.describe());
    for set in sets {
        let expected: Vec<bool> =
            input.iter().map(|row| row.as_ref().is_some_and(|row| set.holds_bytes(row))).collect();
        let whole = evaluate_column(TEXT, &decoded, set).unwrap();
        prop_assert_eq!(whole.is_true.iter().collect::<Vec<_>>(), expected.clone(), "{:?}, decoded", set);
        for selection in [None, Some(selection)] {
            let mask = block.evaluate_selected(set, selection).unwrap().unwrap();
            prop_assert_eq!(mask.is_true.len(), input.len());
            for (row, value) in input.iter().enumerate() {
                let unknown = mask.is_null.as_ref().is_some_and(|nulls| nulls.value(row));
                prop_assert_eq!(unknown, value.is_none());
                if selection.is_none_or(|selection| selection.value(row)) {
                    let what = format!("{set:?} at {row}, {value:?}, {}", block.describe());
                    prop_assert_eq!(mask.is_true.value(row), expected[row], "{}", what);
                }
            }
        }
        if let Some(candidates) = block.candidates(set).unwrap() {
            prop_assert!((0..input.len()).all(|row| !expected[row] || candidates.value(row)), "{:?}: candidates", set);
        }
    }
    Ok(())
}

/// Text of few letters, so that much of it is found in other text, at several places and across values.
fn words() -> impl Strategy<Value = String> {
    prop_oneof!["", "[ab]{0,3}", "[ab]{1,3}", "a{0,20}b?", "[aé]{0,6}", "(ab|é|x\u{1F600}){0,9}", "[a-z ]{0,40}"]
}

fn columns() -> impl Strategy<Value = Vec<Row>> {
    let values = prop_oneof![
        vec(words(), 1..200),
        // More than a vector, and enough for each encoding.
        (vec(words(), 1..400), 1030..2600_usize).prop_map(|(some, len)| {
            (0..len).map(|row| format!("{}{}", some[row * row % some.len()], some[row * 7 % some.len()])).collect()
        }),
        (words(), 1..3000_usize).prop_map(|(one, len)| vec![one; len]),
    ];
    (values, 0..4_usize).prop_map(|(values, nulls)| {
        let values: Vec<Row> = values.into_iter().map(|value: String| Some(value.into_bytes())).collect();
        with_nulls(&values, |row| match nulls {
            0 => false,
            1 => row % 7 == 3,
            2 => row % 5 != 0,
            _ => row / 1100 == 1,
        })
    })
}

/// What is asked for: words, a value, a part of one, or more than one.
fn needles(input: &[Row], word: &str, at: usize, cut: (usize, usize)) -> Vec<Vec<u8>> {
    let values: Vec<&Vec<u8>> = input.iter().flatten().collect();
    let mut needles = vec![word.as_bytes().to_vec(), vec![]];
    if let Some(value) = values.get(at % values.len().max(1)) {
        let (from, to) = (cut.0 % (value.len() + 1), cut.1 % (value.len() + 1));
        needles.push(value[from.min(to)..from.max(to)].to_vec());
        needles.push([value.as_slice(), word.as_bytes()].concat());
        needles.push((*value).clone());
    }
    needles
}

/// A block of strings whose heap is FSST codes, as a writer may cut them that has other symbols, and chooses among them and escapes
/// in another way, than ours.
fn foreign(values: &[&[u8]], symbols: &[Vec<u8>], mut choose: impl FnMut(usize) -> usize) -> Vec<u8> {
    fn varint(out: &mut Vec<u8>, mut value: usize) {
        while value >= 0x80 {
            out.push((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }
    fn plain(out: &mut Vec<u8>, values: impl Iterator<Item = usize>) {
        out.push(Encoding::Plain.tag());
        values.for_each(|value| out.extend((value as u32).to_le_bytes()));
    }
    let (mut codes, mut ends) = (vec![], vec![]);
    for vector in values.chunks(1024) {
        let heap = vector.concat();
        let mut at = 0;
        while at < heap.len() {
            let fitting: Vec<usize> =
                (0..symbols.len()).filter(|&code| heap[at..].starts_with(&symbols[code])).collect();
            match fitting.get(choose(fitting.len() + 1)) {
                Some(&code) => {
                    codes.push(code as u8);
                    at += symbols[code].len();
                }
                None => {
                    codes.extend([255, heap[at]]);
                    at += 1;
                }
            }
        }
        ends.push(codes.len());
    }
    let mut out = vec![0, Encoding::Fsst.tag()];
    plain(&mut out, values.iter().map(|value| value.len()));
    out.push(symbols.len() as u8);
    out.extend(symbols.iter().map(|symbol| symbol.len() as u8));
    out.extend(symbols.concat());
    varint(&mut out, values.iter().map(|value| value.len()).sum());
    varint(&mut out, codes.len());
    plain(&mut out, ends.into_iter());
    out.extend(codes);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn text_answers_as_its_values_do(
        input in columns(), word in words(), at: usize, cut: (usize, usize), every in 1_usize..1500,
    ) {
        let selection: BooleanBuffer = (0..input.len()).map(|row| row % every == every - 1).collect();
        let needles = needles(&input, &word, at, cut);
        for effort in EFFORTS {
            let (bytes, _) = encoded(TEXT, &input, effort);
            let block = open(TEXT, &bytes, input.len());
            for needle in &needles {
                check(&block, &input, &sets(needle, word.as_bytes()), &selection)?;
            }
        }
    }

    #[test]
    fn codes_of_other_writers_answer_as_their_values_do(
        input in columns(), word in words(), at: usize, cut: (usize, usize), every in 1_usize..1500,
        symbols in vec(prop_oneof!["[abé]{1,4}", "[ab]{1,8}", "[a-z ]"], 0..60), seed: u64,
    ) {
        let values: Vec<&[u8]> = input.iter().flatten().map(Vec::as_slice).collect();
        let input: Vec<Row> = values.iter().map(|value| Some(value.to_vec())).collect();
        prop_assume!(!values.is_empty());
        let symbols: Vec<Vec<u8>> = symbols.into_iter().map(String::into_bytes).collect();
        let mut random = plinth_core::random::Random(seed);
        let bytes = foreign(&values, &symbols, |most| random.below(most as u64) as usize);
        let block = Block::open(TEXT, &Buffer::from(bytes), input.len()).unwrap();
        prop_assert_eq!(block.encoding(), Encoding::Fsst);
        let selection: BooleanBuffer = (0..input.len()).map(|row| row % every == every - 1).collect();
        for needle in needles(&input, &word, at, cut) {
            check(&block, &input, &sets(&needle, word.as_bytes()), &selection)?;
        }
    }
}

#[test]
fn needles_that_overlap_themselves_and_values_are_found() {
    let text = ["a", "aa", "aaab", "", "ab", "aab", "b", "aabaab", "aba", "ba", "é", "\u{e8}", "caf", "é"];
    // Vectors full of the same few, and one byte behind an escape each.
    let input: Vec<Row> = (0..2100).map(|row| Some(text[row % text.len()].as_bytes().to_vec())).collect();
    let values: Vec<&[u8]> = input.iter().flatten().map(Vec::as_slice).collect();
    let escapes = foreign(&values, &[], |_| 0);
    let mut blocks = vec![Block::open(TEXT, &Buffer::from(escapes), input.len()).unwrap()];
    blocks.extend(EFFORTS.map(|effort| open(TEXT, &encoded(TEXT, &input, effort).0, input.len())));
    for block in blocks {
        for needle in ["a", "aa", "aab", "aaab", "ab", "aabaab", "ba", "bb", "fé", "é", "aaaaaaaaaaaaaaaaaaaaab", ""]
        {
            let selection = BooleanBuffer::new_set(input.len());
            check(&block, &input, &sets(needle.as_bytes(), b"b"), &selection).unwrap();
        }
        // Half of a character is in no other's text.
        check(&block, &input, &sets(&[0xA9], &[0xC3]), &BooleanBuffer::new_set(input.len())).unwrap();
    }
}
