//! One suite that every physical type and every encoding passes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, clippy::cast_precision_loss)]
#![allow(clippy::cast_possible_wrap)]

mod like;
mod model;
mod robust;
mod shapes;
mod text;

use std::ops::Bound;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, Buffer};
use model::{Row, column, float, holds, int, noise, rows, selection};
use plinth_encoding::key_set::KeySet;
use plinth_encoding::{Block, Effort, EncodeOptions, Encoding, IntSet, Physical, ValueSet, encode, evaluate_column};
use shapes::{Shape, shapes};

const LENGTHS: [usize; 9] = [0, 1, 2, 100, 1023, 1024, 1025, 8192, 10_000];

fn encoded(physical: Physical, rows: &[Row], effort: Effort) -> (Vec<u8>, Encoding) {
    let mut out = vec![];
    let encoded = encode(physical, &column(physical, rows), &EncodeOptions { effort }, &mut out).unwrap();
    (out, encoded.encoding)
}

/// A block at an address that is a multiple of 64, as a reader has it.
fn open(physical: Physical, bytes: &[u8], len: usize) -> Block {
    Block::open(physical, &Buffer::from(bytes), len).unwrap()
}

/// With some rows made null.
fn with_nulls(rows: &[Row], is_null: impl Fn(usize) -> bool) -> Vec<Row> {
    rows.iter().enumerate().map(|(i, row)| if is_null(i) { None } else { row.clone() }).collect()
}

/// Every arrangement of nulls the suite knows.
fn null_patterns(rows: &[Row]) -> Vec<Vec<Row>> {
    vec![
        rows.to_vec(),
        with_nulls(rows, |_| true),
        with_nulls(rows, |i| i % 2 == 0),
        with_nulls(rows, |i| i % 3 != 0),
        with_nulls(rows, |i| i % 101 == 0),
        with_nulls(rows, |i| i % 101 != 100),
        with_nulls(rows, |i| i / 600 % 2 == 0),
    ]
}

fn selections(len: usize) -> Vec<BooleanBuffer> {
    let mut next = noise(3);
    vec![
        selection(len, |_| false),
        selection(len, |_| true),
        selection(len, |i| i % 1500 == 700),
        selection(len, |i| i + 1 == len),
        selection(len, |_| next().is_multiple_of(3)),
        selection(len, |i| i % 2 == 1),
        selection(len, |i| i % 50 != 0),
    ]
}

