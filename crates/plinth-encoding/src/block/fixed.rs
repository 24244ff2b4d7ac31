//! Values of any fixed width: `Fixed(width)`, and decimals (`Wide(16)` and `Wide(32)`).
//!
//! - `Constant`: the value, `width` bytes.
//! - `Plain`: `align64`, then `len * width` bytes.
//! - `Zstd`: a section as [`crate::frame`] describes, of `len * width` bytes.
//! - `Narrowed` (only `Wide`, where all values fit `i64`): an [`crate::ints`] node of `len` signed integers of 8 bytes at
//!   depth 0; values are extended by their sign.

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::bits;
use crate::encoding::{Effort, Encoding, cost};
use crate::error::{EncodingError, Result};
use crate::frame::Frame;
use crate::ints::{Ints, Wanted};
use crate::physical::{IntKind, wide_value};
use crate::recipe::Choice;
use crate::scratch::Scratch;
use crate::value_set::ValueSet;
use crate::wire::{Reader, put_align64};

const I64: IntKind = IntKind { width: 8, signed: true };

/// Parsed values.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    len: usize,
    width: usize,
    wide: bool,
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Constant(Buffer),
    Plain(Buffer),
    Zstd(Frame),
    Narrowed(Ints),
}

/// Writes `len` values of `width` bytes.
pub(super) fn encode(
    bytes: &[u8],
    width: usize,
    len: usize,
    effort: Effort,
    start: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let first = bytes.get(..width).unwrap_or_default();
    if len == 0 || width == 0 || bytes.chunks_exact(width).all(|value| value == first) {
        out.push(Encoding::Constant.tag());
        out.extend_from_slice(first);
        return Ok(());
    }
    if let Some(frame) = Frame::compress(bytes, Frame::level(effort))?
        && cost(Encoding::Zstd, frame.len(), effort) < cost(Encoding::Plain, bytes.len(), effort)
        && frame.len() * 10 < bytes.len() * 9
    {
        out.push(Encoding::Zstd.tag());
        Frame::put(bytes.len(), &frame, out);
        return Ok(());
    }
    out.push(Encoding::Plain.tag());
    put_align64(out, start);
    out.extend_from_slice(bytes);
    Ok(())
}

/// Writes two's complement integers of 16 or 32 bytes.
pub(super) fn encode_wide(bytes: &[u8], width: u8, effort: Effort, start: usize, out: &mut Vec<u8>) -> Result<()> {
    let width = usize::from(width);
    if width != 16 && width != 32 {
        return Err(EncodingError::invalid(format!("wide integers of {width} bytes")));
    }
    match narrow(bytes, width) {
        Some(values) => {
            out.push(Encoding::Narrowed.tag());
            crate::ints::encode(&values, I64, 0, effort, start, out);
            Ok(())
        }
        None => encode(bytes, width, bytes.len() / width, effort, start, out),
    }
}

/// Integers of 16 or 32 bytes, if all fit 8.
fn narrow(bytes: &[u8], width: usize) -> Option<Vec<u64>> {
    bytes.chunks_exact(width).map(|value| i64::try_from(wide_value(value)?).ok().map(i64::cast_unsigned)).collect()
}

/// Writes integers of 16 or 32 bytes as others of their column were, if nothing speaks against it; else writes nothing and says so.
pub(super) fn encode_wide_as(
    like: &Choice,
    bytes: &[u8],
    width: u8,
    effort: Effort,
    start: usize,
    out: &mut Vec<u8>,
) -> bool {
    let (Encoding::Narrowed, Some(inner)) = (like.encoding, like.inner.first()) else { return false };
    let Some(values) = narrow(bytes, usize::from(width.max(1))) else { return false };
    let at = out.len();
    out.push(Encoding::Narrowed.tag());
    let written = crate::ints::encode_as(inner, &values, I64, 0, effort, start, out);
    if !written {
        out.truncate(at);
    }
    written
}

impl Fixed {
    pub(super) fn parse(tag: Encoding, width: usize, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let size = || len.checked_mul(width).ok_or_else(|| EncodingError::corrupt("a block too large"));
        let node = match tag {
            Encoding::Constant => Node::Constant(reader.take(width)?),
            Encoding::Plain => {
                reader.align64()?;
                Node::Plain(reader.take(size()?)?)
            }
            Encoding::Zstd => Node::Zstd(Frame::parse(Some(size()?), reader)?),
            _ => return Err(EncodingError::corrupt(format!("{} is no encoding of fixed-size values", tag.name()))),
        };
        Ok(Self { len, width, wide: false, node })
    }

    pub(super) fn parse_wide(tag: Encoding, width: u8, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let width = usize::from(width);
        if tag == Encoding::Narrowed {
            let ints = Ints::parse(I64, len, 0, reader)?;
            return Ok(Self { len, width, wide: true, node: Node::Narrowed(ints) });
        }
        Ok(Self { wide: true, ..Self::parse(tag, width, len, reader)? })
    }

    /// How narrowed integers are stored; there is little to choose for others.
    pub(super) fn choice(&self) -> Option<Choice> {
        match &self.node {
            Node::Narrowed(ints) => Some(Choice { encoding: Encoding::Narrowed, inner: vec![ints.choice()] }),
            _ => None,
        }
    }

    /// The encoding; that of the integers where they were narrowed, which says more.
    pub(super) fn encoding(&self) -> Encoding {
        match &self.node {
            Node::Constant(_) => Encoding::Constant,
            Node::Plain(_) => Encoding::Plain,
            Node::Zstd(_) => Encoding::Zstd,
            Node::Narrowed(_) => Encoding::Narrowed,
        }
    }

