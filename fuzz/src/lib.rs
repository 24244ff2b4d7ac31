//! What the fuzz targets share: the helpers and models of the crates' own tests, and physical types from bytes.
#![allow(dead_code, clippy::all)]

// The tests' modules name each other by `crate::`.
#[path = "../../crates/plinth-format/tests/suite/data.rs"]
pub mod data;
#[path = "../../crates/plinth-format/tests/suite/forge.rs"]
pub mod forge;
// Its own tests, which are not compiled here, use more.
#[allow(unused_imports)]
#[path = "../../crates/plinth-format/tests/suite/fuzz_lite.rs"]
pub mod fuzz_lite;
#[path = "../../crates/plinth-encoding/tests/conformance/model.rs"]
mod conformance;

pub mod model {
    //! The plain model of columns.
    use arrow_buffer::BooleanBuffer;
    use plinth_encoding::{Column, Physical, ValueSet};

    use crate::conformance;

    pub type Row = Option<Vec<u8>>;

    pub fn column(physical: Physical, rows: &[Row]) -> Column {
        conformance::column(physical, rows)
    }

    pub fn rows(physical: Physical, column: &Column) -> Vec<Row> {
        conformance::rows(physical, column)
    }

    pub fn holds(physical: Physical, value: &[u8], test: &ValueSet) -> Option<bool> {
        conformance::holds(physical, value, test)
    }

    pub fn selection(len: usize, select: impl FnMut(usize) -> bool) -> BooleanBuffer {
        conformance::selection(len, select)
    }
}

use plinth_encoding::expr::{CompareOp, Scalar};
use plinth_encoding::{Pattern, Physical, ValueSet};

/// The fuzzer's bytes as numbers; zeros when they have run out.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn u8(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    pub fn u64(&mut self) -> u64 {
        (0..8).fold(0, |number, i| number | u64::from(self.u8()) << (8 * i))
    }
}

/// Every physical type.
pub const PHYSICALS: [Physical; 20] = [
    Physical::Bool,
    Physical::Int { width: 1, signed: false },
    Physical::Int { width: 2, signed: false },
    Physical::Int { width: 4, signed: false },
    Physical::Int { width: 8, signed: false },
    Physical::Int { width: 1, signed: true },
    Physical::Int { width: 2, signed: true },
    Physical::Int { width: 4, signed: true },
    Physical::Int { width: 8, signed: true },
    Physical::Wide { width: 16 },
    Physical::Wide { width: 32 },
    Physical::Float { width: 2 },
    Physical::Float { width: 4 },
    Physical::Float { width: 8 },
    Physical::Fixed { width: 0 },
    Physical::Fixed { width: 3 },
    Physical::Fixed { width: 8 },
    Physical::Fixed { width: 20 },
    Physical::Bytes { utf8: false },
    Physical::Bytes { utf8: true },
];

/// Values of a type, in one of a few shapes that call for different encodings.
pub fn rows(physical: Physical, bytes: &mut Bytes<'_>) -> Vec<model::Row> {
    let (shape, len, nulls) = (bytes.u8(), bytes.u64() as usize % 2500, bytes.u8());
    let mut random = data::Random(bytes.u64());
    let mut last = bytes.u64();
    let step = bytes.u64() >> (bytes.u8() & 63);
    (0..len)
        .map(|_| {
            last = match shape % 6 {
                0 => bytes.u64(),
                1 => last.wrapping_add(step),
                2 => last.wrapping_add(random.next_u64() % step.max(1)),
                3 if random.chance(3) => bytes.u64(),
                4 => random.next_u64() % step.max(1),
                5 => random.next_u64(),
                _ => last,
            };
            if random.next_u64() % 256 < u64::from(nulls) && nulls > 16 {
                return None;
            }
            Some(match physical {
                Physical::Bool => vec![u8::from(last & 1 == 1)],
                // A small alphabet, as of digests and numbers.
                Physical::Bytes { .. } if shape & 64 != 0 => {
                    let mut text = format!("{last:b}").into_bytes();
                    text.truncate((last % 70) as usize);
                    text
                }
                Physical::Bytes { utf8 } => {
                    let text = format!("{last:x}é{}", "ab".repeat((last % 17) as usize / (1 + usize::from(shape & 7))));
                    let mut text = text.into_bytes();
                    if !utf8 {
                        text.extend_from_slice(&last.to_le_bytes()[..(last % 9) as usize]);
                    }
                    if last % 31 == 0 { Vec::new() } else { text }
                }
                Physical::Float { width: 8 } if shape & 64 != 0 => (last as i32 as f64 / 100.0).to_le_bytes().to_vec(),
                Physical::Float { width: 4 } if shape & 64 != 0 => (last as i16 as f32 / 10.0).to_le_bytes().to_vec(),
                _ => {
                    let width = physical.fixed_width().unwrap_or(0);
                    let sign = if shape & 128 != 0 && last >> 63 == 1 { 0xff } else { 0 };
                    let mut value = last.to_le_bytes().to_vec();
                    value.resize(width.max(8), sign);
                    value.truncate(width);
                    value
                }
            })
        })
        .collect()
}

/// A test for values of a type, near one of them.
pub fn test(physical: Physical, near: Option<&[u8]>, bytes: &mut Bytes<'_>) -> Option<ValueSet> {
    let ops = [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
    let op = bytes.u8();
    let near = near.unwrap_or(&[]);
    if matches!(physical, Physical::Fixed { .. } | Physical::Bytes { .. }) && op & 128 != 0 {
        // A part of a value, or more than one.
        let (from, to) = (usize::from(bytes.u8()) % (near.len() + 1), usize::from(bytes.u8()) % (near.len() + 1));
        let more = &bytes.0[..bytes.0.len().min(usize::from(op) % 4)];
        let part = [&near[from.min(to)..from.max(to)], more].concat();
        // At the beginning, anywhere, twice, at the end, at both ends.
        return Some(ValueSet::BytesLike(match op / 4 % 5 {
            0 => Pattern::new(&part, [], &[]),
            1 => Pattern::containing(&part),
            2 => Pattern::new(&[], [&part[..], &part[..]], &[]),
            3 => Pattern::new(&[], [], &part),
            _ => Pattern::new(&part, [], &part),
        }));
    }
    let op = ops[usize::from(op) % ops.len()];
    let scalar = match physical {
        Physical::Bool => Scalar::Bool(bytes.u8() & 1 == 1),
        Physical::Float { .. } if near.len() >= 2 => Scalar::Float(conformance::float(near)),
        Physical::Float { .. } => Scalar::Float(f64::from_bits(bytes.u64())),
        Physical::Int { signed, .. } if !near.is_empty() => {
            Scalar::Int(conformance::int(near, signed) + i128::from(bytes.u8() as i8))
        }
        Physical::Int { .. } | Physical::Wide { .. } => Scalar::Int(i128::from(bytes.u64() as i64)),
        Physical::Fixed { .. } | Physical::Bytes { .. } => Scalar::Bytes(near.into()),
    };
    ValueSet::compare(physical, op, &scalar).ok()
}
