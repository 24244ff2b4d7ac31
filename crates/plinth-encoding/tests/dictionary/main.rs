//! The dictionary against a sorted map, for every physical type; in `damage`, what goes wrong; in `learned`, what one leaves to the next; in `memory`,
//! what it takes.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "tests")]

mod damage;
mod learned;
mod memory;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use plinth_core::random::Random;
use plinth_encoding::dictionary::{BlockSource, Dictionary, EncodedDictionary, Interner, encode, keys};
use plinth_encoding::expr::{CompareOp, Scalar};
use plinth_encoding::{Column, Effort, EncodingError, IntSet, Physical, Result, ValueSet, Values};
use plinth_io::MemoryBudget;
use proptest::prelude::*;

const TEXT: Physical = Physical::Bytes { utf8: true };
const BINARY: Physical = Physical::Bytes { utf8: false };

fn physicals() -> Vec<Physical> {
    let mut all = vec![TEXT, BINARY];
    for width in [1, 2, 4, 8] {
        all.extend([true, false].map(|signed| Physical::Int { width, signed }));
    }
    all.extend([16, 32].map(|width| Physical::Wide { width }));
    all.extend([2, 4, 8].map(|width| Physical::Float { width }));
    all.extend([0, 1, 3, 8, 9, 16, 21].map(|width| Physical::Fixed { width }));
    all
}

struct Blocks {
    blocks: Vec<Buffer>,
    reads: Arc<AtomicUsize>,
}

impl BlockSource for Blocks {
    fn block(&self, i: usize) -> Result<Buffer> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.blocks.get(i).cloned().ok_or_else(|| EncodingError::corrupt("no such block"))
    }
}

fn open(physical: Physical, encoded: &EncodedDictionary) -> Result<(Dictionary, Arc<AtomicUsize>)> {
    let reads = Arc::new(AtomicUsize::new(0));
    let blocks = encoded.blocks.iter().map(|block| Buffer::from(block.as_slice())).collect();
    let source = Box::new(Blocks { blocks, reads: Arc::clone(&reads) });
    Ok((Dictionary::open(physical, &encoded.index, source)?, reads))
}

/// Values in memory form: little-endian bytes for fixed widths, the bytes for others. Short views get padding that is
/// not zero, long ones point into two buffers by turns.
fn column(physical: Physical, rows: &[Option<Vec<u8>>]) -> Column {
    let nulls = rows.iter().any(Option::is_none).then(|| NullBuffer::from_iter(rows.iter().map(Option::is_some)));
    let values = if let Some(width) = physical.fixed_width() {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.clone().unwrap_or(vec![0xee; width])).collect();
        Values::Fixed(Buffer::from(bytes))
    } else {
        let mut buffers = [Vec::new(), vec![b'-']];
        let mut seen: HashMap<&[u8], u128> = HashMap::new();
        let mut views = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            let Some(row) = row else {
                views.push(u128::MAX);
                continue;
            };
            let mut view = [i as u8; 16];
            view[..4].copy_from_slice(&(row.len() as u32).to_le_bytes());
            if row.len() <= 12 {
                view[4..4 + row.len()].copy_from_slice(row);
                views.push(u128::from_le_bytes(view));
                continue;
            }
            // Every other repetition points at the same bytes, as from a dictionary array.
            if i % 2 == 0
                && let Some(&view) = seen.get(row.as_slice())
            {
                views.push(view);
                continue;
            }
            let buffer = &mut buffers[i % 2];
            view[4..8].copy_from_slice(&row[..4]);
            view[8..12].copy_from_slice(&((i % 2) as u32).to_le_bytes());
            view[12..].copy_from_slice(&(buffer.len() as u32).to_le_bytes());
            buffer.extend_from_slice(row);
            views.push(u128::from_le_bytes(view));
            seen.insert(row, u128::from_le_bytes(view));
        }
        Values::Views { views: views.into(), buffers: buffers.map(Buffer::from).to_vec() }
    };
    Column { len: rows.len(), values, nulls }
}

