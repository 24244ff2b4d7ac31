//! Integers of 1, 2, 4 or 8 bytes: the encodings that everything else is built on.
//!
//! A *node* holds `len` integers of `width` bytes; both are known from its parent. It begins with its tag (`u8`, see
//! [`Encoding`]) and goes on by it. All arithmetic is modulo `2^(8 * width)`, so a decoder needs no sign.
//!
//! - `Constant`: the value, `width` bytes.
//! - `Plain`: at depth zero `align64`; then `len * width` bytes.
//! - `BitPacked`: see [`packed`].
//! - `Mixed`: see [`mixed`].
//! - `Delta`: see [`delta`].
//! - `RunLength`: see [`runs`].
//! - `Sparse` and `Patched`: see [`patched`].
//! - `Pco`: see [`pcodec`].
//! - `Zstd`: see [`zstd_ints`].
//! - `EliasFano`: see [`elias_fano`].
//! - `Distinct`: see [`distinct`].
//!
//! Nodes nest at most three deep: a node at depth 2 is `Constant`, `Plain`, `BitPacked`, `Mixed`, `Zstd` or `EliasFano`; `Pco`
//! is written at depth 0 only. A node of no integers is a `Constant`.

mod choose;
pub(crate) mod delta;
mod distinct;
mod elias_fano;
mod fused;
pub(crate) mod mixed;
pub(crate) mod packed;
pub(crate) mod patched;
pub(crate) mod pcodec;
pub(crate) mod runs;
pub(crate) mod zstd_ints;

use arrow_buffer::{BooleanBuffer, Buffer};

pub(crate) use choose::{encode, encode_as, encode_plain};

use crate::bitpack::{Lane, VECTOR};
use crate::bits;
use crate::encoding::{Effort, Encoding};
use crate::error::{EncodingError, Result};
use crate::physical::{IntKind, to_f64};
use crate::recipe::Choice;
use crate::scratch::Scratch;
use crate::value_set::ValueSet;
use crate::wire::{Reader, put_int};

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Ints {
    pub(crate) kind: IntKind,
    pub(crate) len: usize,
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Constant(u64),
    Plain(Buffer),
    Packed(packed::Packed),
    Mixed(mixed::Mixed),
    Delta(delta::Delta),
    Runs(runs::Runs),
    Patched(patched::Patched),
    Pco(pcodec::Pco),
    ZstdInts(zstd_ints::ZstdInts),
    EliasFano(elias_fano::EliasFano),
    Distinct(distinct::Distinct),
}

/// Integers of a set that are compared with one after the other, at most.
const FEW: usize = 16;

/// Whether a raw number is in a set that is no negation.
fn holds(set: &ValueSet, kind: IntKind, raw: u64) -> bool {
    match set {
        ValueSet::FloatRange { .. } | ValueSet::FloatSet(_) => set.holds_float(to_f64(raw, kind.width)),
        _ => set.holds_int(kind.value(raw)),
    }
}

/// The bit of a set for a raw integer; those past its end are no members.
#[inline(always)]
fn bit(bits: &BooleanBuffer, kind: IntKind, raw: u64) -> bool {
    usize::try_from(kind.value(raw)).is_ok_and(|at| at < bits.len() && bits.value(at))
}

/// The vectors of a block that are wanted, or all of them.
pub(crate) type Wanted<'a> = Option<&'a [bool]>;

/// Whether vector `at` is wanted.
pub(crate) fn is_wanted(wanted: Wanted<'_>, at: usize) -> bool {
    wanted.is_none_or(|wanted| wanted.get(at).copied().unwrap_or(true))
}

impl Ints {
    /// Parses a node of `len` integers.
    pub(crate) fn parse(kind: IntKind, len: usize, depth: u8, reader: &mut Reader<'_>) -> Result<Self> {
        let tag = reader.encoding()?;
        Self::parse_tagged(tag, kind, len, depth, reader)
    }

    /// Parses a node whose tag is already read.
    pub(crate) fn parse_tagged(
        tag: Encoding,
        kind: IntKind,
        len: usize,
        depth: u8,
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let nests = matches!(
            tag,
            Encoding::Delta | Encoding::RunLength | Encoding::Sparse | Encoding::Patched | Encoding::Distinct
        );
        if depth > 2 || (nests && depth > 1) {
            return Err(EncodingError::corrupt("encodings nest too deep"));
        }
        let node = match tag {
            Encoding::Constant => Node::Constant(kind.extend(reader.int(kind.width)?)),
            Encoding::Plain => {
                if depth == 0 {
                    reader.align64()?;
                }
                let size =
                    len.checked_mul(usize::from(kind.width)).ok_or_else(|| EncodingError::corrupt("too long"))?;
                Node::Plain(reader.take(size)?)
            }
            Encoding::BitPacked => Node::Packed(packed::Packed::parse(kind, len, reader)?),
            Encoding::Mixed => Node::Mixed(mixed::Mixed::parse(kind, len, reader)?),
            Encoding::Delta => Node::Delta(delta::Delta::parse(kind, len, depth, reader)?),
            Encoding::RunLength => Node::Runs(runs::Runs::parse(kind, len, depth, reader)?),
            Encoding::Sparse | Encoding::Patched => Node::Patched(patched::Patched::parse(kind, len, depth, reader)?),
            Encoding::Pco => Node::Pco(pcodec::Pco::parse(reader)?),
            Encoding::Zstd => Node::ZstdInts(zstd_ints::ZstdInts::parse(kind, len, reader)?),
            Encoding::EliasFano => Node::EliasFano(elias_fano::EliasFano::parse(kind, len, reader)?),
            Encoding::Distinct => Node::Distinct(distinct::Distinct::parse(kind, len, depth, reader)?),
            _ => return Err(EncodingError::corrupt(format!("{} is no encoding of integers", tag.name()))),
        };
        Ok(Self { kind, len, node })
    }

