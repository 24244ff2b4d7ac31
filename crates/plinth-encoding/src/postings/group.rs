//! A group: the lists of some neighbouring codes, or a part of one.

use std::sync::Arc;

use arrow_buffer::Buffer;

use super::gaps::{self, Classes};
use super::list::{BitWriter, PADDING, Shape, decode, load};
use super::{GROUP_BITS, corrupt};
use crate::encoding::Effort;
use crate::error::Result;
use crate::wire::{Reader, put_varint};

/// A group in memory; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Group {
    base: u64,
    universe: u64,
    /// If lists are gaps.
    classes: Option<Arc<Classes>>,
    /// Where each list is, then the group's bytes and as many more as reading a word wants: together, because a search for one
    /// list waits for little else than memory.
    bytes: Arc<[u8]>,
    codes: u32,
}

/// Where a list is.
#[derive(Clone, Copy, Debug)]
struct List {
    /// First bit, counted from the group's first; of gaps, of what their classes do not tell.
    start: u32,
    rows: u32,
}

impl List {
    /// Bytes it takes.
    const LEN: usize = 8;

    fn to_bytes(self) -> [u8; Self::LEN] {
        (u64::from(self.rows) << 32 | u64::from(self.start)).to_le_bytes()
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "both halves are what is asked for")]
    fn of_bytes(bytes: [u8; Self::LEN]) -> Self {
        let both = u64::from_le_bytes(bytes);
        Self { start: both as u32, rows: (both >> 32) as u32 }
    }
}

/// Added to the width of lengths where lists are gaps.
const GAPS: u8 = 0x80;

/// Encodes a group: how many rows each list has, and the rows of all, list by list. Gaps take longer to read: they have to
/// save over a hundredth, where size is what counts.
pub(super) fn encode(lengths: &[u64], rows: &[u64], effort: Effort) -> Vec<u8> {
    let split = encode_as(false, lengths, rows);
    if effort != Effort::Compact {
        return split;
    }
    let gaps = encode_as(true, lengths, rows);
    if gaps.len() + split.len() / 100 < split.len() { gaps } else { split }
}

fn encode_as(gaps: bool, lengths: &[u64], rows: &[u64]) -> Vec<u8> {
    let smallest = rows.iter().min().copied().unwrap_or(0);
    let universe = rows.iter().max().map_or(0, |largest| largest - smallest + 1);
    let shortest = lengths.iter().min().copied().unwrap_or(0);
    let longest = lengths.iter().max().copied().unwrap_or(0);
    let width = u64::BITS - (longest - shortest).leading_zeros();
    let mut out = Vec::new();
    put_varint(&mut out, smallest);
    put_varint(&mut out, universe.saturating_sub(1));
    put_varint(&mut out, shortest);
    out.push(u8::try_from(width).unwrap_or(u8::MAX) | if gaps { GAPS } else { 0 });
    let mut bits = BitWriter::after(out);
    lengths.iter().for_each(|length| bits.put(length - shortest, width));
    let out = bits.finish();
    if gaps {
        return gaps::put(lengths, rows, smallest, out);
    }
    let mut bits = BitWriter::after(out);
    let mut rest = rows;
    for &length in lengths {
        let (list, after) = rest.split_at(usize::try_from(length).unwrap_or(usize::MAX).min(rest.len()));
        bits.put_list(list, smallest, universe);
        rest = after;
    }
    bits.finish()
}

