//! Files of version 1, written when the format was settled: they are read for ever, with the same values.
//!
//! They are in `tests/files/1`, and are never written again. A later version gets a folder of its own, a feature a file:
//! `PLINTH_WRITE_FILES=1 cargo test -p plinth-format --test suite promise` writes what is missing there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use plinth_encoding::Effort;
use plinth_format::{File, WriterOptions};

use crate::data::{Random, array, assert_same, expected, read_all, small, wide_batch, words, write};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/1");

/// Each file's name, what is in it and how it was written.
fn files() -> Vec<(&'static str, RecordBatch, WriterOptions)> {
    let with = |effort| WriterOptions { effort, ..small() };
    let direct = |effort| WriterOptions { dictionary_values: 0, ..with(effort) };
    let dictionaries = WriterOptions { dictionary_values: 600, index: vec!["text".into(), "few".into()], ..small() };
    vec![
        ("types-plain", wide_batch(1, 300, 10), with(Effort::Plain)),
        ("types-balanced", wide_batch(2, 2_500, 10), with(Effort::Balanced)),
        ("types-empty", wide_batch(3, 0, 0), with(Effort::Balanced)),
        ("shapes-fast", shapes(), direct(Effort::Fast)),
        ("shapes-balanced", shapes(), direct(Effort::Balanced)),
        ("shapes-compact", shapes(), direct(Effort::Compact)),
        ("distinct-balanced", visits(), direct(Effort::Balanced)),
        ("dictionaries", repeats(), dictionaries.clone()),
        ("dictionaries-compact", repeats(), WriterOptions { effort: Effort::Compact, ..dictionaries }),
        ("dictionaries-tokens", sentences(), with(Effort::Balanced)),
    ]
}

/// Columns whose values call for one encoding each.
fn shapes() -> RecordBatch {
    let mut random = Random(17);
    let rows = 5_000_i64;
    let mut below = |n: u64| random.below(n) as i64;
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let small: Vec<i64> = (0..rows).map(|_| below(1_000)).collect();
    let mut at = 0;
    let delta: Vec<i64> = (0..rows)
        .map(|_| {
            at += 1_000 + below(7);
            at
        })
        .collect();
    let runs: Vec<i64> = (0..rows).map(|i| i / 137 * 1_000_003 % 977).collect();
    let sparse: Vec<i64> = (0..rows).map(|i| if i % 211 == 0 { below(1 << 40) } else { 5 }).collect();
    let patched: Vec<i64> = (0..rows).map(|i| if i % 97 == 0 { below(1 << 50) } else { below(16) }).collect();
    let radix: Vec<u32> = (0..rows).map(|_| below(69_700) as u32).collect();
    let smooth: Vec<i64> = (0..rows).map(|i| i * i * 31 + below(1 << 20) * 1_009).collect();
    let noise: Vec<u64> = (0..rows).map(|_| below(1 << 62) as u64).collect();
    let prices: Vec<f64> = (0..rows).map(|_| below(1_000_000) as f64 / 100.0).collect();
    let angles: Vec<f64> = (0..rows).map(|i| (i as f64 / 77.0).sin()).collect();
    let mut random = Random(18);
    let sentences: Vec<String> = (0..rows).map(|i| words(&mut random, 7, 300, 1).join(" ") + &i.to_string()).collect();
    // More than half are distinct, but neighbours are alike.
    let distinct = words(&mut random, 3_000, 1 << 40, 2);
    let repeats: Vec<&str> = (0..5_000).map(|i| distinct[i * 3 / 5].as_str()).collect();
    let hex: Vec<String> = noise.iter().map(|n| format!("{n:016x}")).collect();
    table(vec![
        ("constant", ints(vec![7; 5_000])),
        ("nulls", Arc::new(Int32Array::from(vec![None; 5_000]))),
        ("small", ints(small)),
        ("delta", ints(delta)),
        ("runs", ints(runs)),
        ("sparse", ints(sparse)),
        ("patched", ints(patched)),
        ("radix", Arc::new(UInt32Array::from(radix))),
        ("smooth", ints(smooth)),
        ("noise", Arc::new(UInt64Array::from(noise))),
        ("prices", Arc::new(Float64Array::from(prices.clone()))),
        ("narrow", Arc::new(Float32Array::from_iter_values(prices.iter().map(|&price| price as f32)))),
        ("angles", Arc::new(Float64Array::from(angles))),
        ("sentences", Arc::new(StringArray::from(sentences))),
        ("repeats", Arc::new(StringArray::from(repeats))),
        ("hex", Arc::new(StringArray::from(hex))),
        ("decimal", array(&mut random, &arrow_schema::DataType::Decimal128(20, 2), 5_000, 0)),
    ])
}

