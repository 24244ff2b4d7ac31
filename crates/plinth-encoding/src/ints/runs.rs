//! Runs of equal values.
//!
//! After the tag: `runs` (varint, 1 to `len`); a node of `runs` unsigned integers of 4 bytes, where each run ends
//! (exclusive, strictly increasing, the last equal to `len`); a node of `runs` integers of the same width, the values.

use arrow_buffer::BooleanBuffer;

use super::{Ints, encode_nested_as};
use crate::bitpack::Lane;
use crate::bits::Words;
use crate::encoding::{Effort, Encoding};
use crate::error::{EncodingError, Result};
use crate::heads::for_each_head;
use crate::physical::IntKind;
use crate::recipe::Choice;
use crate::scratch::Scratch;
use crate::value_set::ValueSet;
use crate::wire::{Reader, put_varint, wide};

/// Slots that are written at once: a run shorter than that is written past its end, where the next one follows. To write exactly
/// as many as it has would be a guess a run for the processor, and often a wrong one.
const SHORT: usize = 8;

/// Values of runs that are looked at together: a power of two, so that the place in them needs no check, above the eight runs
/// that may begin within a byte of their bitmap.
const AHEAD: usize = 16;

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    ends: Box<Ints>,
    values: Box<Ints>,
    len: usize,
}

/// Writes a node, whose ends and values may be like those of another.
pub(crate) fn encode(values: &[u64], kind: IntKind, depth: u8, effort: Effort, like: &[Choice], out: &mut Vec<u8>) {
    let (mut ends, mut heads) = (vec![], Vec::from_iter(values.first().copied()));
    for_each_head(values, |at, &head| {
        ends.push(wide(at));
        heads.push(head);
        true
    });
    ends.push(wide(values.len()));
    out.push(Encoding::RunLength.tag());
    put_varint(out, wide(heads.len()));
    encode_nested_as(like.first(), &ends, IntKind::U32, depth + 1, effort, out);
    encode_nested_as(like.get(1), &heads, kind, depth + 1, effort, out);
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

/// Writes runs whose ends are the first one and a bitmap of those behind it, each a slot where a run begins. Such runs are short:
/// a step for each slot is faster than one for each run, of which no length can be foreseen.
///
/// [`AHEAD`] more values than there are runs follow the last one, so that none of the steps needs to look where they end.
fn expand<T: Lane>(first: u64, ends: &[u8], values: &[T], out: &mut [T]) -> Result<()> {
    let len = out.len();
    let last = ends.last().map_or(0, |byte| 8 * ends.len() - 1 - byte.leading_zeros() as usize);
    let start = usize::try_from(first).ok().filter(|start| *start > 0 && start.checked_add(last) == Some(len));
    let (Some(start), Some(&value)) = (start, values.first()) else {
        return Err(EncodingError::corrupt(format!(
            "the ends of {} runs do not increase to {len}",
            values.len() - AHEAD
        )));
    };
    let (head, rest) = out.split_at_mut(start);
    head.fill(value);
    let mut run = 0;
    let (whole, rest) = rest.as_chunks_mut::<8>();
    let mut ends = ends.iter();
    for (slots, bits) in whole.iter_mut().zip(ends.by_ref()) {
        let ahead = values.get(run..).and_then(<[T]>::first_chunk::<AHEAD>);
        let ahead =
            ahead.ok_or_else(|| EncodingError::corrupt(format!("more ends than the {} runs", values.len() - AHEAD)))?;
        let mut at = 0;
        for (i, slot) in slots.iter_mut().enumerate() {
            at += usize::from(bits >> i & 1);
            *slot = ahead[at % AHEAD];
        }
        run += at;
    }
    let bits = ends.next().copied().unwrap_or_default();
    for (i, slot) in rest.iter_mut().enumerate() {
        run += usize::from(bits >> i & 1);
        *slot = values.get(run).copied().unwrap_or_default();
    }
    Ok(())
}

impl Runs {
    pub(super) fn parse(kind: IntKind, len: usize, depth: u8, reader: &mut Reader<'_>) -> Result<Self> {
        let count = reader.count(len, "runs")?;
        let ends = Box::new(Ints::parse(IntKind::U32, count, depth + 1, reader)?);
        let values = Box::new(Ints::parse(kind, count, depth + 1, reader)?);
        Ok(Self { ends, values, len })
    }

    /// What [`encode`] takes.
    pub(super) fn choices(&self) -> Vec<Choice> {
        vec![self.ends.choice(), self.values.choice()]
    }

    pub(super) fn describe(&self) -> String {
        format!("{} x {}; ends {}", self.values.len, self.values.describe(), self.ends.describe())
    }

    fn ends(&self) -> Result<Scratch<u32>> {
        let ends: Scratch<u32> = self.ends.decode_scratch(None)?;
        check_ends(&ends, self.len)?;
        Ok(ends)
    }

    pub(super) fn decode<T: Lane>(&self, out: &mut [T]) -> Result<()> {
        let count = self.values.len;
        let mut values: Scratch<T> = Scratch::new(count + AHEAD)?;
        let (heads, ahead) = values.split_at_mut(count);
        self.values.decode_into(None, heads)?;
        if let Some((first, ends)) = self.ends.as_bitmap() {
            ahead.fill(T::default());
            return expand(first, ends, &values, out);
        }
        let ends = self.ends()?;
        let mut from = 0;
        for (&end, &value) in ends.iter().zip(&*heads) {
            let end = end as usize;
            match out.get_mut(from..).and_then(<[T]>::first_chunk_mut::<SHORT>) {
                Some(start) if end - from <= SHORT => *start = [value; SHORT],
                _ => out.get_mut(from..end).unwrap_or_default().fill(value),
            }
            from = end;
        }
        Ok(())
    }

    pub(super) fn evaluate(&self, len: usize, set: &ValueSet) -> Result<BooleanBuffer> {
        let answers = self.values.evaluate_always(set)?;
        let mut out = Words::zeros(len);
        if !answers.has_true() {
            return Ok(out.finish());
        }
        let ends = self.ends()?;
        let end = |run: usize| ends.get(run).map_or(0, |&end| end as usize);
        for (from, to) in answers.set_slices() {
            out.set_range(from.checked_sub(1).map_or(0, end), end(to - 1));
        }
        Ok(out.finish())
    }
}
