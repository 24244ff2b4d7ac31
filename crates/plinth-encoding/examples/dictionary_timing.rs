//! Times the dictionary: 975,773 random lower-case words of 4 to 10 letters, and as many URLs and integers.
//!
//! `cargo run --release -p plinth-encoding --example dictionary_timing [words|URLs|integers]`
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "an example that measures"
)]

use std::collections::HashSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow_array::builder::StringViewBuilder;
use arrow_buffer::Buffer;
use plinth_encoding::dictionary::{BlockSource, Dictionary, Interner, encode};
use plinth_encoding::{Column, Physical, Result, Values};

const VALUES: usize = 975_773;
const ROWS: usize = 4_000_000;
const BATCH: usize = 65_536;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 ^ (self.0 >> 29)).wrapping_mul(u128::from(bound))) >> 64) as u64
    }

    fn word(&mut self) -> String {
        let len = 4 + self.below(7);
        (0..len).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }
}

struct Blocks(Vec<Buffer>);

impl BlockSource for Blocks {
    fn block(&self, i: usize) -> Result<Buffer> {
        Ok(self.0[i].clone())
    }
}

/// Prints the best of five runs, in nanoseconds for each of `count` items.
fn time<T>(what: &str, count: usize, mut run: impl FnMut() -> T) -> T {
    let mut best = Duration::MAX;
    let mut last = None;
    for _ in 0..5 {
        drop(last.take());
        let start = Instant::now();
        last = Some(run());
        best = best.min(start.elapsed());
    }
    println!(
        "  {what:<34} {:>9.1} ns each, {:>8.1} ms",
        best.as_nanos() as f64 / count as f64,
        best.as_secs_f64() * 1e3
    );
    last.unwrap()
}

fn text_column(values: impl IntoIterator<Item = impl AsRef<str>>) -> Column {
    let mut builder = StringViewBuilder::new();
    values.into_iter().for_each(|value| builder.append_value(value));
    let array = builder.finish();
    let (views, buffers, _) = array.into_parts();
    Column { len: views.len(), values: Values::Views { views, buffers: buffers.to_vec() }, nulls: None }
}

fn measure(name: &str, physical: Physical, columns: &[Column], few: &[Column]) {
    if std::env::args().nth(1).is_some_and(|only| only != name) {
        return;
    }
    println!("{name}");
    let intern = |what: &str, columns: &[Column]| {
        let rows: usize = columns.iter().map(|column| column.len).sum();
        time(what, rows, || {
            let (mut interner, mut codes) = (Interner::new(physical).unwrap(), Vec::with_capacity(rows));
            columns.iter().for_each(|column| interner.intern(column, &mut codes).unwrap());
            interner
        })
    };
    intern("intern a row, 5,000 distinct", few);
    let interner = intern("intern a row, all distinct values", columns);
    println!("  {} distinct, {} bytes of keys, {} held", interner.len(), interner.key_bytes(), interner.memory());
    let len = interner.len();
    let start = Instant::now();
    let sorted = interner.sort();
    println!("  sort a value, once {:.1} ns", start.elapsed().as_nanos() as f64 / len as f64);
    let encoded = time("encode a value", len, || encode(physical, &sorted).unwrap());
    let bytes = encoded.blocks.iter().map(Vec::len).sum::<usize>() + encoded.index.len();
    println!(
        "  {bytes} bytes in {} blocks and an index of {}; form {}; {:.2} bytes a value",
        encoded.blocks.len(),
        encoded.index.len(),
        encoded.index[0],
        bytes as f64 / len as f64
    );
    let blocks = || Box::new(Blocks(encoded.blocks.iter().map(|block| Buffer::from(block.as_slice())).collect()));
    let dictionary = Dictionary::open(physical, &encoded.index, blocks()).unwrap();

    let mut random = Random(11);
    let asked: Vec<u32> = (0..1_000_000).map(|_| random.below(len as u64) as u32).collect();
    // End to end in the order of asking, so that the questions themselves are not what misses the cache.
    let asked_bytes: Vec<u8> = asked.iter().flat_map(|&code| sorted.key(code as usize)).copied().collect();
    let mut rest = asked_bytes.as_slice();
    let keys: Vec<&[u8]> =
        asked.iter().map(|&code| rest.split_off(..sorted.key(code as usize).len()).unwrap()).collect();
    dictionary.prefix(&[]).unwrap();
    asked.iter().for_each(|&code| dictionary.get(code, &mut Vec::new()).unwrap());
    time("find", keys.len(), || {
        for (key, &code) in keys.iter().zip(&asked) {
            assert_eq!(dictionary.find(key).unwrap(), Some(code));
        }
    });
    time("prefix, half the key", keys.len(), || {
        keys.iter().map(|key| dictionary.prefix(&key[..key.len() / 2]).unwrap().len()).sum::<usize>()
    });
    let mut key = Vec::new();
    time("get", asked.len(), || {
        for (&code, expected) in asked.iter().zip(&keys) {
            dictionary.get(code, &mut key).unwrap();
            assert_eq!(&key, expected);
        }
    });
    time("gather 8,192 codes, from blocks", asked.len(), || {
        asked.chunks(8192).for_each(|codes| drop(black_box(dictionary.gather(codes).unwrap())));
    });
    let held = dictionary.memory();
    time("decode all", len, || {
        let dictionary = Dictionary::open(physical, &encoded.index, blocks()).unwrap();
        dictionary.values().map(drop).unwrap();
    });
    dictionary.values().unwrap();
    println!("  {held} bytes held before, {} after", dictionary.memory());
    let repeated: Vec<u32> = asked.repeat(4);
    time("gather 8,192 codes, decoded", repeated.len(), || {
        repeated.chunks(8192).for_each(|codes| drop(black_box(dictionary.gather(codes).unwrap())));
    });
}

fn main() {
    let mut random = Random(7);
    let mut words = HashSet::new();
    while words.len() < VALUES {
        words.insert(random.word());
    }
    let mut words: Vec<String> = words.into_iter().collect();
    words.sort_unstable();
    let picks: Vec<usize> = (0..ROWS).map(|_| random.below(VALUES as u64) as usize).collect();
    let text = Physical::Bytes { utf8: true };

    let batches = |pick: &dyn Fn(usize) -> usize, rows: usize, values: &[String]| -> Vec<Column> {
        picks[..rows].chunks(BATCH).map(|part| text_column(part.iter().map(|&at| &values[pick(at)]))).collect()
    };
    measure("words", text, &batches(&|at| at, ROWS, &words), &batches(&|at| at % 5000, ROWS, &words));

    let urls: Vec<String> = words
        .iter()
        .enumerate()
        .map(|(i, word)| format!("https://www.example.{}/{}/news/{word}?id={}", ["com", "org"][i % 2], i % 40, i / 3))
        .collect();
    measure("URLs", text, &batches(&|at| at, ROWS / 2, &urls), &batches(&|at| at % 5000, ROWS / 2, &urls));

    let numbers = |bound: usize| -> Vec<Column> {
        let column = |part: &[usize]| {
            let spread = part.iter().map(|&at| ((at % bound) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8);
            let bytes: Vec<u8> = spread.flat_map(u64::to_le_bytes).collect();
            Column { len: part.len(), values: Values::Fixed(Buffer::from(bytes)), nulls: None }
        };
        picks.chunks(BATCH).map(column).collect()
    };
    measure("integers", Physical::Int { width: 8, signed: true }, &numbers(VALUES), &numbers(5000));
}
