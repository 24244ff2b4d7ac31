//! Differences between neighbours, restarted at each vector so that a vector can be decoded alone.
//!
//! After the tag: a node of `ceil(len / 1024)` integers of the same width, the first value of each vector; a node of `len`
//! signed integers of the same width, the differences. Value `i` of a vector is the vector's first value plus the
//! differences `1..=i` of the vector; difference 0 of each vector is not used.

use super::{Ints, Wanted, encode_nested, encode_nested_as, is_wanted, vectors};
use crate::bitpack::{Lane, VECTOR};
use crate::encoding::{Effort, Encoding};
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::recipe::Choice;
use crate::scratch::Scratch;
use crate::wire::Reader;

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Delta {
    firsts: Box<Ints>,
    deltas: Box<Ints>,
}

/// The kind of the differences of integers.
pub(crate) fn delta_kind(kind: IntKind) -> IntKind {
    IntKind { width: kind.width, signed: true }
}

/// The differences, each vector's unused first one being a copy of its second.
pub(crate) fn deltas(values: &[u64], kind: IntKind) -> Vec<u64> {
    let kind = delta_kind(kind);
    let mut out: Vec<u64> = Vec::with_capacity(values.len());
    for vector in values.chunks(VECTOR) {
        let mut differences = vector.windows(2).map(|pair| match pair {
            [a, b] => kind.extend(b.wrapping_sub(*a)),
            _ => 0,
        });
        let second = differences.clone().next();
        out.push(second.or(out.last().copied()).unwrap_or(0));
        out.extend(&mut differences);
    }
    out
}

/// Writes a node from the values and what [`deltas`] made of them, whose node may be like another.
pub(crate) fn encode(
    values: &[u64],
    deltas: &[u64],
    kind: IntKind,
    depth: u8,
    effort: Effort,
    like: &[Choice],
    out: &mut Vec<u8>,
) {
    out.push(Encoding::Delta.tag());
    let firsts: Vec<u64> = values.iter().step_by(VECTOR).copied().collect();
    encode_nested(&firsts, kind, 2, effort, out);
    encode_nested_as(like.first(), deltas, delta_kind(kind), depth + 1, effort, out);
}

impl Delta {
    pub(super) fn parse(kind: IntKind, len: usize, depth: u8, reader: &mut Reader<'_>) -> Result<Self> {
        let firsts = Box::new(Ints::parse(kind, vectors(len), depth + 1, reader)?);
        let deltas = Box::new(Ints::parse(delta_kind(kind), len, depth + 1, reader)?);
        Ok(Self { firsts, deltas })
    }

    /// What [`encode`] takes.
    pub(super) fn choices(&self) -> Vec<Choice> {
        vec![self.deltas.choice()]
    }

    pub(super) fn describe(&self) -> String {
        self.deltas.describe()
    }

    pub(super) fn decode<T: Lane>(&self, wanted: Wanted<'_>, out: &mut [T]) -> Result<()> {
        let firsts: Scratch<T> = self.firsts.decode_scratch(None)?;
        self.deltas.decode_into(wanted, out)?;
        if firsts.len() != vectors(out.len()) {
            return Err(EncodingError::corrupt("a delta node lacks first values"));
        }
        for (i, (vector, &first)) in out.chunks_mut(VECTOR).zip(&*firsts).enumerate() {
            if is_wanted(wanted, i) {
                let mut sum = first;
                if let Some((start, rest)) = vector.split_first_mut() {
                    *start = first;
                    for slot in rest {
                        sum = sum.plus(*slot);
                        *slot = sum;
                    }
                }
            }
        }
        Ok(())
    }
}