    pub(super) fn describe(&self) -> String {
        match &self.node {
            Node::Narrowed(ints) => format!("narrowed({})", ints.describe()),
            _ => self.encoding().name().to_owned(),
        }
    }

    /// The integers, if all values are stored as such of 64 bits.
    pub(super) fn narrowed(&self) -> Option<&Ints> {
        if let Node::Narrowed(ints) = &self.node { Some(ints) } else { None }
    }

    pub(super) fn decode(&self, wanted: Wanted<'_>, selection: Option<&BooleanBuffer>) -> Result<Buffer> {
        let count = selection.map_or(self.len, BooleanBuffer::count_set_bits);
        match &self.node {
            Node::Constant(value) => repeat(value, count),
            Node::Plain(bytes) => Ok(self.select(bytes.clone(), selection)),
            Node::Zstd(frame) => Ok(self.select(Buffer::from_vec(frame.decompress()?), selection)),
            Node::Narrowed(ints) => {
                let values: Scratch<u64> = ints.decode_scratch(wanted)?;
                let selected = selection.map(|selection| bits::filter_values(&values, selection));
                Ok(widen(selected.as_deref().unwrap_or(&values), self.width))
            }
        }
    }

    /// The selected values, aligned as Arrow wants the type.
    fn select(&self, bytes: Buffer, selection: Option<&BooleanBuffer>) -> Buffer {
        match selection {
            None if !self.wide || bytes.as_ptr().align_offset(16) == 0 => bytes,
            None => copy_aligned(&bytes),
            Some(selection) => {
                let mut out = Vec::with_capacity(selection.count_set_bits() * self.width);
                for at in selection.set_indices() {
                    out.extend_from_slice(bytes.get(at * self.width..(at + 1) * self.width).unwrap_or_default());
                }
                if self.wide { copy_aligned(&out) } else { Buffer::from_vec(out) }
            }
        }
    }

    pub(super) fn evaluate(&self, set: &ValueSet) -> Result<Option<BooleanBuffer>> {
        Ok(match &self.node {
            Node::Constant(value) => {
                let holds = if self.wide { set.holds_wide(value) } else { set.holds_bytes(value) };
                Some(bits::all(self.len, holds))
            }
            Node::Narrowed(ints) => ints.evaluate(set)?,
            Node::Plain(_) | Node::Zstd(_) => None,
        })
    }
}

/// A copy that begins where 16-byte integers may.
pub(crate) fn copy_aligned(bytes: &[u8]) -> Buffer {
    let words: Vec<u128> = bytes
        .chunks(16)
        .map(|chunk| {
            let mut word = [0; 16];
            word[..chunk.len()].copy_from_slice(chunk);
            u128::from_le_bytes(word)
        })
        .collect();
    Buffer::from_vec(words).slice_with_length(0, bytes.len())
}

fn repeat(value: &[u8], count: usize) -> Result<Buffer> {
    let size = value.len().checked_mul(count).ok_or_else(|| EncodingError::corrupt("a block too large"))?;
    let mut out: Vec<u128> = Vec::new();
    if out.try_reserve_exact(size.div_ceil(16)).is_err() {
        return Err(EncodingError::corrupt(format!("no memory for {count} values")));
    }
    if value.len().is_multiple_of(16) {
        for _ in 0..count {
            out.extend(value.as_chunks::<16>().0.iter().map(|word| u128::from_le_bytes(*word)));
        }
        return Ok(Buffer::from_vec(out));
    }
    drop(out);
    Ok(Buffer::from_vec(value.repeat(count)))
}

fn widen(values: &[u64], width: usize) -> Buffer {
    let wide = values.iter().map(|&value| i128::from(value.cast_signed()));
    if width == 16 {
        return Buffer::from_vec(wide.collect::<Vec<i128>>());
    }
    Buffer::from_vec(wide.flat_map(|value| [value, value >> 127]).collect::<Vec<i128>>())
}

/// Puts values of `width` bytes at the set positions of `valid`, zeros elsewhere; `size` bytes in all.
pub(super) fn expand(stored: &[u8], width: usize, valid: &BooleanBuffer, size: usize) -> Buffer {
    fn typed<const W: usize, T: arrow_buffer::ArrowNativeType>(
        stored: &[u8],
        valid: &BooleanBuffer,
        load: impl Fn([u8; W]) -> T,
    ) -> Buffer {
        let mut out = vec![T::default(); valid.len()];
        for (to, value) in valid.set_indices().zip(stored.as_chunks::<W>().0) {
            out[to] = load(*value);
        }
        Buffer::from_vec(out)
    }
    match width {
        1 => typed(stored, valid, u8::from_le_bytes),
        2 => typed(stored, valid, u16::from_le_bytes),
        4 => typed(stored, valid, u32::from_le_bytes),
        8 => typed(stored, valid, u64::from_le_bytes),
        16 => typed(stored, valid, i128::from_le_bytes),
        _ => {
            let mut out = vec![0; size];
            for (to, value) in valid.set_indices().zip(stored.chunks_exact(width.max(1))) {
                if let Some(slot) = out.get_mut(to * width..(to + 1) * width) {
                    slot.copy_from_slice(value);
                }
            }
            if width.is_multiple_of(16) { copy_aligned(&out) } else { Buffer::from_vec(out) }
        }
    }
}
