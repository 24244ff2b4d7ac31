//! Inputs by the encoding they are meant to get.

use plinth_encoding::{Effort, Encoding, Physical};

use crate::model::{Row, noise};

pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) physical: Physical,
    pub(crate) effort: Effort,
    /// What it must become at 8,192 rows or more.
    pub(crate) expected: Encoding,
    pub(crate) value: fn(usize, &mut dyn FnMut() -> u64) -> Vec<u8>,
}

impl Shape {
    pub(crate) fn rows(&self, len: usize) -> Vec<Row> {
        let mut next = noise(7);
        (0..len).map(|row| Some((self.value)(row, &mut next))).collect()
    }
}

const U8: Physical = Physical::Int { width: 1, signed: false };
const I8: Physical = Physical::Int { width: 1, signed: true };
const I16: Physical = Physical::Int { width: 2, signed: true };
const I32: Physical = Physical::Int { width: 4, signed: true };
const U32: Physical = Physical::CODES;
const I64: Physical = Physical::Int { width: 8, signed: true };
const U64: Physical = Physical::Int { width: 8, signed: false };
const W16: Physical = Physical::Wide { width: 16 };
const W32: Physical = Physical::Wide { width: 32 };
const F16: Physical = Physical::Float { width: 2 };
const F32: Physical = Physical::Float { width: 4 };
const F64: Physical = Physical::Float { width: 8 };
const TEXT: Physical = Physical::Bytes { utf8: true };
const BYTES: Physical = Physical::Bytes { utf8: false };

fn i32s(value: u64) -> Vec<u8> {
    value.to_le_bytes()[..4].to_vec()
}

fn i64s(value: u64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

/// A number that tells nothing of what it was made of.
fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

const WORDS: [&str; 24] = [
    "carefully",
    "final",
    "deposits",
    "sleep",
    "quickly",
    "furiously",
    "regular",
    "ironic",
    "requests",
    "above",
    "the",
    "slyly",
    "express",
    "accounts",
    "among",
    "bold",
    "packages",
    "wake",
    "blithely",
    "pending",
    "theodolites",
    "are",
    "foxes",
    "\u{fc}ber",
];

fn sentence(next: &mut dyn FnMut() -> u64) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..3 + next() % 5 {
        text.push_str(WORDS[(next() % 24) as usize]);
        text.push(' ');
    }
    text.into_bytes()
}

macro_rules! shape {
    ($name:literal, $physical:expr, $effort:ident, $expected:ident, $value:expr) => {
        Shape {
            name: $name,
            physical: $physical,
            effort: Effort::$effort,
            expected: Encoding::$expected,
            value: $value,
        }
    };
}