fn rows_of(physical: Physical, values: &Values) -> Vec<Vec<u8>> {
    match values {
        Values::Fixed(buffer) => match physical.fixed_width().unwrap() {
            0 => Vec::new(),
            width => buffer.chunks_exact(width).map(<[u8]>::to_vec).collect(),
        },
        Values::Views { views, buffers } => {
            // Arrow checks that the views are well formed.
            let array = arrow_array::BinaryViewArray::try_new(views.clone(), buffers.clone(), None).unwrap();
            array.iter().map(|value| value.unwrap().to_vec()).collect()
        }
        Values::Bool(_) => unreachable!(),
    }
}

fn key_of(physical: Physical, value: &[u8]) -> Vec<u8> {
    if matches!(physical, Physical::Bytes { .. }) {
        return value.to_vec();
    }
    let mut key = Vec::new();
    keys::encode(physical, value, &mut key).unwrap();
    key
}

/// Builds a dictionary, checking codes on the way.
fn build(physical: Physical, rows: &[Option<Vec<u8>>], parts: usize) -> EncodedDictionary {
    build_with(physical, rows, parts, Effort::Balanced)
}

fn build_with(physical: Physical, rows: &[Option<Vec<u8>>], parts: usize, effort: Effort) -> EncodedDictionary {
    let mut interner = Interner::new(physical).unwrap();
    let mut codes = Vec::new();
    for part in rows.chunks(rows.len().div_ceil(parts).max(1)) {
        interner.intern(&column(physical, part), &mut codes).unwrap();
    }
    assert_eq!(codes.len(), rows.len());
    let mut first_seen: HashMap<&[u8], u32> = HashMap::new();
    for (row, &code) in rows.iter().zip(&codes) {
        let expected = row.as_ref().map_or(0, |row| {
            let next = first_seen.len() as u32;
            *first_seen.entry(row).or_insert(next)
        });
        assert_eq!(code, expected);
    }
    let key_bytes: usize = first_seen.keys().map(|row| row.len()).sum();
    assert_eq!((interner.len(), interner.key_bytes()), (first_seen.len(), key_bytes));
    assert!(interner.memory() >= key_bytes && interner.is_empty() == first_seen.is_empty());

    let sorted = interner.sort();
    let model: BTreeMap<Vec<u8>, u32> = first_seen.iter().map(|(row, &code)| (key_of(physical, row), code)).collect();
    assert!(sorted.keys().eq(model.keys().map(Vec::as_slice)));
    assert_eq!(sorted.key_bytes(), key_bytes);
    for (rank, &code) in model.values().enumerate() {
        assert_eq!(sorted.remap()[code as usize], rank as u32);
    }
    let encoded = encode(physical, &sorted, effort).unwrap();
    assert_eq!(encoded.blocks.len(), sorted.len().div_ceil(4096));
    encoded
}

fn holds(test: &ValueSet, value: &Scalar) -> bool {
    match value {
        Scalar::Int(value) => test.holds_int(*value),
        Scalar::Float(value) => test.holds_float(*value),
        Scalar::Bytes(value) => test.holds_bytes(value),
        Scalar::Bool(value) => test.holds_bool(*value),
    }
}

/// Strings at and around a key, and prefixes of it.
fn around(key: &[u8]) -> Vec<Vec<u8>> {
    let mut near = vec![key.to_vec(), [key, &[0]].concat(), [key, &[0xff, 1]].concat()];
    near.extend([0, 1, 2, 5, 9, 13, key.len().saturating_sub(1)].map(|len| key[..len.min(key.len())].to_vec()));
    if let Some((&last, rest)) = key.split_last() {
        near.extend([1, 0xff].map(|step| [rest, &[last.wrapping_add(step)]].concat()));
    }
    near
}