/// Integers that repeat, alone and in runs.
fn visits() -> RecordBatch {
    let mut random = Random(20);
    let pool: Vec<i64> = (0..900).map(|_| random.next_u64().cast_signed()).collect();
    let mut below = |n: u64| random.below(n) as usize;
    let alone: Vec<i64> = (0..5_000).map(|_| pool[below(900)]).collect();
    let mut runs: Vec<i64> = Vec::new();
    while runs.len() < 5_000 {
        let value = pool[below(900)];
        runs.extend(std::iter::repeat_n(value, 2 + below(4)));
    }
    runs.truncate(5_000);
    let codes = UInt32Array::from_iter_values((0..5_000).map(|_| pool[below(200)] as u32 >> 8));
    let bits = Float64Array::from_iter_values(alone.iter().map(|&value| (value as f64).cbrt()));
    table(vec![
        ("alone", Arc::new(Int64Array::from(alone))),
        ("runs", Arc::new(Int64Array::from(runs))),
        ("codes", Arc::new(codes)),
        ("bits", Arc::new(bits)),
    ])
}

/// Columns with several dictionaries, and postings.
fn repeats() -> RecordBatch {
    let mut random = Random(19);
    let text: Vec<String> =
        (0..12_000).map(|i| format!("https://example.org/{}/{}", i / 6_000, random.below(900))).collect();
    let few = words(&mut random, 12_000, 12, 1);
    let numbers = (0..12_000).map(|_| (random.below(300) * 7_777_777_777) as i64);
    let numbers = Int64Array::from_iter_values(numbers);
    let floats = Float64Array::from_iter_values((0..12_000).map(|i| f64::from(i % 50).sqrt()));
    table(vec![
        ("text", Arc::new(StringArray::from(text))),
        ("few", Arc::new(StringArray::from(few))),
        ("numbers", Arc::new(numbers)),
        ("floats", Arc::new(floats)),
    ])
}

/// Text whose dictionary has tokens: feature 0.
fn sentences() -> RecordBatch {
    let mut random = Random(20);
    let lines: Vec<String> = (0..600).map(|_| words(&mut random, 9, 200, 1).join(" ")).collect();
    let text: Vec<&str> = (0..3_000).map(|_| lines[random.below(600) as usize].as_str()).collect();
    table(vec![("text", Arc::new(StringArray::from(text)))])
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn path(name: &str) -> PathBuf {
    Path::new(FILES).join(format!("{name}.plinth"))
}

#[test]
fn files_of_version_1_have_the_values_they_had() {
    for (name, batch, options) in files() {
        let path = path(name);
        if std::env::var_os("PLINTH_WRITE_FILES").is_some() && !path.exists() {
            std::fs::create_dir_all(FILES).unwrap();
            write(&path, &batch, options);
        }
        let file = File::open(&path).unwrap();
        assert_same(&read_all(file.scan().build().unwrap()), &expected(&batch, &file));
        file.verify(2, &|_| {}).unwrap();
        assert_eq!(file.conformance(2).unwrap(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn every_encoding_is_in_one_of_them() {
    let mut seen = BTreeSet::new();
    for (name, ..) in files() {
        let file = File::open(path(name)).unwrap();
        for column in file.report().unwrap().columns {
            seen.extend(column.encodings.into_iter().map(|encoding| encoding.name));
            if name == "dictionaries" && column.path == "text" {
                assert!(column.dictionaries > 1 && column.index_bytes > 0);
            }
        }
    }
    let wanted = [
        "all-null",
        "constant",
        "plain",
        "bit-packed",
        "delta",
        "run-length",
        "sparse",
        "patched",
        "alp",
        "pco",
        "dictionary",
        "fsst",
        "zstd",
        "narrowed",
        "mixed",
        "distinct",
    ];
    let missing: Vec<&str> = wanted.into_iter().filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {seen:?}");
    assert!(seen.iter().any(|name| name.starts_with("dictionary/")), "{seen:?}");
    // Where the features are, before a checksum and the magic bytes.
    let features = |name| {
        let bytes = std::fs::read(path(name)).unwrap();
        u32::from_le_bytes(*bytes[..bytes.len() - 16].last_chunk().unwrap())
    };
    assert_eq!((features("dictionaries"), features("dictionaries-tokens")), (0, 1));
}
