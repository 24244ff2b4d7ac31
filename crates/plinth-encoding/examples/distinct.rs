//! Sizes, and how fast rows are decoded and compared, of integers that repeat: with the encodings that a block chooses, with
//! Zstandard over their bytes, and with those of `Effort::Fast` (packed or runs). One core, blocks in its cache.
//!
//! `cargo run --release -p plinth-encoding --example distinct [FILE...]`: the files hold little-endian integers, as the
//! extension says (`i16`, `i32`, `i64`, `u32`, ...); without any, made-up visits are taken.
//!
//! Each figure is the median of rounds in which all take turns. GB are of values in memory.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "an example that measures")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use arrow_buffer::Buffer;
use plinth_core::random::Random;
use plinth_encoding::{Block, Column, Effort, EncodeOptions, Physical, ValueSet, Values, encode, evaluate_column};

/// Rows of a block, and blocks that are looked at, evenly spread.
const ROWS: usize = 8192;
const BLOCKS: usize = 24;
const ROUNDS: usize = 15;

/// Integers as a column has them.
struct Sample {
    name: String,
    physical: Physical,
    blocks: Vec<Column>,
}

impl Sample {
    fn new(name: &str, physical: Physical, bytes: &[u8]) -> Self {
        let size = ROWS * physical.fixed_width().unwrap();
        let blocks: Vec<&[u8]> = bytes.chunks_exact(size).collect();
        let step = blocks.len().div_ceil(BLOCKS);
        let column =
            |bytes: &&[u8]| Column { len: ROWS, values: Values::Fixed(Buffer::from_slice_ref(*bytes)), nulls: None };
        Self { name: name.to_owned(), physical, blocks: blocks.iter().step_by(step).map(column).collect() }
    }

    /// A value of the middle of a block, and one beside it that is not there.
    fn searched(&self, block: &Column) -> [ValueSet; 2] {
        let Values::Fixed(bytes) = &block.values else { unreachable!() };
        let width = self.physical.fixed_width().unwrap();
        let signed = matches!(self.physical, Physical::Int { signed: true, .. });
        let value = |bytes: &[u8]| {
            let mut wide = [if signed && bytes[width - 1] >= 0x80 { 0xff } else { 0 }; 16];
            wide[..width].copy_from_slice(bytes);
            i128::from_le_bytes(wide)
        };
        let all: std::collections::BTreeSet<i128> = bytes.chunks_exact(width).map(value).collect();
        let there = *all.iter().nth(all.len() / 2).unwrap();
        let absent = (there..).find(|value| !all.contains(value)).unwrap();
        [there, absent].map(|value| ValueSet::IntRange { lo: value, hi: value })
    }
}

/// Bytes in so few bytes a value as the largest less the smallest needs, compressed as a block's integers are.
fn narrowed(bytes: &[u8], width: usize, signed: bool) -> (usize, Vec<u8>) {
    let flip = if signed { 1_u64 << (8 * width - 1) } else { 0 };
    let wide = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(bytes);
        u64::from_le_bytes(wide) ^ flip
    };
    let least = bytes.chunks_exact(width).map(wide).min().unwrap();
    let span = bytes.chunks_exact(width).map(wide).max().unwrap() - least;
    let narrow = [1, 2, 4].into_iter().find(|&narrow| span >> (8 * narrow) == 0).unwrap_or(8);
    let values = bytes.chunks_exact(width).map(|bytes| wide(bytes) - least);
    (narrow, values.flat_map(|value| value.to_le_bytes()[..narrow].to_vec()).collect())
}

/// What zstd would be decoded to: every value in its own width.
fn widened<const N: usize, const W: usize>(bytes: &[u8]) -> Vec<[u8; W]> {
    let widen = |bytes: &[u8; N]| {
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(bytes);
        *u64::from_le_bytes(wide).wrapping_add(12_345).to_le_bytes().first_chunk().unwrap()
    };
    bytes.as_chunks::<N>().0.iter().map(widen).collect()
}

fn decompress(compressed: &[u8], narrow: usize, width: usize) {
    let bytes = zstd::bulk::decompress(compressed, ROWS * narrow).unwrap();
    match (narrow, width) {
        (1, 2) => drop(black_box(widened::<1, 2>(&bytes))),
        (1, 4) => drop(black_box(widened::<1, 4>(&bytes))),
        (2, 4) => drop(black_box(widened::<2, 4>(&bytes))),
        (1, 8) => drop(black_box(widened::<1, 8>(&bytes))),
        (2, 8) => drop(black_box(widened::<2, 8>(&bytes))),
        (4, 8) => drop(black_box(widened::<4, 8>(&bytes))),
        (8, 8) => drop(black_box(widened::<8, 8>(&bytes))),
        (4, 4) => drop(black_box(widened::<4, 4>(&bytes))),
        _ => drop(black_box(widened::<2, 2>(&bytes))),
    }
}