/// Tests whose constants come from the values.
fn tests(physical: Physical, rows: &[Row]) -> Vec<ValueSet> {
    let mut values: Vec<&Vec<u8>> = rows.iter().flatten().collect();
    values.sort_by(|a, b| match physical {
        Physical::Int { signed, .. } => int(a, signed).cmp(&int(b, signed)),
        Physical::Float { .. } => float(a).total_cmp(&float(b)),
        _ => a.cmp(b),
    });
    let at = |share: usize| values.get(values.len() * share / 100);
    let mut tests = match physical {
        Physical::Bool => [(false, false), (false, true), (true, false), (true, true)]
            .map(|(holds_false, holds_true)| ValueSet::Bools { holds_false, holds_true })
            .to_vec(),
        Physical::Int { .. } | Physical::Wide { .. } => {
            let signed = !matches!(physical, Physical::Int { signed: false, .. });
            let value = |share| at(share).map_or(0, |value| int(&value[..value.len().min(16)], signed));
            let mut set = vec![value(10), value(50), value(90), value(50).wrapping_add(1)];
            set.sort_unstable();
            set.dedup();
            let bits = ValueSet::IntSet(Arc::new(IntSet::Bits((0..3000).map(|i| i % 3 == 0).collect())));
            let keys = |keys: &mut dyn Iterator<Item = i128>| {
                let keys: Vec<i64> = keys.filter_map(|key| i64::try_from(key).ok()).collect();
                let set = KeySet::of(&keys).map_or(IntSet::Listed(vec![].into()), |keys| IntSet::Keys(keys.into()));
                ValueSet::IntSet(Arc::new(set))
            };
            let thirds = |from: i128| (0..900).filter_map(move |i| from.checked_add(3 * i));
            vec![
                keys(&mut set.clone().into_iter()),
                keys(&mut thirds(value(50))),
                keys(&mut value(50).checked_sub(1500).into_iter().flat_map(thirds)),
                keys(&mut [i128::from(i64::MIN), value(50), i128::from(i64::MAX)].into_iter()),
                ValueSet::IntRange { lo: value(30), hi: value(60) },
                ValueSet::IntRange { lo: value(50), hi: value(50) },
                ValueSet::IntRange { lo: i128::MIN, hi: value(20) },
                ValueSet::IntRange { lo: value(99), hi: i128::MAX },
                ValueSet::IntRange { lo: i128::MIN, hi: i128::MAX },
                ValueSet::nothing(),
                ValueSet::IntSet(Arc::new(IntSet::Listed(set.into()))),
                ValueSet::IntSet(Arc::new(IntSet::Listed(vec![].into()))),
                ValueSet::IntSet(Arc::new(IntSet::Listed(vec![i128::MIN, value(50), i128::MAX].into()))),
                ValueSet::IntSet(Arc::new(IntSet::Bits((0..3000).map(|i| (90..105).contains(&i)).collect()))),
                bits,
                ValueSet::of_codes(BooleanBuffer::new_unset(100)),
                ValueSet::of_codes((0..3000).map(|i| (90..2900).contains(&i)).collect()),
                // Begins and ends inside a byte, and before the values do.
                ValueSet::of_codes((0..2777).map(|i| i % 5 == 0).collect::<BooleanBuffer>().slice(13, 2751)),
            ]
        }
        Physical::Float { .. } => {
            let value = |share| at(share).map_or(0.0, |value| float(value));
            let mut set = [value(10), value(50), f64::NAN, -0.0];
            set.sort_by(f64::total_cmp);
            vec![
                ValueSet::FloatRange { lo: Bound::Included(value(30)), hi: Bound::Excluded(value(60)) },
                ValueSet::FloatRange { lo: Bound::Included(value(50)), hi: Bound::Included(value(50)) },
                ValueSet::FloatRange { lo: Bound::Excluded(0.0), hi: Bound::Unbounded },
                ValueSet::FloatRange { lo: Bound::Unbounded, hi: Bound::Excluded(-0.0) },
                ValueSet::FloatSet(set.into()),
            ]
        }
        Physical::Fixed { .. } | Physical::Bytes { .. } => {
            let value = |share| at(share).map_or(Arc::from(*b""), |value| Arc::<[u8]>::from(value.as_slice()));
            let mut set = vec![value(10), value(50), Arc::from(*b"absent")];
            set.sort_unstable();
            set.dedup();
            vec![
                ValueSet::BytesRange { lo: Bound::Included(value(30)), hi: Bound::Excluded(value(60)) },
                ValueSet::BytesRange { lo: Bound::Included(value(50)), hi: Bound::Included(value(50)) },
                ValueSet::BytesRange { lo: Bound::Unbounded, hi: Bound::Excluded(value(90)) },
                ValueSet::BytesSet(set.into()),
            ]
        }
    };
    tests.extend(tests.clone().into_iter().map(|test| ValueSet::Not(Box::new(test))));
    tests
}