fn tests_about(physical: Physical, values: &[Scalar]) -> Vec<ValueSet> {
    let not = |test: &ValueSet| ValueSet::Not(Box::new(test.clone()));
    let any = ValueSet::any_of(physical, values).unwrap();
    let mut tests = vec![
        ValueSet::nothing(),
        not(&ValueSet::nothing()),
        ValueSet::Bools { holds_false: true, holds_true: true },
        ValueSet::IntRange { lo: i128::MIN, hi: i128::MAX },
        ValueSet::FloatRange { lo: Bound::Unbounded, hi: Bound::Unbounded },
        ValueSet::BytesRange { lo: Bound::Unbounded, hi: Bound::Unbounded },
        not(&any),
        not(&not(&any)),
        any,
    ];
    let mut constants = values.to_vec();
    for value in values {
        match value {
            Scalar::Int(v) => {
                constants.extend([v.wrapping_add(1), v.wrapping_neg(), v.wrapping_mul(300)].map(Scalar::Int));
            }
            Scalar::Float(v) => {
                constants.extend([v + 0.1, -v, v.next_up(), v.next_down(), v * 1e9].map(Scalar::Float));
            }
            Scalar::Bytes(v) => constants.extend(around(v).into_iter().map(|v| Scalar::Bytes(v.into()))),
            Scalar::Bool(_) => {}
        }
    }
    match values.first() {
        Some(Scalar::Int(_)) => {
            constants.extend([0, i128::MIN + 1, i128::MAX - 1, 255, -1].map(Scalar::Int));
            let bits = |every: usize| BooleanBuffer::collect_bool(300, |i| i % every == 0);
            tests.extend([1, 2, 7].map(|every| ValueSet::IntSet(Arc::new(IntSet::Bits(bits(every))))));
        }
        Some(Scalar::Float(_)) => {
            let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e-310, 65520.0];
            constants.extend(special.map(Scalar::Float));
        }
        _ => {}
    }
    let ops = [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
    for constant in &constants {
        tests.extend(ops.map(|op| ValueSet::compare(physical, op, constant).unwrap()));
    }
    tests.push(ValueSet::any_of(physical, &constants).unwrap());
    tests
}

