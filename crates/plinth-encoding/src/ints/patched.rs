//! Values that mostly need few bits, and the exceptions: `Sparse` where all but the exceptions are one value, `Patched`
//! where they are bit-packed.
//!
//! After the tag: a node of `len` integers of the same width; `exceptions` (varint, at most `len`); a node of `exceptions`
//! unsigned integers of 4 bytes, their positions, each below `len`, increasing; a node of `exceptions` integers of the same
//! width, the values that replace those of the first node at the positions.

use arrow_buffer::BooleanBuffer;

use super::{Ints, Wanted, encode_nested, packed, put_constant};
use crate::bitpack::{Lane, bits_for, mask, packed_len};
use crate::bits::Words;
use crate::encoding::{Effort, Encoding};
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::scratch::Scratch;
use crate::value_set::ValueSet;
use crate::wire::{Reader, put_varint, wide};

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Patched {
    inner: Box<Ints>,
    positions: Box<Ints>,
    values: Box<Ints>,
}

/// Which values are no exceptions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The smallest, in ordered form.
    base: u64,
    bits: u8,
    /// Estimated bytes of the node.
    pub(crate) size: usize,
}

impl Plan {
    pub(crate) fn encoding(self) -> Encoding {
        if self.bits == 0 { Encoding::Sparse } else { Encoding::Patched }
    }
}

/// Sample size, and the shares of it that the common values may be asked to make up, in 1/256.
const SAMPLE: usize = 1024;
const SHARES: [usize; 7] = [254, 251, 243, 230, 205, 166, 128];

/// Finds the narrow range that holds most values: for each share, the tightest window over a sorted sample. The sample says
/// which is best, and only that one's exceptions are counted.
pub(crate) fn plan(values: &[u64], kind: IntKind) -> Option<Plan> {
    let step = values.len().div_ceil(SAMPLE).max(1);
    let mut sample: Vec<u64> = values.iter().step_by(step).map(|&raw| kind.ordered(raw)).collect();
    sample.sort_unstable();
    let exception_bits = usize::from(bits_for(wide(values.len()))) + 8 * usize::from(kind.width);
    let size = |bits, exceptions: usize| {
        24 + packed_len(values.len(), bits) + exceptions.saturating_mul(exception_bits).div_ceil(8)
    };
    let mut best: Option<Plan> = None;
    for share in SHARES {
        let keep = (sample.len() * share / 256).max(1);
        let tightest = sample.windows(keep).filter_map(|w| Some((w.last()? - w.first()?, *w.first()?))).min();
        let Some((range, base)) = tightest else { continue };
        let bits = bits_for(range);
        let size = size(bits, (sample.len() - keep) * step);
        if best.is_none_or(|best| size < best.size) {
            best = Some(Plan { base, bits, size });
        }
    }
    let plan = best?;
    let limit = mask(plan.bits);
    let outside = values.iter().filter(|&&raw| kind.ordered(raw).wrapping_sub(plan.base) > limit).count();
    (outside > 0).then(|| Plan { size: size(plan.bits, outside), ..plan })
}

/// Writes a node.
pub(crate) fn encode(values: &[u64], plan: Plan, kind: IntKind, depth: u8, effort: Effort, out: &mut Vec<u8>) {
    let limit = mask(plan.bits);
    let base = kind.ordered(plan.base);
    let (mut positions, mut exceptions, mut common) = (vec![], vec![], Vec::with_capacity(values.len()));
    for (i, &raw) in values.iter().enumerate() {
        if raw.wrapping_sub(base) > limit {
            positions.push(wide(i));
            exceptions.push(raw);
            common.push(common.last().copied().unwrap_or(base));
        } else {
            common.push(raw);
        }
    }
    put(&common, plan.bits == 0, &positions, &exceptions, kind, depth, effort, out);
}

#[allow(clippy::too_many_arguments, reason = "the fields of the node")]
fn put(
    common: &[u64],
    constant: bool,
    positions: &[u64],
    exceptions: &[u64],
    kind: IntKind,
    depth: u8,
    effort: Effort,
    out: &mut Vec<u8>,
) {
    out.push(if constant { Encoding::Sparse } else { Encoding::Patched }.tag());
    if constant {
        put_constant(common.first().copied().unwrap_or(0), kind, out);
    } else {
        packed::encode(common, kind, &packed::plan(common, kind), out);
    }
    put_varint(out, wide(positions.len()));
    encode_nested(positions, IntKind::U32, depth + 1, effort, out);
    encode_nested(exceptions, kind, depth + 1, effort, out);
}

impl Patched {
    pub(crate) fn evaluates_by_decoding(&self) -> bool {
        [&self.inner, &self.positions, &self.values].into_iter().any(|node| node.evaluates_by_decoding())
    }

    pub(super) fn parse(kind: IntKind, len: usize, depth: u8, reader: &mut Reader<'_>) -> Result<Self> {
        let inner = Box::new(Ints::parse(kind, len, depth + 1, reader)?);
        let count = reader.count(len, "exceptions")?;
        let positions = Box::new(Ints::parse(IntKind::U32, count, depth + 1, reader)?);
        let values = Box::new(Ints::parse(kind, count, depth + 1, reader)?);
        Ok(Self { inner, positions, values })
    }

    pub(super) fn encoding(&self) -> Encoding {
        if self.inner.as_constant().is_some() { Encoding::Sparse } else { Encoding::Patched }
    }

    pub(super) fn describe(&self) -> String {
        format!("{}; {} x {}", self.inner.describe(), self.values.len, self.values.describe())
    }

    fn positions(&self) -> Result<Scratch<u32>> {
        let positions: Scratch<u32> = self.positions.decode_scratch(None)?;
        let increase = positions.windows(2).all(|pair| pair[0] < pair[1]);
        if !increase || positions.last().is_some_and(|&last| last as usize >= self.inner.len) {
            return Err(EncodingError::corrupt("the positions of exceptions are out of order or past the end"));
        }
        Ok(positions)
    }

    pub(super) fn decode<T: Lane>(&self, wanted: Wanted<'_>, out: &mut [T]) -> Result<()> {
        self.inner.decode_into(wanted, out)?;
        let values: Scratch<T> = self.values.decode_scratch(None)?;
        for (&at, &value) in self.positions()?.iter().zip(&*values) {
            if let Some(slot) = out.get_mut(at as usize) {
                *slot = value;
            }
        }
        Ok(())
    }

    pub(super) fn evaluate(&self, set: &ValueSet) -> Result<Option<BooleanBuffer>> {
        let Some(answers) = self.inner.evaluate(set)? else { return Ok(None) };
        let exceptions = self.values.evaluate_always(set)?;
        let mut out = Words::copy(&answers);
        for (&at, answer) in self.positions()?.iter().zip(&exceptions) {
            out.put(at as usize, answer);
        }
        Ok(Some(out.finish()))
    }
}