fn check_round_trip(physical: Physical, input: &[Row], effort: Effort, what: &str) {
    let (bytes, encoding) = encoded(physical, input, effort);
    assert_eq!(encoded(physical, input, effort).0, bytes, "{what}: the same input, other bytes");
    let block = open(physical, &bytes, input.len());
    assert_eq!(block.encoding(), encoding, "{what}");
    assert!(block.describe().starts_with(encoding.name()) || encoding == Encoding::Narrowed, "{what}");
    assert_eq!(rows(physical, &block.decode(None).unwrap()), input, "{what}: {}", block.describe());
    for selected in selections(input.len()) {
        let expected: Vec<Row> = selected.set_indices().map(|at| input[at].clone()).collect();
        let found = rows(physical, &block.decode(Some(&selected)).unwrap());
        assert_eq!(found, expected, "{what}: {} selected, {}", selected.count_set_bits(), block.describe());
    }
    let nulls: Vec<bool> = input.iter().map(Option::is_none).collect();
    match block.nulls().unwrap() {
        None => assert!(!nulls.contains(&true), "{what}"),
        Some(found) => assert_eq!((0..found.len()).map(|i| found.is_null(i)).collect::<Vec<_>>(), nulls, "{what}"),
    }
    // At any offset of an output, and from any address, a block reads the same.
    let mut out = vec![0; 128];
    encode(physical, &column(physical, input), &EncodeOptions { effort }, &mut out).unwrap();
    assert_eq!(out[128..], bytes, "{what}: at an offset");
    let shifted = Buffer::from([&[0; 3], bytes.as_slice()].concat()).slice(3);
    let block = Block::open(physical, &shifted, input.len()).unwrap();
    assert_eq!(rows(physical, &block.decode(None).unwrap()), input, "{what}: unaligned");
}

fn check_evaluation(physical: Physical, input: &[Row], effort: Effort, what: &str) {
    let (bytes, _) = encoded(physical, input, effort);
    let block = open(physical, &bytes, input.len());
    let decoded = block.decode(None).unwrap();
    for test in tests(physical, input) {
        let plain = evaluate_column(physical, &decoded, &test).unwrap();
        let masks = [Some(plain.clone()), block.evaluate(&test).unwrap()];
        for mask in masks.into_iter().flatten() {
            assert_eq!(mask.is_true.len(), input.len(), "{what}");
            for (i, row) in input.iter().enumerate() {
                let is_null = mask.is_null.as_ref().is_some_and(|nulls| nulls.value(i));
                assert_eq!(is_null, row.is_none(), "{what}: null at {i}, {}", block.describe());
                let expected = match row {
                    None => false,
                    Some(value) => holds(physical, value, &test).unwrap_or_else(|| plain.is_true.value(i)),
                };
                assert_eq!(mask.is_true.value(i), expected, "{what}: {test:?} at {i}, {row:?}, {}", block.describe());
            }
        }
    }
}

fn each_input(mut check: impl FnMut(&Shape, &[Row], &str)) {
    for shape in shapes() {
        for len in LENGTHS {
            // Every arrangement of nulls at two lengths, one of them with a short last vector.
            let patterns = null_patterns(&shape.rows(len));
            let count = if len == 1025 || len == 8192 { patterns.len() } else { 1 };
            for (pattern, input) in patterns.iter().enumerate().take(count) {
                check(&shape, input, &format!("{}, {len} rows, null pattern {pattern}", shape.name));
            }
        }
    }
}

#[test]
fn every_shape_gets_its_encoding() {
    let wrong: Vec<String> = shapes()
        .iter()
        .filter_map(|shape| {
            let rows = shape.rows(8192);
            let (bytes, encoding) = encoded(shape.physical, &rows, shape.effort);
            let described = open(shape.physical, &bytes, rows.len()).describe();
            let line = format!("{}: {} bytes, {described}", shape.name, bytes.len());
            println!("{line}");
            (encoding != shape.expected).then_some(line)
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn values_come_back_under_every_selection() {
    each_input(|shape, input, what| check_round_trip(shape.physical, input, shape.effort, what));
}

#[test]
fn encoded_data_answers_as_decoded_data_and_the_model_do() {
    each_input(|shape, input, what| {
        if input.len() <= 1025 {
            check_evaluation(shape.physical, input, shape.effort, what);
        }
    });
}
