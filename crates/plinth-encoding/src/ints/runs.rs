//! Runs of equal values.
//!
//! After the tag: `runs` (varint, 1 to `len`); a node of `runs` unsigned integers of 4 bytes, where each run ends
//! (exclusive, strictly increasing, the last equal to `len`); a node of `runs` integers of the same width, the values.

use arrow_buffer::BooleanBuffer;

use super::{Ints, encode_nested};
use crate::bitpack::Lane;
use crate::bits::Words;
use crate::encoding::{Effort, Encoding};
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::value_set::ValueSet;
use crate::wire::{Reader, put_varint, wide};

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    ends: Box<Ints>,
    values: Box<Ints>,
    len: usize,
}

/// Writes a node.
pub(crate) fn encode(values: &[u64], kind: IntKind, depth: u8, effort: Effort, out: &mut Vec<u8>) {
    let (mut ends, mut heads) = (vec![], vec![]);
    for (i, &value) in values.iter().enumerate() {
        if heads.last() != Some(&value) {
            if i > 0 {
                ends.push(wide(i));
            }
            heads.push(value);
        }
    }
    ends.push(wide(values.len()));
    out.push(Encoding::RunLength.tag());
    put_varint(out, wide(heads.len()));
    encode_nested(&ends, IntKind::U32, depth + 1, effort, out);
    encode_nested(&heads, kind, depth + 1, effort, out);
}

/// Checks that run ends increase up to `len`.
pub(crate) fn check_ends(ends: &[u32], len: usize) -> Result<()> {
    let increase = ends.windows(2).all(|pair| pair[0] < pair[1]);
    let first = ends.first().is_none_or(|&first| first > 0);
    let last = ends.last().map_or(0, |&last| last as usize);
    if increase && first && last == len {
        return Ok(());
    }
    Err(EncodingError::corrupt(format!("the ends of {} runs do not increase to {len}", ends.len())))
}

impl Runs {
    pub(super) fn parse(kind: IntKind, len: usize, depth: u8, reader: &mut Reader<'_>) -> Result<Self> {
        let count = reader.count(len, "runs")?;
        let ends = Box::new(Ints::parse(IntKind::U32, count, depth + 1, reader)?);
        let values = Box::new(Ints::parse(kind, count, depth + 1, reader)?);
        Ok(Self { ends, values, len })
    }

    pub(super) fn describe(&self) -> String {
        format!("{} x {}; ends {}", self.values.len, self.values.describe(), self.ends.describe())
    }

    fn ends(&self) -> Result<Vec<u32>> {
        let ends: Vec<u32> = self.ends.decode(None)?;
        check_ends(&ends, self.len)?;
        Ok(ends)
    }

    pub(super) fn decode<T: Lane>(&self, out: &mut [T]) -> Result<()> {
        let ends = self.ends()?;
        let values: Vec<T> = self.values.decode(None)?;
        let mut from = 0;
        for (end, value) in ends.into_iter().zip(values) {
            let end = end as usize;
            if let Some(run) = out.get_mut(from..end) {
                run.fill(value);
            }
            from = end;
        }
        Ok(())
    }

    pub(super) fn evaluate(&self, len: usize, set: &ValueSet) -> Result<BooleanBuffer> {
        let ends = self.ends()?;
        let answers = self.values.evaluate_always(set)?;
        let mut out = Words::zeros(len);
        let mut from = 0;
        for (end, answer) in ends.into_iter().zip(&answers) {
            let end = end as usize;
            if answer {
                out.set_range(from, end);
            }
            from = end;
        }
        Ok(out.finish())
    }
}