impl Group {
    /// Parses a group of so many codes and rows of a column of so many rows.
    pub(super) fn open(bytes: &Buffer, codes: usize, rows: u64, column_rows: u64) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let (base, span, shortest, form) = (reader.varint()?, reader.varint()?, reader.varint()?, reader.u8()?);
        let (gaps, width) = (form & GAPS > 0, form & !GAPS);
        let last = base.checked_add(span);
        if last.is_none_or(|last| last >= column_rows) && rows > 0 {
            return Err(corrupt("a group with rows that the column has not"));
        }
        // A group of no rows has no smallest.
        let universe = if rows == 0 { 0 } else { span + 1 };
        if u32::from(width) > u64::BITS - GROUP_BITS.leading_zeros() || shortest > GROUP_BITS {
            return Err(corrupt("a group with more rows than one may have"));
        }
        let lengths = reader.take((codes * usize::from(width)).div_ceil(8))?;
        let lists_at = bytes.len() - reader.left();
        let Some(whole) = u32::try_from(bytes.len()).ok().and_then(|len| len.checked_mul(8)) else {
            return Err(corrupt("a group that is too long"));
        };
        let mut lists = Vec::with_capacity(codes);
        let mut counted = 0;
        for i in 0..codes as u64 {
            let more = if width == 0 { 0 } else { load_number(&lengths, i, width) };
            let length = shortest + more;
            counted += length;
            let list_rows = u32::try_from(length).ok().filter(|_| length <= universe && counted <= rows);
            let list_rows = list_rows.ok_or_else(|| corrupt("a group with more rows than the directory says"))?;
            lists.push(List { start: 0, rows: list_rows });
        }
        if counted != rows {
            return Err(corrupt("a group with fewer rows than the directory says"));
        }
        let sizes = lists.iter().map(|list| list.rows);
        let classes = gaps.then(|| Classes::read(bytes, lists_at, sizes)).transpose()?;
        let mut bit = classes.as_ref().map_or(lists_at, |&(_, end)| end) as u64 * 8;
        let classes = classes.map(|(classes, _)| classes);
        for (i, list) in lists.iter_mut().enumerate() {
            list.start = u32::try_from(bit).unwrap_or(u32::MAX);
            bit = bit.saturating_add(match &classes {
                Some(classes) => classes.bits(i, list.rows),
                None => Shape::of(list.rows.into(), universe).bits(list.rows.into(), universe),
            });
            if bit > whole.into() {
                return Err(corrupt("a group that ends early"));
            }
        }
        if bit.div_ceil(8) != bytes.len() as u64 {
            return Err(corrupt("a group with bytes after its end"));
        }
        let mut all = Vec::with_capacity(lists.len() * List::LEN + bytes.len() + PADDING);
        all.extend(lists.iter().flat_map(|list| list.to_bytes()));
        all.extend_from_slice(bytes);
        all.resize(all.len() + PADDING, 0);
        let codes = u32::try_from(lists.len()).unwrap_or(u32::MAX);
        Ok(Self { base, universe, classes: classes.map(Arc::new), bytes: all.into(), codes })
    }

    #[inline]
    fn list(&self, i: usize) -> Option<List> {
        let lists = self.bytes.as_chunks().0.get(..self.codes as usize)?;
        lists.get(i).map(|&bytes| List::of_bytes(bytes))
    }

    /// How many rows the `i`-th list has.
    pub(super) fn list_rows(&self, i: usize) -> u64 {
        self.list(i).map_or(0, |list| list.rows.into())
    }

    /// Appends the rows of the `i`-th list.
    #[inline]
    pub(super) fn rows(&self, i: usize, out: &mut Vec<u64>) -> Result<()> {
        let Some(List { start, rows }) = self.list(i) else { return Ok(()) };
        let bytes = self.bytes.get(self.codes as usize * List::LEN..).unwrap_or_default();
        match &self.classes {
            None => decode(bytes, start.into(), rows.into(), self.universe, self.base, out),
            Some(classes) => classes.decode(i, rows, (bytes, start.into()), self.universe, self.base, out),
        }
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let classes = self.classes.as_ref().map_or(0, |classes| classes.memory());
        size_of::<Self>() + classes + self.bytes.len()
    }

    /// Whether there is no clone of it.
    pub(super) fn is_only(&self) -> bool {
        Arc::strong_count(&self.bytes) == 1
    }
}

/// Number `i` of a stream of numbers of `width` bits.
fn load_number(bytes: &Buffer, i: u64, width: u8) -> u64 {
    let bit = i * u64::from(width);
    let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
    let mut word = [0; PADDING];
    let rest = bytes.get(at..).unwrap_or_default();
    let here = rest.len().min(PADDING);
    word[..here].copy_from_slice(&rest[..here]);
    load(&word, bit % 8) & ((1 << width) - 1)
}
