//! Measures the dictionary: random lower-case words of 4 to 10 letters, 69,700 and 975,773 of them, against the fewest bytes
//! that tell such sets apart; and as many URLs, hexadecimal digests and integers.
//!
//! `cargo run --release -p plinth-encoding --example dictionary [NAME...]`, a name being one that is printed.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "an example that measures"
)]

use std::hint::black_box;
use std::time::Instant;

use arrow_array::builder::StringViewBuilder;
use arrow_buffer::Buffer;
use plinth_core::random::Random;
use plinth_encoding::dictionary::{BlockSource, Dictionary, Interner, encode};
use plinth_encoding::{Column, Effort, Physical, Result, Values};

/// The program's.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Distinct values of the reference columns of 10 and of 140 million rows.
const FEW: usize = 69_700;
const MANY: usize = 975_773;
const ASKED: usize = 1 << 20;
const BATCH: usize = 8192;
/// Questions that are timed together.
const PART: usize = 1024;
const TEXT: Physical = Physical::Bytes { utf8: true };

fn word(random: &mut Random) -> String {
    let len = 4 + random.below(7);
    (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// So many distinct words in order.
fn words(count: usize) -> Vec<String> {
    let mut random = Random(7);
    let mut words: Vec<String> = Vec::new();
    while words.len() < count {
        words.extend((words.len()..count).map(|_| word(&mut random)).collect::<Vec<_>>());
        words.sort_unstable();
        words.dedup();
    }
    words
}

/// The sum over word lengths `L` of `log2 C(26^L, words of that length)`, in bytes.
fn floor(words: &[String]) -> f64 {
    let bits = |len: i32| {
        let (all, some) =
            (26f64.powi(len), words.iter().filter(|word| i32::try_from(word.len()) == Ok(len)).count() as f64);
        // Stirling's formula, as the binomials themselves are out of reach: n log2 n + (n - k) log2 (n / (n - k)) ...
        let entropy = |p: f64| -p * p.log2() - (1.0 - p) * (-p).ln_1p() / std::f64::consts::LN_2;
        if some == 0.0 || some == all {
            0.0
        } else {
            all * entropy(some / all) - 0.5 * (std::f64::consts::TAU * some).log2()
        }
    };
    (4..=10).map(bits).sum::<f64>() / 8.0
}

struct Blocks(Vec<Buffer>);

impl BlockSource for Blocks {
    fn block(&self, i: usize) -> Result<Buffer> {
        Ok(self.0[i].clone())
    }
}

/// Prints the best and the median of nine runs, in nanoseconds for each of `count` items.
fn time<T>(what: &str, count: usize, mut run: impl FnMut() -> T) {
    time_parts(what, &[(); 9], |()| {
        drop(black_box(run()));
        count
    });
}

/// Prints the best and the median time of the parts, in nanoseconds for each item of one. Gives the median. Parts of a
/// millisecond or less have a median that says what the code does, not what else the machine does.
fn time_parts<T>(what: &str, parts: &[T], mut run: impl FnMut(&T) -> usize) -> f64 {
    let mut times = Vec::with_capacity(parts.len());
    for part in parts {
        let start = Instant::now();
        let count = run(part);
        times.push(start.elapsed().as_nanos() as f64 / count as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!("  {what:<34} best {:>7.1}, median {median:>7.1} ns each", times[0]);
    median
}

fn text_column(values: impl IntoIterator<Item = impl AsRef<str>>) -> Column {
    let mut builder = StringViewBuilder::new();
    values.into_iter().for_each(|value| builder.append_value(value));
    let array = builder.finish();
    let (views, buffers, _) = array.into_parts();
    Column { len: views.len(), values: Values::Views { views, buffers: buffers.to_vec() }, nulls: None }
}

fn measure(name: &str, physical: Physical, column: &Column, floor: Option<f64>) {
    let mut only = std::env::args().skip(1).peekable();
    if only.peek().is_some() && !only.any(|only| name.contains(&only)) {
        return;
    }
    let mut interner = Interner::new(physical).unwrap();
    interner.intern(column, &mut Vec::new()).unwrap();
    let sorted = interner.sort();
    let len = sorted.len();
    println!("{name}: {len} distinct, {} bytes", sorted.key_bytes());
    let encoded = encode(physical, &sorted, Effort::Balanced).unwrap();
    time("encode a value", len, || encode(physical, &sorted, Effort::Balanced).unwrap());
    let bytes = encoded.blocks.iter().map(Vec::len).sum::<usize>() + encoded.index.len();
    println!(
        "  form {}, {bytes} bytes, {} of them index; {:.3} a value",
        encoded.index[0],
        encoded.index.len(),
        bytes as f64 / len as f64
    );
    if let Some(floor) = floor {
        println!("  {:.3} of the floor of {floor:.0} bytes", bytes as f64 / floor);
    }
    let blocks = || Box::new(Blocks(encoded.blocks.iter().map(|block| Buffer::from(block.as_slice())).collect()));
    let open = || Dictionary::open(physical, &encoded.index, blocks()).unwrap();
    let dictionary = open();

    let mut random = Random(11);
    let asked: Vec<u32> = (0..ASKED).map(|_| random.below(len as u64) as u32).collect();
    // End to end in the order of asking, so that the questions themselves are not what misses the cache.
    let asked_bytes: Vec<u8> = asked.iter().flat_map(|&code| sorted.key(code as usize)).copied().collect();
    let text = asked_bytes.len();
    let mut rest = asked_bytes.as_slice();
    let keys: Vec<&[u8]> =
        asked.iter().map(|&code| rest.split_off(..sorted.key(code as usize).len()).unwrap()).collect();
    time("open, and load all blocks", len, || {
        let dictionary = open();
        (0..len as u32).step_by(4096).for_each(|code| dictionary.get(code, &mut Vec::new()).unwrap());
    });
    (0..len as u32).step_by(4096).for_each(|code| dictionary.get(code, &mut Vec::new()).unwrap());
    println!("  {} bytes held with all blocks", dictionary.memory());
    let parts: Vec<(&[&[u8]], &[u32])> = keys.chunks(PART).zip(asked.chunks(PART)).collect();
    time_parts("value -> code", &parts, |(keys, codes)| {
        for (key, &code) in keys.iter().zip(*codes) {
            assert_eq!(dictionary.find(key).unwrap(), Some(code));
        }
        keys.len()
    });
    time_parts("prefix, half the key -> codes", &parts, |(keys, codes)| {
        for (key, code) in keys.iter().zip(*codes) {
            assert!(dictionary.prefix(&key[..key.len() / 2]).unwrap().contains(code));
        }
        keys.len()
    });
    let mut some: Vec<&[u8]> = keys[..keys.len() / 16].to_vec();
    some.sort_unstable();
    let ascending: Vec<&[&[u8]]> = some.chunks(PART).collect();
    time_parts("ascending values -> codes", &ascending, |keys| dictionary.find_all(*keys).unwrap().len());
    let mut key = Vec::new();
    time_parts("code -> value", &parts, |(keys, codes)| {
        for (expected, &code) in keys.iter().zip(*codes) {
            dictionary.get(code, &mut key).unwrap();
            assert_eq!(&key, expected);
        }
        keys.len()
    });
    let all: Vec<u32> = (0..len as u32).collect();
    time("gather all in order, from blocks", len, || {
        all.chunks(BATCH).for_each(|codes| drop(black_box(dictionary.gather(codes).unwrap())));
    });
    time("decode all", len, || open().values().map(drop).unwrap());
    dictionary.values().unwrap();
    println!("  {} bytes held with all values decoded", dictionary.memory());
    let repeated = asked.repeat(4);
    let batches: Vec<&[u32]> = repeated.chunks(BATCH).collect();
    let each = time_parts("codes -> values, 8,192 at a time", &batches, |codes| {
        black_box(dictionary.gather(codes).unwrap());
        codes.len()
    });
    println!("  which is {:.2} GB/s of values", text as f64 / asked.len() as f64 / each);
}

fn main() {
    for count in [FEW, MANY] {
        let words = words(count);
        measure(&format!("{count} words"), TEXT, &text_column(&words), Some(floor(&words)));
    }
    let words = words(MANY);
    let urls = words
        .iter()
        .enumerate()
        .map(|(i, word)| format!("https://www.example.{}/{}/news/{word}?id={}", ["com", "org"][i % 2], i % 40, i / 3));
    measure("URLs", TEXT, &text_column(urls), None);
    let mut random = Random(3);
    let digests = (0..MANY).map(|_| format!("{:016x}{:016x}", random.below(u64::MAX), random.below(u64::MAX)));
    measure("digests", TEXT, &text_column(digests), None);
    let numbers = (0..MANY as u64).flat_map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8).to_le_bytes());
    let numbers = Values::Fixed(Buffer::from(numbers.collect::<Vec<u8>>()));
    measure(
        "integers",
        Physical::Int { width: 8, signed: true },
        &Column { len: MANY, values: numbers, nulls: None },
        None,
    );
}
