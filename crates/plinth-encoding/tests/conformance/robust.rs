//! Bytes that no encoder wrote, and columns of unusual shapes.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_buffer::{BooleanBuffer, Buffer};
use plinth_encoding::expr::Scalar;
use plinth_encoding::{Block, Bounds, Column, Effort, EncodeOptions, Physical, ValueSet, Values, bounds, encode};
use proptest::prelude::*;

use crate::model::{Row, column, float, holds, int, rows};
use crate::shapes::shapes;
use crate::{check_evaluation, check_round_trip, encoded, null_patterns, tests};

/// The system's allocator, remembering the largest request.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
#[allow(unsafe_code)]
unsafe impl std::alloc::GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { std::alloc::System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: as above.
        unsafe { std::alloc::System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Does all that can be done with a block; it may fail, but what it gives has the right length.
fn exercise(physical: Physical, bytes: &[u8], len: usize, test: &ValueSet, selected: &BooleanBuffer) {
    let Ok(block) = Block::open(physical, &Buffer::from(bytes), len) else { return };
    let _ = block.describe();
    if let Ok(Some(nulls)) = block.nulls() {
        assert_eq!(nulls.len(), len);
    }
    let check = |column: Column, len: usize| {
        assert_eq!(column.len, len);
        match column.values {
            Values::Bool(bits) => assert_eq!(bits.len(), len),
            Values::Fixed(bytes) => assert_eq!(bytes.len(), len * physical.fixed_width().unwrap()),
            Values::Views { views, buffers } => {
                assert_eq!(views.len(), len);
                for view in &views {
                    check_view(*view, &buffers, physical == Physical::Bytes { utf8: true });
                }
            }
        }
    };
    if let Ok(column) = block.decode(None) {
        check(column, len);
    }
    if let Ok(column) = block.decode(Some(selected)) {
        check(column, selected.count_set_bits());
    }
    for selection in [None, Some(selected)] {
        if let Ok(Some(mask)) = block.evaluate_selected(test, selection) {
            assert_eq!(mask.is_true.len(), len);
        }
    }
    if let Ok(Some(candidates)) = block.candidates(test) {
        assert_eq!(candidates.len(), len);
    }
}

/// A view an engine may use unchecked.
fn check_view(view: u128, buffers: &[Buffer], utf8: bool) {
    let bytes = view.to_le_bytes();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let len = word(0);
    let value = if len <= 12 { &bytes[4..4 + len] } else { &buffers[word(8)][word(12)..word(12) + len] };
    if utf8 {
        std::str::from_utf8(value).unwrap();
    }
}

#[test]
fn corrupt_blocks_give_errors_or_values_but_no_harm() {
    // The largest honest request is for the values themselves; pco and zstd want workspaces of their own.
    const MOST: usize = 16 << 20;
    for shape in shapes() {
        for len in [40, 1300] {
            let all = null_patterns(&shape.rows(len));
            for input in [&all[0], &all[3]] {
                let (bytes, _) = encoded(shape.physical, input, shape.effort);
                let test = tests(shape.physical, input).swap_remove(0);
                let selected: BooleanBuffer = (0..len).map(|row| row % 7 == 0).collect();
                LARGEST.store(0, Ordering::Relaxed);
                let step = bytes.len().div_ceil(if len == 40 { 200 } else { 60 });
                // Headers are at the front: there, every byte.
                for at in (0..bytes.len().min(80)).chain((80..bytes.len()).step_by(step)) {
                    exercise(shape.physical, &bytes[..at], len, &test, &selected);
                    for flip in [0xFF, 0x01, 0x80] {
                        let mut bytes = bytes.clone();
                        bytes[at] ^= flip;
                        exercise(shape.physical, &bytes, len, &test, &selected);
                    }
                }
                let largest = LARGEST.load(Ordering::Relaxed);
                assert!(largest < MOST, "{}: {largest} bytes at once", shape.name);
                // A block that claims another number of rows is refused or made to fit.
                for other in [0, 1, len - 1, len + 1, len * 2] {
                    let selected = BooleanBuffer::new_unset(other);
                    exercise(shape.physical, &bytes, other, &test, &selected);
                }
            }
        }
    }
}

#[test]
fn every_block_is_read_to_its_end() {
    for shape in shapes() {
        let input = shape.rows(1300);
        let (mut bytes, _) = encoded(shape.physical, &input, shape.effort);
        for cut in 1..=bytes.len().min(70) {
            let short = Buffer::from(&bytes[..bytes.len() - cut]);
            assert!(Block::open(shape.physical, &short, input.len()).is_err(), "{}: {cut} bytes short", shape.name);
        }
        bytes.push(0);
        assert!(Block::open(shape.physical, &Buffer::from(bytes), input.len()).is_err(), "{}: a byte more", shape.name);
    }
}

#[test]
fn text_that_is_not_utf8_is_an_error() {
    let bytes = Physical::Bytes { utf8: false };
    let text = Physical::Bytes { utf8: true };
    // Characters cut between two values are as wrong as bytes that are none.
    let cut: Vec<Row> = (0..600).map(|i| Some(if i % 2 == 0 { vec![b'a', 0xC3] } else { vec![0xBC, b'b'] })).collect();
    let bad: Vec<Row> = (0..600_u32).map(|i| Some(vec![b'x', 0xFF, (i % 251) as u8])).collect();
    let lone: Vec<Row> = vec![Some(vec![0xFF]); 3];
    for input in [cut, bad, lone] {
        for effort in [Effort::Plain, Effort::Fast, Effort::Balanced, Effort::Compact] {
            let (encoded, _) = encoded(bytes, &input, effort);
            let buffer = Buffer::from(encoded);
            assert_eq!(rows(bytes, &Block::open(bytes, &buffer, input.len()).unwrap().decode(None).unwrap()), input);
            let block = Block::open(text, &buffer, input.len()).unwrap();
            assert!(block.decode(None).is_err(), "{}", block.describe());
            let some = (0..input.len()).map(|i| i == 1).collect();
            assert!(block.decode(Some(&some)).is_err(), "{}", block.describe());
        }
    }
}

#[test]
fn wrong_arguments_are_errors() {
    let int = Physical::Int { width: 4, signed: true };
    let three = Column { len: 3, values: Values::Fixed(Buffer::from(&[0_u8; 11])), nulls: None };
    let bools = Column { len: 3, values: Values::Bool(BooleanBuffer::new_set(3)), nulls: None };
    let mut out = vec![1, 2, 3];
    for column in [&three, &bools] {
        assert!(encode(int, column, &EncodeOptions::default(), &mut out).is_err());
        assert_eq!(out, [1, 2, 3], "nothing is left of a block that failed");
    }
    let (bytes, _) = encoded(int, &[Some(vec![1, 2, 3, 4])], Effort::Balanced);
    let block = Block::open(int, &Buffer::from(bytes), 1).unwrap();
    assert!(block.decode(Some(&BooleanBuffer::new_set(2))).is_err());
}

#[test]
fn bounds_are_the_extremes() {
    for shape in shapes() {
        for input in null_patterns(&shape.rows(300)) {
            let found = bounds(shape.physical, &column(shape.physical, &input));
            let values = || input.iter().flatten();
            let expected = match shape.physical {
                Physical::Bool => {
                    min_max(values().map(|v| v[0] != 0), Ord::cmp).map(|(a, b)| (Scalar::Bool(a), Scalar::Bool(b)))
                }
                Physical::Int { signed, .. } => {
                    min_max(values().map(|v| int(v, signed)), Ord::cmp).map(|(a, b)| (Scalar::Int(a), Scalar::Int(b)))
                }
                Physical::Wide { .. } if values().any(|v| holds(shape.physical, v, &ValueSet::nothing()).is_none()) => {
                    None
                }
                Physical::Wide { .. } => min_max(values().map(|v| int(&v[..16], true)), Ord::cmp)
                    .map(|(a, b)| (Scalar::Int(a), Scalar::Int(b))),
                Physical::Float { .. } => min_max(values().map(|v| float(v)), f64::total_cmp)
                    .map(|(a, b)| (Scalar::Float(a), Scalar::Float(b))),
                Physical::Fixed { .. } | Physical::Bytes { .. } => min_max(values().cloned(), Ord::cmp)
                    .map(|(a, b)| (Scalar::Bytes(a.into()), Scalar::Bytes(b.into()))),
            };
            // By their debug form, for NaN is not equal to itself and -0 is to 0.
            let expected = expected.map(|(min, max)| Bounds { min, max });
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{}", shape.name);
        }
    }
}

fn min_max<T: Clone>(values: impl Iterator<Item = T>, compare: fn(&T, &T) -> std::cmp::Ordering) -> Option<(T, T)> {
    let mut values: Vec<T> = values.collect();
    values.sort_by(compare);
    Some((values.first()?.clone(), values.last()?.clone()))
}

fn physical() -> impl Strategy<Value = Physical> {
    let int = (prop::sample::select(vec![1_u8, 2, 4, 8]), any::<bool>())
        .prop_map(|(width, signed)| Physical::Int { width, signed });
    prop_oneof![
        Just(Physical::Bool),
        int,
        prop::sample::select(vec![16_u8, 32]).prop_map(|width| Physical::Wide { width }),
        prop::sample::select(vec![2_u8, 4, 8]).prop_map(|width| Physical::Float { width }),
        (0..20_u32).prop_map(|width| Physical::Fixed { width }),
        any::<bool>().prop_map(|utf8| Physical::Bytes { utf8 }),
    ]
}

/// Columns of few or many distinct values, in runs or not, with or without nulls.
fn columns() -> impl Strategy<Value = (Physical, Vec<Row>)> {
    (physical(), 1..60_usize, 0..1500_usize, 1..40_usize, 0..4_u32, any::<u64>()).prop_flat_map(
        |(physical, distinct, len, run, null_share, seed)| {
            let value = match physical {
                Physical::Bool => prop::collection::vec(0..2_u8, 1).boxed(),
                Physical::Bytes { utf8: true } => "\\PC{0,20}".prop_map(String::into_bytes).boxed(),
                Physical::Bytes { utf8: false } => prop::collection::vec(any::<u8>(), 0..30).boxed(),
                _ => {
                    let width = physical.fixed_width().unwrap();
                    let noise = prop::collection::vec(any::<u8>(), width);
                    let small = (any::<u8>(), any::<bool>()).prop_map(move |(low, negative)| {
                        let mut value = vec![if negative { 0xFF } else { 0 }; width];
                        value.iter_mut().take(1).for_each(|byte| *byte = low);
                        value
                    });
                    prop_oneof![noise, small].boxed()
                }
            };
            prop::collection::vec(value, distinct).prop_map(move |pool| {
                let mut next = crate::model::noise(seed);
                let mut held = None;
                let rows = (0..len)
                    .map(|row| {
                        if row % run == 0 || held.is_none() {
                            let value = pool[next() as usize % pool.len()].clone();
                            held = Some((next() % 4 >= u64::from(null_share)).then_some(value));
                        }
                        held.clone().flatten()
                    })
                    .collect();
                (physical, rows)
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_column_comes_back_and_answers(
        (physical, input) in columns(),
        effort in prop::sample::select(vec![Effort::Plain, Effort::Fast, Effort::Balanced, Effort::Compact]),
    ) {
        check_round_trip(physical, &input, effort, "random");
        check_evaluation(physical, &input, effort, "random");
    }

    #[test]
    fn any_bytes_are_harmless(
        physical in physical(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        tag in 0..18_u8,
        len in 0..3000_usize,
    ) {
        let bytes = [&[0, tag], bytes.as_slice()].concat();
        exercise(physical, &bytes, len, &ValueSet::IntRange { lo: 3, hi: 100 }, &BooleanBuffer::new_set(len));
    }
}
