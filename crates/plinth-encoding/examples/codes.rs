//! Nanoseconds a row of unpacking and asking dictionary codes, packed with whole bits and with mixed radices, in cache and
//! out of it, on one core: `cargo run --release -p plinth-encoding --example codes [ROWS]`.
//!
//! Each figure is the best of several rounds, and the median behind it tells how quiet the machine was.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap
)]

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use arrow_buffer::{BooleanBuffer, Buffer};
use plinth_core::random::Random;
use plinth_core::simd::Level;
use plinth_encoding::bitpack::mixed::{Mixed, Radix};
use plinth_encoding::bitpack::{VECTOR, bits_for, compare, pack, unpack, vector_len};
use plinth_encoding::{Block, Column, EncodeOptions, IntSet, Physical, ValueSet, Values, encode};

/// Rows of a block.
const BLOCK: usize = 8192;
/// Rows that stay in a core's own cache.
const FEW: usize = 8 * BLOCK;

/// Rows timed at once: short enough to fall between two interruptions, by this program's neighbours or its own memory.
const CHUNK: usize = 64 * BLOCK;

/// Something to time: done to a range of rows.
type Task<'a> = Box<dyn FnMut(Range<usize>) + 'a>;

/// The best and the median of some rounds of each task, in nanoseconds a row. Tasks take turns, and each chunk is timed by
/// itself: the best time of each chunk is what counts.
fn time(rows: usize, mut tasks: Vec<Task<'_>>) -> Vec<(f64, f64)> {
    let repeat = (CHUNK / rows).max(1);
    let chunks: Vec<_> = (0..rows).step_by(CHUNK).map(|from| from..(from + CHUNK).min(rows)).collect();
    let mut times = vec![vec![vec![]; chunks.len()]; tasks.len()];
    for _ in 0..if rows > CHUNK { 15 } else { 60 } {
        for (task, times) in tasks.iter_mut().zip(&mut times) {
            for (chunk, times) in chunks.iter().zip(times) {
                let start = Instant::now();
                (0..repeat).for_each(|_| task(chunk.clone()));
                times.push(start.elapsed().as_nanos() as f64 / (repeat * rows) as f64);
            }
        }
    }
    let place = |chunks: &mut Vec<Vec<f64>>, of: fn(usize) -> usize| {
        let nth = |times: &mut Vec<f64>| {
            let at = of(times.len());
            *times.select_nth_unstable_by(at, f64::total_cmp).1
        };
        chunks.iter_mut().map(nth).sum()
    };
    times.iter_mut().map(|chunks| (place(chunks, |_| 0), place(chunks, |len| len / 2))).collect()
}

/// What it takes to read bytes at all, as a bound to compare with.
fn touch(bytes: &[u8]) {
    black_box(bytes.as_chunks::<8>().0.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word))));
}

fn show(times: &[(f64, f64)]) {
    times.iter().for_each(|(best, median)| print!(" {best:>6.3} ({median:.3})"));
    println!();
}

fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut random = Random(seed);
    move || random.next_u64()
}

/// Codes of so many values, each as likely.
fn codes(values: u64, rows: usize) -> Vec<u64> {
    let mut next = noise(values);
    (0..rows).map(|_| next() % values).collect()
}

fn header(what: &str, columns: &[&str]) {
    print!("\n{what:<44}");
    columns.iter().for_each(|column| print!(" {column:>14}"));
    println!();
}