    /// The node's encoding.
    pub(crate) fn encoding(&self) -> Encoding {
        match &self.node {
            Node::Constant(_) => Encoding::Constant,
            Node::Plain(_) => Encoding::Plain,
            Node::Packed(_) => Encoding::BitPacked,
            Node::Mixed(_) => Encoding::Mixed,
            Node::Delta(_) => Encoding::Delta,
            Node::Runs(_) => Encoding::RunLength,
            Node::Patched(patched) => patched.encoding(),
            Node::Pco(_) => Encoding::Pco,
            Node::ZstdInts(_) => Encoding::Zstd,
            Node::EliasFano(_) => Encoding::EliasFano,
            Node::Distinct(_) => Encoding::Distinct,
        }
    }

    /// The node's encoding and those of the nodes within.
    pub(crate) fn choice(&self) -> Choice {
        let inner = match &self.node {
            Node::Delta(delta) => delta.choices(),
            Node::Runs(runs) => runs.choices(),
            Node::Distinct(distinct) => distinct.choices(),
            _ => Vec::new(),
        };
        Choice { encoding: self.encoding(), inner }
    }

    /// The node and those below it, for people.
    pub(crate) fn describe(&self) -> String {
        let name = self.encoding().name();
        match &self.node {
            Node::Constant(_) | Node::Plain(_) | Node::Pco(_) | Node::ZstdInts(_) => name.to_owned(),
            Node::Packed(packed) => format!("{name} {}", packed.describe()),
            Node::Mixed(mixed) => format!("{name} {}", mixed.describe()),
            Node::Delta(delta) => format!("{name}({})", delta.describe()),
            Node::Runs(runs) => format!("{name}({})", runs.describe()),
            Node::Patched(patched) => format!("{name}({})", patched.describe()),
            Node::EliasFano(increasing) => format!("{name} {}", increasing.describe()),
            Node::Distinct(distinct) => format!("{name}({})", distinct.describe()),
        }
    }

