//! Nanoseconds a value of the bit-packing kernels and of whole blocks, in cache, on one core:
//! `cargo run --release -p plinth-encoding --example kernels`.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap
)]

use std::hint::black_box;
use std::ops::Bound;
use std::time::Instant;

use arrow_buffer::{Buffer, ScalarBuffer};
use plinth_core::random::Random;
use plinth_core::simd::Level;
use plinth_encoding::bitpack::{Lane, VECTOR, compare, mask, pack, unpack, vector_len};
use plinth_encoding::{Block, Column, Effort, EncodeOptions, Physical, ValueSet, Values, encode, evaluate_column};

/// Vectors in a block.
const VECTORS: usize = 8;

/// The best of several rounds, in nanoseconds a value.
fn time(values: usize, mut run: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..30 {
        let rounds = 1 + 2_000_000 / values.max(1) / 10;
        let start = Instant::now();
        for _ in 0..rounds {
            run();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (rounds * values) as f64);
    }
    best
}

fn unpack_time<T: Lane>(kernel: Level, packed: &[u8], bits: u8) -> f64 {
    let mut out = vec![T::default(); VECTORS * VECTOR];
    time(out.len(), || {
        for (vector, bytes) in out.chunks_exact_mut(VECTOR).zip(packed.chunks_exact(vector_len(bits))) {
            unpack(kernel, bytes, bits, T::truncate(5), vector);
        }
        black_box(&mut out);
    })
}

fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut random = Random(seed);
    move || random.next_u64()
}

fn text(values: &[String]) -> Column {
    let mut heap = vec![];
    let views: Vec<u128> = values
        .iter()
        .map(|value| {
            let (at, len) = (heap.len() as u128, value.len() as u128);
            let mut head = [0; 16];
            let bytes = &value.as_bytes()[..value.len().min(12)];
            head[..bytes.len()].copy_from_slice(bytes);
            let head = u128::from_le_bytes(head);
            if len <= 12 {
                return head << 32 | len;
            }
            heap.extend_from_slice(value.as_bytes());
            at << 96 | (head & 0xFFFF_FFFF) << 32 | len
        })
        .collect();
    let values = Values::Views { views: ScalarBuffer::from(views), buffers: vec![Buffer::from_vec(heap)] };
    Column { len: 8192, values, nulls: None }
}

fn kernels() {
    println!("{:>4} {:>7} {:>9} {:>9} {:>9} {:>9}", "bits", "kernel", "unpack8", "unpack32", "unpack64", "compare");
    for bits in [1, 3, 5, 8, 12, 17, 20, 27, 32, 40, 57] {
        let mut next = noise(1);
        let mut packed = vec![];
        for _ in 0..VECTORS {
            let values: Vec<u64> = (0..VECTOR).map(|_| next() & mask(bits)).collect();
            pack(&values, 0, bits, &mut packed);
        }
        for kernel in [Level::Scalar, Level::best()] {
            let compared = time(VECTORS * VECTOR, || {
                for bytes in packed.chunks_exact(vector_len(bits)) {
                    black_box(compare(kernel, bytes, bits, mask(bits) / 4, mask(bits) / 3));
                }
            });
            println!(
                "{bits:>4} {:>7} {:>9.3} {:>9.3} {:>9.3} {compared:>9.3}",
                format!("{kernel:?}"),
                unpack_time::<u8>(kernel, &packed, bits),
                unpack_time::<u32>(kernel, &packed, bits),
                unpack_time::<u64>(kernel, &packed, bits),
            );
        }
    }
}

fn blocks() {
    let mut next = noise(2);
    let i64s = |make: &mut dyn FnMut(usize) -> i64| Column {
        len: 8192,
        values: Values::Fixed(Buffer::from_vec((0..8192).map(make).collect::<Vec<i64>>())),
        nulls: None,
    };
    let word =
        |n: u64| ["carefully", "final", "deposits", "sleep", "quickly", "furiously", "ironic", "the"][(n % 8) as usize];
    let long = Physical::Int { width: 8, signed: true };
    let utf8 = Physical::Bytes { utf8: true };
    let test = ValueSet::IntRange { lo: 100, hi: 900 };
    let prices = ValueSet::FloatRange { lo: Bound::Included(100.0), hi: Bound::Excluded(120.0) };
    let bytes = ValueSet::compare(utf8, plinth_encoding::expr::CompareOp::Eq, &"sleep".into()).unwrap();
    let columns: Vec<(&str, Physical, Column, &ValueSet)> = vec![
        ("i64 noise", long, i64s(&mut |_| next().cast_signed()), &test),
        ("i64 below 2500", long, i64s(&mut |_| (next() % 2500).cast_signed()), &test),
        ("i64 sorted", long, i64s(&mut |i| i as i64 * 37 + (next() % 20).cast_signed()), &test),
        ("i64 runs of 40", long, i64s(&mut |i| (i / 40 * 7919 % 1009) as i64), &test),
        (
            "i64 1 % outliers",
            long,
            i64s(&mut |i| (next() % if i % 100 == 7 { 1 << 40 } else { 1000 }).cast_signed()),
            &test,
        ),
        (
            "f64 prices",
            Physical::Float { width: 8 },
            Column {
                len: 8192,
                values: Values::Fixed(Buffer::from_vec(
                    (0..8192).map(|_| (next() % 100_000) as f64 / 100.0).collect::<Vec<_>>(),
                )),
                nulls: None,
            },
            &prices,
        ),
        ("text of few values", utf8, text(&(0..8192).map(|_| word(next()).to_owned()).collect::<Vec<_>>()), &bytes),
        (
            "text of words",
            utf8,
            text(
                &(0..8192)
                    .map(|_| (0..4).map(|_| word(next())).collect::<Vec<_>>().join(" ") + &(next() % 1000).to_string())
                    .collect::<Vec<_>>(),
            ),
            &bytes,
        ),
    ];
    println!(
        "\n{:<20} {:<9} {:>8} {:>8} {:>8} {:>8}  encoding",
        "block of 8192", "effort", "bytes", "encode", "decode", "evaluate"
    );
    for (name, physical, column, test) in &columns {
        for effort in [Effort::Fast, Effort::Balanced, Effort::Compact] {
            let mut out = vec![];
            encode(*physical, column, &EncodeOptions { effort }, &mut out).unwrap();
            let block = Block::open(*physical, &Buffer::from(out.as_slice()), column.len).unwrap();
            let encoded = time(column.len * 20, || {
                let mut out = vec![];
                black_box(encode(*physical, column, &EncodeOptions { effort }, &mut out).unwrap());
            }) * 20.0;
            let decoded = time(column.len, || {
                black_box(block.decode(None).unwrap());
            });
            let evaluated = time(column.len, || match block.evaluate(test).unwrap() {
                Some(mask) => drop(black_box(mask)),
                None => drop(black_box(evaluate_column(*physical, &block.decode(None).unwrap(), test))),
            });
            println!(
                "{name:<20} {:<9} {:>8} {encoded:>8.2} {decoded:>8.3} {evaluated:>8.3}  {}",
                format!("{effort:?}"),
                out.len(),
                block.describe()
            );
        }
    }
}

fn main() {
    kernels();
    blocks();
}
