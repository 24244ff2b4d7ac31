//! Measures postings: 975,773 random lower-case words of 4 to 10 letters over so many rows, indexed and asked.
//!
//!     cargo run --release -p plinth-format --example lookup -- [ROWS] [DISTINCT] [FOLDER] [compact]
//!
//! Prints how large the lists are beside the least they can be, how long building them took, and what questions cost.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "an example that measures"
)]

use std::collections::HashSet;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use plinth_core::random::Random;
use plinth_encoding::Effort;
use plinth_format::lookup::{Dictionary, Matches};
use plinth_format::{Access, File, Writer, WriterOptions};

fn word(random: &mut Random) -> String {
    let len = 4 + random.below(7);
    (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// Nanoseconds that this thread has worked, if the system says so; what others did meanwhile does not count.
fn spent() -> u64 {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let worked = schedstat.and_then(|text| text.split_whitespace().next()?.parse().ok());
    worked.unwrap_or_else(|| START.elapsed().as_nanos() as u64)
}

/// The quickest and the median of some runs of `run`, in nanoseconds for each of `count`. What is short is done so often that the
/// clock of a thread's work, which goes on every few milliseconds, tells it.
fn time(what: &str, count: u64, mut run: impl FnMut() -> u64) {
    let once = Instant::now();
    black_box(run());
    let often = (100_000_000 / once.elapsed().as_nanos().max(1) as u64).max(1);
    let mut times: Vec<f64> = (0..7)
        .map(|_| {
            let start = spent();
            (0..often).for_each(|_| {
                black_box(run());
            });
            (spent() - start) as f64 / (often * count) as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{what:<58} {:>10.1} ns, median {:>10.1}", times[0], times[times.len() / 2]);
}

fn write(path: &std::path::Path, words: &[String], rows: u64, index: bool, effort: Effort) -> f64 {
    let mut random = Random(3);
    let batch = |rows: u64, random: &mut Random| {
        let mut builder = StringViewBuilder::new();
        (0..rows).for_each(|_| builder.append_value(&words[random.below(words.len() as u64) as usize]));
        RecordBatch::try_from_iter([("w", Arc::new(builder.finish()) as ArrayRef)]).unwrap()
    };
    let first = batch(0, &mut random);
    let index = if index { vec!["w".to_owned()] } else { Vec::new() };
    let options = WriterOptions { replace: true, index, effort, ..WriterOptions::default() };
    let mut writer = Writer::create(path, &first.schema(), options).unwrap();
    let mut left = rows;
    while left > 0 {
        let here = left.min(1 << 17);
        writer.write(&batch(here, &mut random)).unwrap();
        left -= here;
    }
    let start = Instant::now();
    writer.finish().unwrap();
    start.elapsed().as_secs_f64()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (rows, distinct) = (number(10_000_000), number(975_773));
    let folder = arguments.next().unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let effort = if arguments.next().is_some() { Effort::Compact } else { Effort::default() };
    let path = std::path::Path::new(&folder).join("lookup.plinth");
    let mut random = Random(1);
    let mut words = HashSet::new();
    while (words.len() as u64) < distinct {
        words.insert(word(&mut random));
    }
    let mut words: Vec<String> = words.into_iter().collect();
    words.sort();

    let without = write(&path, &words, rows, false, effort);
    let with = write(&path, &words, rows, true, effort);
    println!("finishing takes {with:.2} s with postings, {without:.2} s without");
    let file = File::open(&path).unwrap();
    let column = file.column("w").unwrap();
    let index = column.index().unwrap().unwrap();
    let dictionary = column.dictionary().unwrap().access(Access::Postings);
    let entropy = (dictionary.len() as f64).log2();
    let floor = rows as f64 * (entropy + std::f64::consts::LOG2_E) / 8.0;
    println!(
        "{rows} rows, {} distinct; postings {} bytes, {:.2} bits a row: {:.4} of n (H + log2 e)",
        dictionary.len(),
        index.bytes,
        index.bytes as f64 * 8.0 / rows as f64,
        index.bytes as f64 / floor
    );

    let asked: Vec<&str> = (0..200_000).map(|_| words[random.below(words.len() as u64) as usize].as_str()).collect();
    let exact = |dictionary: &Dictionary| {
        asked
            .iter()
            .map(|word| dictionary.equals(*word).unwrap().rows().unwrap().into_vec().unwrap().len() as u64)
            .sum()
    };
    println!("{:.1} rows a value", exact(&dictionary) as f64 / asked.len() as f64);
    let count = asked.len() as u64;
    time("value to code", count, || asked.iter().map(|word| dictionary.equals(*word).unwrap().codes().len()).sum());
    time("value to rows, warm", count, || exact(&dictionary));
    for letters in 1..=4 {
        let prefixes: Vec<&str> = asked.iter().take(20).map(|word| &word[..letters]).collect();
        let matches = |access| -> Vec<Matches> {
            let dictionary = dictionary.clone().access(access);
            prefixes.iter().map(|prefix| dictionary.prefix(prefix).unwrap()).collect()
        };
        let found: u64 = matches(Access::Postings).iter().map(|matches| matches.count().unwrap()).sum();
        let chosen =
            matches(Access::Auto).iter().map(|matches| format!("{:?}", matches.choose().unwrap())).next().unwrap();
        println!("prefixes of {letters} letters: {} rows each; auto chooses {chosen}", found / 20);
        for access in [Access::Postings, Access::Scan] {
            let matches = matches(access);
            time(&format!("  prefix to rows by {access:?}"), 20, || {
                matches.iter().map(|matches| matches.rows().unwrap().into_vec().unwrap().len() as u64).sum()
            });
        }
        let matches = matches(Access::Postings);
        time("  count", 20, || matches.iter().map(|matches| matches.count().unwrap()).sum());
    }
    let dense = dictionary.clone().access(Access::Scan);
    time("value to rows by scan", 5, || {
        asked
            .iter()
            .take(5)
            .map(|word| dense.equals(*word).unwrap().rows().unwrap().into_vec().unwrap().len() as u64)
            .sum()
    });
    std::fs::remove_file(&path).unwrap();
}