/// Everything a dictionary can be asked, against a sorted map. `every` thins out what is asked of large ones.
fn check(physical: Physical, rows: &[Option<Vec<u8>>], every: usize) {
    let encoded = build(physical, rows, 3);
    let turned: Vec<_> = rows.iter().rev().cloned().collect();
    let again = build(physical, &turned, 1);
    assert_eq!((&again.index, &again.blocks), (&encoded.index, &encoded.blocks), "{physical:?}");

    let model: BTreeMap<Vec<u8>, Vec<u8>> =
        rows.iter().flatten().map(|row| (key_of(physical, row), row.clone())).collect();
    let all: Vec<&[u8]> = model.keys().map(Vec::as_slice).collect();
    let values: Vec<&Vec<u8>> = model.values().collect();
    let (dictionary, reads) = open(physical, &encoded).unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 0);
    assert_eq!((dictionary.len(), dictionary.is_empty()), (all.len(), all.is_empty()));

    let mut probes: Vec<Vec<u8>> = vec![Vec::new(), vec![0xff; 40]];
    probes.extend(all.iter().step_by(every).flat_map(|key| around(key)));
    for probe in &probes {
        let at = all.partition_point(|&other| other < probe.as_slice());
        let found = all.get(at) == Some(&probe.as_slice());
        let say = || format!("{physical:?} {probe:?}");
        assert_eq!(dictionary.lower_bound(probe).unwrap() as usize, at, "{}", say());
        assert_eq!(dictionary.upper_bound(probe).unwrap() as usize, at + usize::from(found), "{}", say());
        assert_eq!(dictionary.find(probe).unwrap(), found.then_some(at as u32), "{}", say());
        let count = all[at..].iter().take_while(|key| key.starts_with(probe)).count();
        let range = dictionary.prefix(probe).unwrap();
        assert!(range.len() == count && (count == 0 || range.start as usize == at), "{}", say());
    }

    let mut key = b"left over".to_vec();
    for (code, expected) in all.iter().enumerate() {
        dictionary.get(code as u32, &mut key).unwrap();
        assert_eq!(&key, expected);
    }
    assert!(dictionary.get(all.len() as u32, &mut key).is_err());
    let ends = [all.first(), all.last()].map(|key| key.and_then(|key| keys::to_scalar(physical, key)));
    // As text, because a NaN is not equal to itself.
    assert_eq!(format!("{:?}", [dictionary.min().unwrap(), dictionary.max().unwrap()]), format!("{ends:?}"));

    // A few codes come from blocks, many from the decoded table; both in no order, and repeated.
    let len = all.len() as u32;
    for count in [0, 1, 100, 1200, all.len() as u32 * 2].map(|count| if len == 0 { 0 } else { count }) {
        let mut codes: Vec<u32> = (0..count).map(|i| i.wrapping_mul(2_654_435_769) % len).collect();
        let gathered = rows_of(physical, &dictionary.gather(&codes).unwrap());
        let expected = codes.iter().map(|&code| values[code as usize]);
        assert!(physical.fixed_width() == Some(0) || gathered.iter().eq(expected), "{physical:?} {count}");
        assert_eq!(rows_of(physical, &dictionary.gather_lent(&codes).unwrap()), gathered);
        codes.push(len);
        assert!(matches!(dictionary.gather_lent(&codes), Err(EncodingError::Corrupt(_))));
        assert!(matches!(dictionary.gather(&codes), Err(EncodingError::Corrupt(_))));
    }
    let decoded = dictionary.values().unwrap();
    assert_eq!(decoded.column().len, all.len());
    let decoded_rows = rows_of(physical, decoded.values());
    assert!(physical.fixed_width() == Some(0) || decoded_rows.iter().eq(values), "{physical:?}");
    assert!(dictionary.memory() >= decoded.memory());
    assert!(reads.load(Ordering::Relaxed) <= encoded.blocks.len(), "blocks are fetched once");

    let scalars: Vec<Option<Scalar>> = all.iter().map(|key| keys::to_scalar(physical, key)).collect();
    let some: Vec<Scalar> = scalars.iter().step_by(every).flatten().take(12).cloned().collect();
    for test in tests_about(physical, &some) {
        let translated = dictionary.translate(&test).unwrap();
        for (code, scalar) in scalars.iter().enumerate() {
            let Some(scalar) = scalar else { continue };
            let (held, expected) = (translated.holds_int(code as i128), holds(&test, scalar));
            assert_eq!(held, expected, "{physical:?} {test:?} {scalar:?}");
        }
    }
}

fn value_of(physical: Physical) -> BoxedStrategy<Vec<u8>> {
    let Some(width) = physical.fixed_width() else {
        let text = prop_oneof![
            "[ab]{0,6}",
            "[\\x00\\x01b]{0,14}",
            "https://www\\.example\\.(com|org)/[abc]{0,3}/[a-z]{0,30}",
            ".{0,20}",
            "[é日z]{0,9}",
            "z{0,400}",
        ];
        let text = text.prop_map(String::into_bytes);
        if physical == TEXT {
            return text.boxed();
        }
        let anything = prop::collection::vec(any::<u8>(), 0..40);
        let ends = prop::collection::vec(prop_oneof![Just(0), Just(1), Just(0xff)], 0..20);
        return prop_oneof![text, anything, ends].boxed();
    };
    let anything = prop::collection::vec(any::<u8>(), width);
    let dense = any::<u8>().prop_map(move |byte| (0..width).map(|i| if i == 0 { byte } else { 0 }).collect());
    let ends = prop::collection::vec(prop_oneof![Just(0), Just(0x80), Just(0x7f), Just(0xff)], width);
    prop_oneof![anything, dense, ends].boxed()
}

fn rows_for(physical: Physical) -> impl Strategy<Value = Vec<Option<Vec<u8>>>> {
    prop::collection::vec(prop::option::weighted(0.9, value_of(physical)), 0..300)
}