/// The kernels alone, vector after vector.
fn kernels(values: u64, rows: usize) {
    let codes = codes(values, rows);
    let most = values as u32 - 1;
    let bits = bits_for(most.into());
    // The code searched for occurs; the narrow interval is what a prefix of two letters of 26 gives, the wide one a third.
    let searched = codes[rows / 2];
    let intervals = [(searched, 0), (most as u64 / 3, most as u64 / 676), (most as u64 / 3, most as u64 / 3)];
    let mut out = [0_u32; VECTOR];
    let mut packed = vec![];
    codes.chunks(VECTOR).for_each(|vector| pack(vector, 0, bits, &mut packed));
    let vectors =
        |rows: Range<usize>| packed.chunks_exact(vector_len(bits)).take(rows.end / VECTOR).skip(rows.start / VECTOR);
    for kernel in [Level::Scalar, Level::best()] {
        print!("{:<44}", format!("{values} values, {rows} rows, {bits} bits, {kernel:?}"));
        let mut tasks: Vec<Task<'_>> = vec![
            Box::new(|rows| vectors(rows).for_each(touch)),
            Box::new(|rows| {
                vectors(rows).for_each(|bytes| {
                    unpack(kernel, bytes, bits, 0, &mut out);
                    black_box(&mut out);
                });
            }),
        ];
        tasks.extend(intervals.map(|(lo, span)| -> Task<'_> {
            Box::new(move |rows| {
                vectors(rows).for_each(|bytes| {
                    black_box(compare(kernel, bytes, bits, lo, span));
                })
            })
        }));
        show(&time(rows, tasks));
    }
    let Some(radix) = Radix::best(most).filter(|radix| radix.bits() * 1.01 < f64::from(bits)) else { return };
    let (mut lows, mut fractions) = (vec![], vec![]);
    codes.chunks(VECTOR).for_each(|vector| radix.pack(vector, 0, &mut lows, &mut fractions));
    let vectors = |rows: Range<usize>| {
        let fractions = fractions.chunks_exact(radix.fractions_len(VECTOR));
        let vectors = lows.chunks_exact(vector_len(radix.low_bits())).zip(fractions);
        vectors
            .take(rows.end / VECTOR)
            .skip(rows.start / VECTOR)
            .map(|(lows, fractions)| Mixed::new(radix, VECTOR, lows, fractions).unwrap())
    };
    for kernel in [Level::Scalar, Level::best()] {
        print!("{:<44}", format!("{values} values, {rows} rows, {} bits, {kernel:?}", radix.bits()));
        let mut tasks: Vec<Task<'_>> = vec![
            Box::new(|rows| {
                touch(
                    &lows[rows.start / VECTOR * vector_len(radix.low_bits())..]
                        [..rows.len() / VECTOR * vector_len(radix.low_bits())],
                );
                touch(&fractions[radix.fractions_len(rows.start)..radix.fractions_len(rows.end)]);
            }),
            Box::new(|rows| {
                vectors(rows).for_each(|vector| {
                    vector.unpack(kernel, 0, &mut out);
                    black_box(&mut out);
                });
            }),
        ];
        tasks.extend(intervals.map(|(lo, span)| -> Task<'_> {
            let (lo, span) = (lo as u32, span as u32);
            Box::new(move |rows| {
                vectors(rows).for_each(|vector| {
                    black_box(vector.compare(kernel, lo, span));
                })
            })
        }));
        show(&time(rows, tasks));
    }
}

/// Blocks as a scan has them: opened, asked or decoded, and dropped.
fn blocks(values: u64, rows: usize) {
    let codes = codes(values, rows);
    let mut next = noise(1);
    let blocks: Vec<Buffer> = codes
        .chunks(BLOCK)
        .map(|codes| {
            let codes: Vec<u32> = codes.iter().map(|&code| code as u32).collect();
            let column = Column { len: codes.len(), values: Values::Fixed(Buffer::from_vec(codes)), nulls: None };
            let mut out = vec![];
            encode(Physical::CODES, &column, &EncodeOptions::default(), &mut out).unwrap();
            Buffer::from(out.as_slice())
        })
        .collect();
    let open = |block: &Buffer| Block::open(Physical::CODES, block, BLOCK).unwrap();
    let searched = i128::from(codes[rows / 2]);
    let (third, narrow) = (i128::from(values / 3), i128::from(values / 676));
    let mut few: Vec<i128> = (0..5).map(|_| i128::from(next() % values)).collect();
    few.sort_unstable();
    let set: BooleanBuffer = (0..values).map(|_| next().is_multiple_of(50)).collect();
    let tests = [
        ValueSet::IntRange { lo: searched, hi: searched },
        ValueSet::IntRange { lo: third, hi: third + narrow },
        ValueSet::IntRange { lo: third, hi: 2 * third },
        ValueSet::IntSet(Arc::new(IntSet::Listed(few.into()))),
        ValueSet::IntSet(Arc::new(IntSet::Bits(set))),
    ];
    print!("{:<44}", format!("{values} values, {rows} rows, {}", open(&blocks[0]).describe()));
    let some = |rows: Range<usize>| &blocks[rows.start / BLOCK..rows.end / BLOCK];
    let mut tasks: Vec<Task<'_>> = vec![
        Box::new(|rows| some(rows).iter().for_each(|block| touch(block))),
        Box::new(|rows| some(rows).iter().for_each(|block| drop(black_box(open(block).decode(None))))),
    ];
    tasks.extend(tests.iter().map(|test| -> Task<'_> {
        Box::new(move |rows| {
            some(rows).iter().for_each(|block| drop(black_box(open(block).evaluate(test).unwrap().unwrap())));
        })
    }));
    show(&time(rows, tasks));
}

fn main() {
    let many = std::env::args().nth(1).map_or(16 << 20, |rows| rows.parse().unwrap());
    let many = usize::next_multiple_of(many, BLOCK);
    header("kernels, ns a row: best (median)", &["read", "unpack", "equal", "1/676", "1/3"]);
    for rows in [FEW, many] {
        [1 << 17, 69_700, 975_773].into_iter().for_each(|values| kernels(values, rows));
    }
    header("blocks, ns a row: best (median)", &["read", "decode", "equal", "1/676", "1/3", "any of 5", "set of 1/50"]);
    for rows in [FEW, many] {
        [1 << 17, 69_700, 975_773, 3000, 200].into_iter().for_each(|values| blocks(values, rows));
    }
}