    /// The bytes of a plain node.
    pub(crate) fn as_plain(&self) -> Option<&Buffer> {
        match &self.node {
            Node::Plain(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The value of a constant node, raw.
    pub(crate) fn as_constant(&self) -> Option<u64> {
        match &self.node {
            Node::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// The first value of a node of increasing ones, and a bitmap with a one for each that is so much more, if it is one.
    fn as_bitmap(&self) -> Option<(u64, &[u8])> {
        match &self.node {
            Node::EliasFano(increasing) => increasing.as_bitmap(),
            _ => None,
        }
    }

    /// Decodes the wanted vectors, at least; the others hold anything. The result has `len` values.
    pub(crate) fn decode<T: Lane>(&self, wanted: Wanted<'_>) -> Result<Vec<T>> {
        let mut out = Vec::new();
        if out.try_reserve_exact(self.len).is_err() {
            return Err(EncodingError::corrupt(format!("no memory for {} values", self.len)));
        }
        match &self.node {
            Node::Constant(value) => out.resize(self.len, T::truncate(*value)),
            _ => {
                out.resize(self.len, T::default());
                self.decode_into(wanted, &mut out)?;
            }
        }
        Ok(out)
    }

    /// As [`Ints::decode`], for values that are soon gone.
    pub(crate) fn decode_scratch<T: Lane>(&self, wanted: Wanted<'_>) -> Result<Scratch<T>> {
        let mut out = Scratch::new(self.len)?;
        self.decode_into(wanted, &mut out)?;
        Ok(out)
    }

    /// Decodes into a slice of `len` values.
    fn decode_into<T: Lane>(&self, wanted: Wanted<'_>, out: &mut [T]) -> Result<()> {
        match &self.node {
            Node::Constant(value) => out.fill(T::truncate(*value)),
            Node::Plain(bytes) => decode_plain(bytes, self.kind.width, out),
            Node::Packed(packed) => packed.decode(wanted, out),
            Node::Mixed(mixed) => mixed.decode(wanted, out),
            Node::Delta(delta) => delta.decode(wanted, out)?,
            Node::Runs(runs) => runs.decode(out)?,
            Node::Patched(patched) => patched.decode(wanted, out)?,
            Node::Pco(pco) => pco.decode(self.kind, out)?,
            Node::ZstdInts(zstd_ints) => zstd_ints.decode(out)?,
            Node::EliasFano(increasing) => increasing.decode(out),
            Node::Distinct(distinct) => distinct.decode(wanted, out)?,
        }
        Ok(())
    }

    /// The values that are in a set that is no negation, without decoding them all; none where decoding is as good. A set of
    /// floats takes them for the bits of floats.
    pub(crate) fn evaluate(&self, set: &ValueSet) -> Result<Option<BooleanBuffer>> {
        Ok(match &self.node {
            Node::Constant(value) => Some(bits::all(self.len, holds(set, self.kind, *value))),
            Node::Packed(packed) => Some(packed.evaluate(self.kind, self.len, set)),
            Node::Mixed(mixed) => Some(mixed.evaluate(self.kind, self.len, set)),
            Node::Runs(runs) => Some(runs.evaluate(self.len, set)?),
            Node::Patched(patched) => patched.evaluate(set)?,
            Node::Distinct(distinct) => Some(distinct.evaluate(self.len, set)?),
            Node::Plain(_) | Node::Delta(_) | Node::Pco(_) | Node::ZstdInts(_) | Node::EliasFano(_) => None,
        })
    }

    /// Whether to evaluate it is most of what decoding it is: decompressing it, or finding where its runs end.
    pub(crate) fn evaluates_by_decoding(&self) -> bool {
        match &self.node {
            Node::Pco(_) | Node::ZstdInts(_) | Node::Runs(_) => true,
            Node::Patched(patched) => patched.evaluates_by_decoding(),
            Node::Distinct(distinct) => distinct.evaluates_by_decoding(),
            _ => false,
        }
    }

    /// As [`Ints::evaluate`], decoding where it must.
    fn evaluate_always(&self, set: &ValueSet) -> Result<BooleanBuffer> {
        if let Some(answer) = self.evaluate(set)? {
            return Ok(answer);
        }
        let values = self.decode_raw()?;
        Ok(bits::map_bits(&values, |raw| holds(set, self.kind, raw)))
    }

    /// All values, extended by their sign.
    pub(crate) fn decode_raw(&self) -> Result<Scratch<u64>> {
        let mut values: Scratch<u64> = self.decode_scratch(None)?;
        if self.kind.width < 8 {
            values.iter_mut().for_each(|value| *value = self.kind.extend(*value));
        }
        Ok(values)
    }
}

fn decode_plain<T: Lane>(bytes: &[u8], width: u8, out: &mut [T]) {
    for (slot, bytes) in out.iter_mut().zip(bytes.chunks_exact(usize::from(width.max(1)))) {
        let mut wide = [0; 8];
        let width = bytes.len().min(8);
        wide[..width].copy_from_slice(&bytes[..width]);
        *slot = T::truncate(u64::from_le_bytes(wide));
    }
}

/// Writes a constant node.
pub(crate) fn put_constant(value: u64, kind: IntKind, out: &mut Vec<u8>) {
    out.push(Encoding::Constant.tag());
    put_int(out, value, kind.width);
}

/// Writes positions, counts or codes as a nested node.
pub(crate) fn encode_nested(values: &[u64], kind: IntKind, depth: u8, effort: Effort, out: &mut Vec<u8>) {
    encode(values, kind, depth, effort, out.len(), out);
}

/// As [`encode_nested`], as another node was written if there is one and nothing speaks against it.
pub(crate) fn encode_nested_as(
    like: Option<&Choice>,
    values: &[u64],
    kind: IntKind,
    depth: u8,
    effort: Effort,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    if !like.is_some_and(|like| encode_as(like, values, kind, depth, effort, start, out)) {
        encode(values, kind, depth, effort, start, out);
    }
}

/// The number of vectors that `len` values fill or begin.
pub(crate) fn vectors(len: usize) -> usize {
    len.div_ceil(VECTOR)
}

/// Decodes integers to little-endian bytes.
pub(crate) fn decode_ints(values: &Ints, wanted: Option<&[bool]>, selection: Option<&BooleanBuffer>) -> Result<Buffer> {
    fn typed<T: Lane>(values: &Ints, wanted: Option<&[bool]>, selection: Option<&BooleanBuffer>) -> Result<Buffer> {
        Ok(Buffer::from_vec(match selection {
            None => values.decode::<T>(wanted)?,
            Some(selection) => bits::filter_values(&values.decode_scratch::<T>(wanted)?, selection),
        }))
    }
    let width = values.kind.width;
    if let (Some(plain), None) = (values.as_plain(), selection)
        && plain.as_ptr().addr().is_multiple_of(usize::from(width))
    {
        return Ok(plain.clone());
    }
    match width {
        1 => typed::<u8>(values, wanted, selection),
        2 => typed::<u16>(values, wanted, selection),
        4 => typed::<u32>(values, wanted, selection),
        _ => typed::<u64>(values, wanted, selection),
    }
}