fn every_physical() -> impl Strategy<Value = (Physical, Vec<Option<Vec<u8>>>)> {
    prop::sample::select(physicals())
        .prop_flat_map(|physical| rows_for(physical).prop_map(move |rows| (physical, rows)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn answers_as_a_sorted_map_does((physical, rows) in every_physical()) {
        check(physical, &rows, 3);
    }

    #[test]
    fn text_answers_as_a_sorted_map_does(rows in rows_for(TEXT)) {
        check(TEXT, &rows, 3);
    }

    #[test]
    fn keys_over_a_small_alphabet_answer_as_a_sorted_map_does(
        symbols in prop::collection::vec(any::<u8>(), 1..140),
        rows in prop::collection::vec(prop::collection::vec(any::<usize>(), 0..40), 0..300),
        most in 1..40usize,
    ) {
        let row = |row: Vec<usize>| row.iter().take(most).map(|&at| symbols[at % symbols.len()]).collect();
        check(BINARY, &rows.into_iter().map(row).map(Some).collect::<Vec<_>>(), 3);
    }
}

/// Numbers without a pattern.
fn random(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = Random(seed);
    std::iter::repeat_with(move || random.next_u64())
}

fn sample(physical: Physical, count: usize) -> Vec<Option<Vec<u8>>> {
    let row = |(i, x): (usize, u64)| match physical.fixed_width() {
        None if i.is_multiple_of(2) => format!("{x:x}").into_bytes(),
        None => format!("https://www.example.org/{}/article-{}/{x}", x % 7, i / 3).into_bytes(),
        // Counting up and at random: differences of both kinds.
        Some(width) => {
            let number = if i.is_multiple_of(3) { x } else { i as u64 };
            let mut value = number.to_le_bytes().repeat(width.div_ceil(8).max(1));
            value.truncate(width);
            value
        }
    };
    random(7).take(count).enumerate().map(row).map(Some).collect()
}

#[test]
fn block_boundaries_hold_for_every_type() {
    for physical in physicals() {
        for count in [0, 1, 15, 16, 17, 4095, 4096, 4097, 10_000] {
            check(physical, &sample(physical, count), 1 + count / 30);
        }
    }
}

#[test]
fn short_text_without_nulls_is_interned_by_its_views() {
    for longest in [3, 12] {
        let words =
            random(longest).map(|x| Some(format!("{:x}", x >> 3).as_bytes()[..1 + (x % longest) as usize].to_vec()));
        let words: Vec<_> = words.take(9000).chain([Some(Vec::new()), Some(vec![0; 12]), Some(vec![0; 11])]).collect();
        check(TEXT, &words, 300);
        check(TEXT, &words.into_iter().chain([None]).collect::<Vec<_>>(), 300);
    }
}

/// Random lower-case words of 4 to 10 letters.
fn words(count: usize) -> Vec<Option<Vec<u8>>> {
    let word =
        |x: u64| -> Vec<u8> { random(x).take(4 + (x % 7) as usize).map(|x| b'a' + ((x >> 20) % 26) as u8).collect() };
    let words: std::collections::BTreeSet<_> = random(26).map(word).take(count * 2).collect();
    words.into_iter().take(count).map(Some).collect()
}

#[test]
fn words_take_little_more_than_their_letters() {
    let words = words(1 << 16);
    assert_eq!(words.len(), 1 << 16);
    let encoded = build(TEXT, &words, 1);
    assert_eq!(encoded.index[0], 3, "letters are packed");
    let bytes = encoded.index.len() + encoded.blocks.iter().map(Vec::len).sum::<usize>();
    assert!(bytes * 2 < words.iter().flatten().map(Vec::len).sum::<usize>(), "{bytes} bytes");
    check(TEXT, &words, 20_000);
}

#[test]
#[ignore = "a minute: 2^20 distinct values"]
fn a_million_words_answer_as_a_sorted_map_does() {
    check(TEXT, &words(1 << 20), 400_000);
}

#[test]
fn long_values_are_found() {
    // Of a mebibyte: alike but for the ends, over a small alphabet or all bytes, compressible or not; and short ones.
    let long = |fill: u64, range: u64| -> Vec<u8> { random(fill).take(1 << 20).map(|x| (x % range) as u8).collect() };
    for range in [1, 2, 26, 200, 256] {
        let mut rows = vec![vec![], vec![0], vec![0, 0], vec![0xff], vec![1; 15], vec![1; 16], vec![0; 1 << 20]];
        for fill in 0..3 {
            rows.push(long(fill, range));
            rows.push([long(fill, range), vec![0, 1]].concat());
            rows.push([long(fill, range), vec![0xff]].concat());
        }
        let rows: Vec<_> = rows.into_iter().map(Some).collect();
        let model: std::collections::BTreeSet<Vec<u8>> = rows.iter().flatten().cloned().collect();
        let (dictionary, _) = open(BINARY, &build(BINARY, &rows, 1)).unwrap();
        let mut key = Vec::new();
        for (code, value) in (0u32..).zip(&model) {
            assert_eq!(dictionary.find(value).unwrap(), Some(code));
            assert_eq!(dictionary.find(&[&value[..], &[7]].concat()).unwrap(), None);
            dictionary.get(code, &mut key).unwrap();
            assert_eq!(&key, value);
            let half = &value[..value.len() / 2];
            let (start, count) =
                (model.range(..half.to_vec()).count(), model.iter().filter(|v| v.starts_with(half)).count());
            assert_eq!(dictionary.prefix(half).unwrap(), start as u32..(start + count) as u32);
        }
        assert!(rows_of(BINARY, dictionary.values().unwrap().values()).iter().eq(&model));
    }
}

#[test]
fn keys_are_found_all_at_once() {
    for physical in physicals() {
        let rows = sample(physical, 9000);
        let model: std::collections::BTreeSet<_> = rows.iter().flatten().map(|row| key_of(physical, row)).collect();
        let (dictionary, _) = open(physical, &build(physical, &rows, 1)).unwrap();
        let mut probes: Vec<Vec<u8>> = model.iter().step_by(7).flat_map(|key| around(key)).collect();
        for sorted in [false, true] {
            let expected: Vec<u32> = probes.iter().filter_map(|probe| dictionary.find(probe).unwrap()).collect();
            assert_eq!(dictionary.find_all(&probes).unwrap(), expected);
            assert!(expected.len() >= model.len() / 7 && (!sorted || expected.is_sorted()));
            probes.sort_unstable();
        }
        assert!(open(physical, &build(physical, &[], 1)).unwrap().0.find_all(&probes).unwrap().is_empty());
    }
}

#[test]
fn long_values_leave_in_buffers_of_their_own() {
    // More than a mebibyte of long values: a few that are gathered must not drag all of them along.
    let rows: Vec<_> = (0..9000).map(|i| Some(format!("{:0>200}", i * 7).into_bytes())).collect();
    check(TEXT, &rows, 500);
    let (dictionary, _) = open(TEXT, &build(TEXT, &rows, 1)).unwrap();
    for decoded in [false, true] {
        if decoded {
            dictionary.values().unwrap();
        }
        let Values::Views { buffers, .. } = dictionary.gather(&[8999, 5, 4097]).unwrap() else { unreachable!() };
        assert_eq!(buffers.iter().map(Buffer::len).sum::<usize>(), 600, "{decoded}");
    }
    // For a moment nothing is copied.
    let Values::Views { buffers, .. } = dictionary.gather_lent(&[8999, 5, 4097]).unwrap() else { unreachable!() };
    assert_eq!(buffers.iter().map(Buffer::len).sum::<usize>(), 9000 * 200);
}

#[test]
fn long_values_that_repeat_are_not_copied_more_often_than_they_are_stored() {
    let rows: Vec<_> = [b'a', b'b', b'c'].map(|byte| Some(vec![byte; 1 << 20])).to_vec();
    let (dictionary, _) = open(TEXT, &build(TEXT, &rows, 1)).unwrap();
    let codes: Vec<u32> = (0..3_000).map(|i| i % 3).collect();
    let Values::Views { views, buffers } = dictionary.gather(&codes).unwrap() else { unreachable!() };
    assert_eq!(views.len(), codes.len());
    assert_eq!(buffers.iter().map(Buffer::len).sum::<usize>(), 3 << 20);
}

#[test]
fn a_search_touches_one_block() {
    let encoded = build(TEXT, &sample(TEXT, 20_000), 1);
    for key in [&b"https://www.example.org/3/"[..], b"", b"zzz", b"7", b"https://www.example.org/5/article-42/"] {
        let (dictionary, reads) = open(TEXT, &encoded).unwrap();
        dictionary.find(key).unwrap();
        dictionary.lower_bound(key).unwrap();
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn values_that_repeat_much_compress() {
    let row = |(i, x): (usize, u64)| format!("{i}{}{}", x % 97, "lorem ipsum dolor ".repeat(3)).into_bytes();
    let rows: Vec<_> = random(3).take(6000).enumerate().map(row).map(Some).collect();
    let plain: usize = rows.iter().flatten().map(Vec::len).sum();
    for (effort, form) in [(Effort::Fast, 1), (Effort::Balanced, 4)] {
        let encoded = build_with(TEXT, &rows, 1, effort);
        assert_eq!(encoded.index[0], form, "FSST is chosen, or tokens");
        assert!(encoded.blocks.iter().map(Vec::len).sum::<usize>() * 4 < plain);
    }
    check(TEXT, &rows, 100);
}

#[test]
fn threads_share_a_dictionary() {
    let rows = sample(TEXT, 12_000);
    let (dictionary, _) = open(TEXT, &build(TEXT, &rows, 1)).unwrap();
    let expected = rows[5].clone().unwrap();
    let ask = || {
        let code = dictionary.find(&expected).unwrap().unwrap();
        assert_eq!(rows_of(TEXT, &dictionary.gather(&[code]).unwrap()), std::slice::from_ref(&expected));
        Arc::as_ptr(&dictionary.values().unwrap()) as usize
    };
    let tables: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(tables.iter().all(|&table| table == tables[0]), "all values are decoded once");
}

#[test]
fn what_a_budget_refuses_is_decoded_when_needed_and_what_is_kept_is_given_back() {
    for physical in physicals() {
        let rows = sample(physical, 20_000);
        let encoded = build(physical, &rows, 1);
        let (free, _) = open(physical, &encoded).unwrap();
        let all = free.values().unwrap();
        if all.memory() == 0 {
            // Values without bytes.
            continue;
        }
        let codes: Vec<u32> = (0..u32::try_from(free.len()).unwrap()).rev().collect();
        let expected = rows_of(physical, &free.gather(&codes).unwrap());
        let size = all.memory() as u64;

        // Room for a block at most.
        let budget = MemoryBudget::new(size / 3);
        let (tight, reads) = open(physical, &encoded).unwrap();
        let tight = tight.within(&budget);
        assert!(tight.values_within().unwrap().is_none());
        for codes in codes.chunks(3000) {
            let first = expected.len() - 1 - codes[0] as usize;
            let gathered = rows_of(physical, &tight.gather(codes).unwrap());
            assert_eq!(gathered, expected[first..first + codes.len()]);
        }
        let blocks: Vec<_> =
            (0..tight.blocks()).flat_map(|i| rows_of(physical, &tight.block_values(i).unwrap().values)).collect();
        assert!(blocks.iter().eq(expected.iter().rev()));
        assert_eq!(rows_of(physical, tight.values().unwrap().values()), blocks);
        assert!(tight.block_values(tight.blocks()).is_err());
        assert!(budget.used() <= budget.limit() && reads.load(Ordering::Relaxed) >= tight.blocks());

        // Room for all, until another part of the program wants it.
        let budget = MemoryBudget::new(size * 2);
        let roomy = open(physical, &encoded).unwrap().0.within(&budget);
        let loan = roomy.values_within().unwrap().unwrap();
        assert!(budget.used() >= size);
        assert!(budget.reserve("sort", size * 2).is_err(), "what is on loan is counted");
        drop(loan);
        let sort = budget.reserve("sort", size * 2).unwrap();
        assert!(roomy.values_within().unwrap().is_none());
        assert_eq!(rows_of(physical, &roomy.gather(&codes).unwrap()), expected);
        drop(sort);
        assert!(roomy.values_within().unwrap().is_some());
        drop(roomy);
        assert_eq!(budget.used(), 0);
    }
}