/// The median seconds of each task; they take turns.
fn time(tasks: &mut [Box<dyn FnMut() + '_>]) -> Vec<f64> {
    let mut times = vec![vec![]; tasks.len()];
    for _ in 0..ROUNDS {
        for (task, times) in tasks.iter_mut().zip(&mut times) {
            let start = Instant::now();
            task();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.iter_mut().map(|times| *times.select_nth_unstable_by(ROUNDS / 2, f64::total_cmp).1).collect()
}

fn measure(sample: &Sample) {
    let width = sample.physical.fixed_width().unwrap();
    let signed = matches!(sample.physical, Physical::Int { signed: true, .. });
    let (mut sizes, mut seconds, mut chosen) = ([0; 3], [0.0; 10], BTreeMap::<String, usize>::new());
    for column in &sample.blocks {
        let put = |effort| {
            let mut out = vec![];
            let encoded = encode(sample.physical, column, &EncodeOptions { effort }, &mut out).unwrap();
            (Buffer::from_vec(out), encoded.encoding)
        };
        let ((bytes, encoding), (fast, _)) = (put(Effort::Balanced), put(Effort::Fast));
        let open = |bytes: &Buffer| Block::open(sample.physical, bytes, ROWS).unwrap();
        let described = open(&bytes).describe();
        let inner = ["distinct", "zstd"].into_iter().find(|name| described.contains(name)).unwrap_or("");
        *chosen.entry(format!("{} {inner}", encoding.name())).or_default() += 1;
        let Values::Fixed(raw) = &column.values else { unreachable!() };
        let (narrow, narrowed) = narrowed(raw, width, signed);
        let compressed = zstd::bulk::compress(&narrowed, 3).unwrap();
        for (size, more) in sizes.iter_mut().zip([bytes.len(), compressed.len(), fast.len()]) {
            *size += more;
        }
        let [there, absent] = &sample.searched(column);
        let evaluate = |bytes: &Buffer, set: &ValueSet| {
            let block = open(bytes);
            match block.evaluate(set).unwrap() {
                Some(mask) => mask,
                None => evaluate_column(sample.physical, &block.decode(None).unwrap(), set).unwrap(),
            }
        };
        let after = |set: &ValueSet| {
            decompress(&compressed, narrow, width);
            black_box(evaluate_column(sample.physical, column, set).unwrap());
        };
        let mut tasks: Vec<Box<dyn FnMut() + '_>> = vec![
            Box::new(|| drop(black_box(open(&bytes).decode(None).unwrap()))),
            Box::new(|| decompress(&compressed, narrow, width)),
            Box::new(|| drop(black_box(open(&fast).decode(None).unwrap()))),
            Box::new(|| drop(black_box(evaluate(&bytes, there)))),
            Box::new(|| after(there)),
            Box::new(|| drop(black_box(evaluate(&fast, there)))),
            Box::new(|| drop(black_box(evaluate(&bytes, absent)))),
            Box::new(|| after(absent)),
            Box::new(|| drop(black_box(put(Effort::Balanced)))),
            Box::new(|| drop(black_box(zstd::bulk::compress(&narrowed, 3).unwrap()))),
        ];
        for (seconds, more) in seconds.iter_mut().zip(time(&mut tasks)) {
            *seconds += more;
        }
    }
    let count = sample.blocks.len();
    let gigabytes = (count * ROWS * width) as f64 / 1e9;
    let each = |seconds: f64| seconds * 1e6 / count as f64;
    println!(
        "{:<22} {:>6} {:>6} {:>6} | {:>5.2} {:>5.2} {:>5.2} {:>5.1}x | {:>5.1} {:>6.1} {:>5.1} {:>5.1}x {:>5.1}x | {:>5.0} {:>5.0} | {:?}",
        sample.name,
        sizes[0] / count,
        sizes[1] / count,
        sizes[2] / count,
        gigabytes / seconds[0],
        gigabytes / seconds[1],
        gigabytes / seconds[2],
        seconds[1] / seconds[0],
        each(seconds[3]),
        each(seconds[4]),
        each(seconds[5]),
        seconds[4] / seconds[3],
        seconds[7] / seconds[6],
        each(seconds[8]),
        each(seconds[9]),
        chosen,
    );
}

/// Visitors that come back within a while, each with a few hits in a row.
fn visits(wide: bool) -> Vec<u8> {
    let mut random = Random(1);
    let mut recent: Vec<u64> = (0..2000).map(|_| random.next_u64()).collect();
    let mut bytes = vec![];
    while bytes.len() < 64 * ROWS * if wide { 8 } else { 4 } {
        let at = random.index(2000);
        if random.below(3) == 0 {
            recent[at] = random.next_u64();
        }
        let value = if wide { recent[at] } else { recent[at] % 800_000 };
        for _ in 0..=random.below(3) {
            bytes.extend_from_slice(&value.to_le_bytes()[..if wide { 8 } else { 4 }]);
        }
    }
    bytes
}

fn main() {
    println!(
        "{:<22} {:^20} | {:^24} | {:^36} | {:^11} |",
        "", "bytes a block", "decode, GB/s", "an equality, us a block", "encode, us"
    );
    println!(
        "{:<22} {:>6} {:>6} {:>6} | {:>5} {:>5} {:>5} {:>6} | {:>5} {:>6} {:>5} {:>6} {:>6} | {:>5} {:>5} | blocks",
        "",
        "chosen",
        "zstd",
        "fast",
        "chos",
        "zstd",
        "fast",
        "ratio",
        "chos",
        "zstd",
        "fast",
        "ratio",
        "absent",
        "chos",
        "zstd"
    );
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        measure(&Sample::new("visitors, i64", Physical::Int { width: 8, signed: true }, &visits(true)));
        measure(&Sample::new("visitors, codes", Physical::CODES, &visits(false)));
    }
    for file in files {
        let path = std::path::Path::new(&file);
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        let (sign, bits) = kind.split_at(1);
        let physical = Physical::Int { width: bits.parse::<u8>().unwrap() / 8, signed: sign == "i" };
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        measure(&Sample::new(name, physical, &std::fs::read(path).unwrap()));
    }
}