pub(crate) fn shapes() -> Vec<Shape> {
    vec![
        shape!("bool constant", Physical::Bool, Balanced, Constant, |_, _| vec![1]),
        shape!("bool noise", Physical::Bool, Balanced, Plain, |_, next| vec![(next() & 1) as u8]),
        shape!("bool runs", Physical::Bool, Balanced, RunLength, |row, _| vec![(row / 700 % 2) as u8]),
        shape!("u8 noise", U8, Balanced, Plain, |_, next| vec![next() as u8]),
        shape!("u8 small", U8, Balanced, BitPacked, |_, next| vec![100 + (next() % 9) as u8]),
        shape!("i8 constant", I8, Balanced, Constant, |_, _| vec![0x80]),
        shape!("i8 around zero", I8, Fast, BitPacked, |_, next| vec![((next() % 7) as u8).wrapping_sub(3)]),
        shape!("i16 around zero", I16, Balanced, BitPacked, |_, next| {
            ((next() % 900) as u16).wrapping_sub(450).to_le_bytes().to_vec()
        }),
        shape!("u8 repeats", U8, Balanced, Zstd, |row, _| vec![mix(row as u64 % 3000) as u8]),
        shape!("i16 few frequent", I16, Balanced, Distinct, |_, next| {
            ((next().trailing_zeros() + 16 * next().trailing_zeros()) as u16).wrapping_mul(50).to_le_bytes().to_vec()
        }),
        shape!("i64 repeats", I64, Balanced, Distinct, |row, _| {
            let mixed = (row as u64 % 500).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            i64s((mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
        }),
        shape!("i64 visitors", I64, Balanced, Distinct, |_, next| i64s(mix(next() % 300))),
        shape!("i64 visitors, a few hits each", I64, Balanced, RunLength, |row, _| i64s(
            mix(mix(row as u64 / 3) % 700)
        )),
        shape!("u64 visitors", U64, Compact, Distinct, |_, next| i64s(mix(next() % 900))),
        shape!("i64 visitors at the extremes", I64, Balanced, RunLength, |_, next| {
            i64s([1 << 63, u64::MAX >> 1, 0, u64::MAX, mix(next() % 50)][(next() % 5) as usize])
        }),
        shape!("u32 few of many codes", U32, Balanced, Distinct, |_, next| i32s(mix(next() % 300) % 3_000_000)),
        shape!("i16 few of many", I16, Balanced, Distinct, |_, next| mix(next() % 30).to_le_bytes()[..2].to_vec()),
        shape!("f64 few of many", F64, Balanced, Distinct, |_, next| ((next() % 300) as f64)
            .sqrt()
            .to_le_bytes()
            .to_vec()),
        shape!("i32 dates", I32, Balanced, BitPacked, |_, next| i32s(8000 + next() % 2500)),
        shape!("i32 sorted", I32, Balanced, Delta, |row, next| i32s(row as u64 * 40 + next() % 13)),
        shape!("i32 runs", I32, Balanced, RunLength, |row, _| i32s((row / 50 * 7919 % 65_521) as u64)),
        shape!("i32 sparse", I32, Fast, Sparse, |row, next| { if row % 97 == 5 { i32s(next()) } else { i32s(42) } }),
        shape!("i32 outliers", I32, Balanced, Patched, |row, next| {
            if row % 331 == 7 { i32s(next()) } else { i32s(next() % 128) }
        }),
        shape!("u32 codes", U32, Balanced, Mixed, |_, next| i32s(next() % 3000)),
        shape!("u32 many codes", U32, Compact, Mixed, |_, next| i32s(1_000_000 + next() % 69_700)),
        shape!("u32 codes below a power of two", U32, Balanced, BitPacked, |_, next| i32s(next() % 4001)),
        shape!("u32 codes, fast", U32, Fast, BitPacked, |_, next| i32s(next() % 3000)),
        shape!("u32 noise", U32, Balanced, Plain, |_, next| i32s(next())),
        shape!("i64 keys", I64, Balanced, Delta, |row, _| i64s(row as u64 / 4 * 32 + row as u64 % 4 + 1)),
        shape!("i64 steps", I64, Balanced, Delta, |row, _| i64s((row as u64).wrapping_mul(1_000_003).wrapping_sub(5))),
        shape!("i64 wide frame", I64, Balanced, BitPacked, |_, next| i64s((next() >> 23).wrapping_sub(1 << 40))),
        shape!("i64 extremes", I64, Fast, Plain, |row, next| {
            i64s([1 << 63, u64::MAX >> 1, 0, u64::MAX, next()][row % 5])
        }),
        shape!("u64 high", U64, Balanced, BitPacked, |_, next| i64s(u64::MAX - next() % 5000)),
        shape!("i64 waves", I64, Compact, Pco, |row, next| {
            let wave = ((row as f64 / 50.0).sin() * 1e9) as i64;
            i64s((wave * 1000 + (next() % 3) as i64).cast_unsigned())
        }),
        shape!("decimal narrow", W16, Balanced, Narrowed, |_, next| {
            (i128::from(next() % 100_000) - 50_000).to_le_bytes().to_vec()
        }),
        shape!("decimal constant", W16, Balanced, Narrowed, |_, _| 5_i128.to_le_bytes().to_vec()),
        shape!("decimal large constant", W16, Balanced, Constant, |_, _| i128::MIN.to_le_bytes().to_vec()),
        shape!("decimal large", W16, Balanced, Plain, |_, next| {
            (i128::from(next()) << 64 | i128::from(next())).to_le_bytes().to_vec()
        }),
        shape!("decimal256 narrow", W32, Balanced, Narrowed, |_, next| {
            let value = i128::from(next() % 1000) - 500;
            [value.to_le_bytes(), (value >> 127).to_le_bytes()].concat()
        }),
        shape!("decimal256 large", W32, Balanced, Zstd, |_, next| {
            let mut value = vec![0; 32];
            value[31] = if next() % 2 == 0 { 0x7F } else { 0x80 };
            value[0] = next() as u8;
            value
        }),
        shape!("f16 few", F16, Balanced, BitPacked, |_, next| (0x3C00 + (next() % 16) as u16).to_le_bytes().to_vec()),
        shape!("f16 noise", F16, Balanced, Plain, |_, next| (next() as u16).to_le_bytes().to_vec()),
        shape!("f32 prices", F32, Balanced, Alp, |_, next| ((next() % 100_000) as f32 / 100.0).to_le_bytes().to_vec()),
        shape!("f32 constant", F32, Balanced, Constant, |_, _| (-0.0_f32).to_le_bytes().to_vec()),
        shape!("f32 noise", F32, Balanced, Plain, |_, next| (next() as u32).to_le_bytes().to_vec()),
        shape!("f64 prices", F64, Balanced, Alp, |row, next| {
            let special =
                [f64::NAN, -f64::NAN, f64::INFINITY, -0.0, f64::from_bits(0x7FF0_0000_0000_0001), f64::MIN_POSITIVE];
            let price = (next() % 1_000_000) as f64 / 100.0;
            if row % 211 == 3 { special[row % 6] } else { price }.to_le_bytes().to_vec()
        }),
        shape!("f64 runs", F64, Balanced, RunLength, |row, _| ((row / 100) as f64).sqrt().to_le_bytes().to_vec()),
        shape!("f64 mostly zero", F64, Fast, Sparse, |row, next| {
            if row % 100 == 0 { next().to_le_bytes() } else { 0.0_f64.to_le_bytes() }.to_vec()
        }),
        shape!("f64 noise", F64, Balanced, Plain, |_, next| i64s(next())),
        shape!("f64 waves", F64, Compact, Pco, |row, next| {
            ((row as f64 / 50.0).sin() + (next() % 1000) as f64 * 1e-12).to_le_bytes().to_vec()
        }),
        shape!("fixed empty", Physical::Fixed { width: 0 }, Balanced, Constant, |_, _| vec![]),
        shape!("fixed constant", Physical::Fixed { width: 5 }, Balanced, Constant, |_, _| b"hello".to_vec()),
        shape!("fixed noise", Physical::Fixed { width: 16 }, Balanced, Plain, |_, next| [i64s(next()), i64s(next())]
            .concat()),
        shape!("fixed like", Physical::Fixed { width: 12 }, Balanced, Zstd, |_, next| {
            format!("key-{:08}", next() % 1000).into_bytes()
        }),
        shape!("text constant", TEXT, Balanced, Constant, |_, _| "a value longer than twelve".into()),
        shape!("text one empty", TEXT, Balanced, Constant, |_, _| vec![]),
        shape!("text modes", TEXT, Balanced, Dictionary, |_, next| {
            ["AIR", "MAIL", "REG AIR", "TRUCK", "SHIP", "DELIVER IN PERSON", ""][(next() % 7) as usize].into()
        }),
        shape!("text comments", TEXT, Fast, Fsst, |_, next| sentence(next)),
        shape!("text urls", TEXT, Balanced, Zstd, |row, next| {
            format!("http://example.com/catalogue/{}/item?id={:x}&session=common", WORDS[row % 20], next() % 65_536)
                .into()
        }),
        shape!("bytes noise", BYTES, Balanced, Plain, |_, next| { (0..next() % 30).map(|_| next() as u8).collect() }),
        shape!("bytes short", BYTES, Balanced, Plain, |_, next| (0..8).map(|_| next() as u8).collect()),
    ]
}
