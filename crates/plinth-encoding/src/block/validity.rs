//! Which rows are null.
//!
//! A block begins with `flags` (`u8`): bits 0 and 1 are the kind of this section, bit 7 says that only the values of rows
//! that are not null are stored (*compacted*); the other bits are zero.
//!
//! - kind 0, none is null: nothing follows.
//! - kind 1, bitmap: `nulls` (varint, their number), then `ceil(len / 8)` bytes, bit `i % 8` of byte `i / 8` set where
//!   row `i` is not null; spare bits are zero.
//! - kind 2, runs: `nulls` (varint), `runs` (varint), `first` (`u8`, 1 if the first run is of rows that are not null), a
//!   node of `runs` unsigned integers of 4 bytes ([`crate::ints`], depth 1), where the runs end, as in a run-length node.
//! - kind 3, all null: the block ends here.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use crate::bits;
use crate::encoding::Effort;
use crate::error::{EncodingError, Result};
use crate::ints::{Ints, encode_nested, runs::check_ends};
use crate::physical::IntKind;
use crate::scratch::Scratch;
use crate::wire::{Reader, put_varint, wide};

const KIND: u8 = 3;
pub(super) const COMPACTED: u8 = 0x80;

/// A parsed section.
#[derive(Clone, Debug)]
pub(super) struct Validity {
    nulls: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    NoNulls,
    Bitmap(Buffer),
    Runs { first: bool, ends: Ints },
    AllNull,
}

/// Writes flags and section.
pub(super) fn encode(nulls: Option<&BooleanBuffer>, compacted: bool, effort: Effort, out: &mut Vec<u8>) {
    let Some(valid) = nulls else {
        out.push(0);
        return;
    };
    let flags = if compacted { COMPACTED } else { 0 };
    let null_count = valid.len() - valid.count_set_bits();
    if null_count == valid.len() {
        out.push(3);
        return;
    }
    let bitmap_size = valid.len().div_ceil(8);
    let slices = valid.set_slices().take(bitmap_size).count();
    let mut runs = vec![];
    if slices * 2 < bitmap_size {
        let (first, ends) = bits::runs_of(valid);
        put_varint(&mut runs, wide(ends.len()));
        runs.push(u8::from(first));
        encode_nested(&ends, IntKind::U32, 1, effort, &mut runs);
    }
    let as_runs = !runs.is_empty() && runs.len() < bitmap_size;
    out.push(flags | if as_runs { 2 } else { 1 });
    put_varint(out, wide(null_count));
    if as_runs {
        out.extend_from_slice(&runs);
    } else {
        let bytes = valid.sliced();
        let at = out.len();
        out.extend_from_slice(bytes.get(..bitmap_size).unwrap_or_default());
        if valid.len() % 8 > 0
            && out.len() > at
            && let Some(last) = out.last_mut()
        {
            *last &= (1 << (valid.len() % 8)) - 1;
        }
    }
}

impl Validity {
    /// Parses flags and section; also whether the values are compacted.
    pub(super) fn parse(len: usize, reader: &mut Reader<'_>) -> Result<(Self, bool)> {
        let flags = reader.u8()?;
        if flags & !(KIND | COMPACTED) != 0 {
            return Err(EncodingError::corrupt(format!("block flags {flags:#x} are unknown")));
        }
        let (nulls, kind) = match flags & KIND {
            0 => (0, Kind::NoNulls),
            1 => {
                let nulls = reader.count(len, "nulls")?;
                (nulls, Kind::Bitmap(reader.take(len.div_ceil(8))?))
            }
            2 => {
                let nulls = reader.count(len, "nulls")?;
                let runs = reader.count(len, "runs of nulls")?;
                let first = reader.u8()? == 1;
                (nulls, Kind::Runs { first, ends: Ints::parse(IntKind::U32, runs, 1, reader)? })
            }
            _ => (len, Kind::AllNull),
        };
        Ok((Self { nulls, kind }, flags & COMPACTED != 0))
    }

    pub(super) fn null_count(&self) -> usize {
        self.nulls
    }

    pub(super) fn is_all_null(&self) -> bool {
        matches!(self.kind, Kind::AllNull)
    }

    /// The section, if there are nulls; checks that their number is what it says.
    pub(super) fn nulls(&self, len: usize) -> Result<Option<NullBuffer>> {
        let valid = match &self.kind {
            Kind::NoNulls => return Ok(None),
            Kind::AllNull if len == 0 => return Ok(None),
            Kind::AllNull => return Ok(Some(NullBuffer::new_null(len))),
            Kind::Bitmap(bytes) => bits::bitmap(bytes.clone(), len)?,
            Kind::Runs { first, ends } => {
                let ends: Scratch<u32> = ends.decode_scratch(None)?;
                check_ends(&ends, len)?;
                bits::from_runs(*first, &ends, len)
            }
        };
        let nulls = NullBuffer::new(valid);
        if nulls.null_count() != self.nulls {
            return Err(EncodingError::corrupt(format!("{} nulls where {} should be", nulls.null_count(), self.nulls)));
        }
        Ok((self.nulls > 0).then_some(nulls))
    }

    pub(super) fn describe(&self) -> Option<String> {
        match &self.kind {
            Kind::NoNulls | Kind::AllNull => None,
            Kind::Bitmap(_) => Some(format!("{} nulls as bitmap", self.nulls)),
            Kind::Runs { ends, .. } => Some(format!("{} nulls in {} runs", self.nulls, ends.len)),
        }
    }
}
