//! Byte strings.
//!
//! A node holds `len` strings; it begins with its tag and goes on by it. *Lengths* are an [`crate::ints`] node of `len`
//! unsigned integers of 4 bytes at depth 2; the *heap* is the strings end to end.
//!
//! - `Constant`: `size` (varint), the bytes.
//! - `Plain`: lengths; `total` (varint), the heap.
//! - `Fsst`: lengths; a section of the heap as [`fsst`] describes.
//! - `Zstd`: lengths; a section of the heap as [`crate::frame`] describes.
//! - `Dictionary` (only at depth 0): `distinct` (varint, 1 to `len`); a node of so many strings at depth 1, in order of first
//!   use; a node of `len` unsigned integers of 4 bytes ([`crate::ints`], depth 1), the position of each string among them.

mod build;
mod choose;
mod fsst;
mod rows;

use arrow_buffer::{BooleanBuffer, Buffer};

pub(crate) use choose::{encode, encode_as};

use crate::bitpack::VECTOR;
use crate::bits::{self, Words};
use crate::encoding::Encoding;
use crate::error::{EncodingError, Result};
use crate::frame::Frame;
use crate::ints::{Ints, Wanted, is_wanted};
use crate::physical::IntKind;
use crate::recipe::Choice;
use crate::scratch::Scratch;
use crate::value_set::ValueSet;
use crate::views::Views;
use crate::wire::{Reader, narrow};

/// The most bytes the strings of a block may have: Arrow's views address with 32 bits, and others' with 31.
const MOST_BYTES: usize = i32::MAX as usize;

/// Parsed strings.
#[derive(Clone, Debug)]
pub(crate) struct Strings {
    len: usize,
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Constant(Buffer),
    Heap { lengths: Ints, heap: Heap },
    Dictionary { distinct: Box<Strings>, codes: Ints },
}

#[derive(Clone, Debug)]
enum Heap {
    Plain(Buffer),
    Fsst(fsst::Fsst),
    Zstd(Frame),
}

impl Strings {
    pub(crate) fn parse(tag: Encoding, len: usize, depth: u8, reader: &mut Reader<'_>) -> Result<Self> {
        let node = match tag {
            Encoding::Constant => {
                let size = reader.count(MOST_BYTES, "bytes")?;
                Node::Constant(reader.take(size)?)
            }
            Encoding::Plain | Encoding::Fsst | Encoding::Zstd => {
                let lengths = Ints::parse(IntKind::U32, len, 2, reader)?;
                let heap = match tag {
                    Encoding::Plain => {
                        let total = narrow(reader.varint()?)?;
                        Heap::Plain(reader.take(total)?)
                    }
                    Encoding::Fsst => Heap::Fsst(fsst::Fsst::parse(len, reader)?),
                    _ => Heap::Zstd(Frame::parse(None, reader)?),
                };
                if heap.total() > MOST_BYTES {
                    return Err(EncodingError::corrupt(format!("a block with {} bytes of strings", heap.total())));
                }
                Node::Heap { lengths, heap }
            }
            Encoding::Dictionary if depth == 0 => {
                let count = reader.count(len, "distinct strings")?;
                let tag = Encoding::try_from(reader.u8()?)?;
                let distinct = Box::new(Self::parse(tag, count, 1, reader)?);
                Node::Dictionary { distinct, codes: Ints::parse(IntKind::U32, len, 1, reader)? }
            }
            _ => return Err(EncodingError::corrupt(format!("{} is no encoding of strings here", tag.name()))),
        };
        Ok(Self { len, node })
    }

    pub(crate) fn encoding(&self) -> Encoding {
        match &self.node {
            Node::Constant(_) => Encoding::Constant,
            Node::Heap { heap: Heap::Plain(_), .. } => Encoding::Plain,
            Node::Heap { heap: Heap::Fsst(_), .. } => Encoding::Fsst,
            Node::Heap { heap: Heap::Zstd(_), .. } => Encoding::Zstd,
            Node::Dictionary { .. } => Encoding::Dictionary,
        }
    }

    /// The encoding and those of the nodes within.
    pub(crate) fn choice(&self) -> Choice {
        let inner = match &self.node {
            Node::Dictionary { distinct, codes } => vec![distinct.choice(), codes.choice()],
            Node::Constant(_) | Node::Heap { .. } => Vec::new(),
        };
        Choice { encoding: self.encoding(), inner }
    }

    /// Bytes of the strings that views point into.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.node {
            Node::Constant(value) => value.len(),
            Node::Heap { heap, .. } => heap.total(),
            Node::Dictionary { distinct, .. } => distinct.heap_bytes(),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let name = self.encoding().name();
        match &self.node {
            Node::Constant(_) => name.to_owned(),
            Node::Heap { lengths, .. } => format!("{name}(lengths {})", lengths.describe()),
            Node::Dictionary { distinct, codes } => {
                format!("{name}({} x {}; codes {})", distinct.len, distinct.describe(), codes.describe())
            }
        }
    }

    /// Decodes all strings, or the selected ones, to views; `utf8` demands that they are UTF-8.
    pub(crate) fn decode(&self, wanted: Wanted<'_>, selection: Option<&BooleanBuffer>, utf8: bool) -> Result<Views> {
        let count = selection.map_or(self.len, BooleanBuffer::count_set_bits);
        match &self.node {
            Node::Constant(value) => {
                let one = build::build(value.clone(), &[value.len()], utf8)?;
                let view = one.views.first().copied().unwrap_or(0);
                let mut views = Vec::new();
                if views.try_reserve_exact(count).is_err() {
                    return Err(EncodingError::corrupt(format!("no memory for {count} views")));
                }
                views.resize(count, view);
                Ok(Views { views, buffers: one.buffers })
            }
            Node::Heap { lengths, heap } => {
                let lengths: Scratch<u32> = lengths.decode_scratch(None)?;
                heap.decode(&lengths, wanted, selection, utf8)
            }
            Node::Dictionary { distinct, codes } => {
                let Views { views, buffers } = distinct.decode(None, None, utf8)?;
                let codes: Scratch<u32> = codes.decode_scratch(wanted)?;
                let selected = selection.map(|selection| bits::filter_values(&codes, selection));
                let codes = selected.as_deref().unwrap_or(&codes);
                let most = codes.iter().copied().max().unwrap_or(0) as usize;
                if most >= views.len() {
                    return Err(EncodingError::corrupt(format!("code {most} of {} strings", views.len())));
                }
                let views = codes.iter().map(|&code| views.get(code as usize).copied().unwrap_or(0)).collect();
                Ok(Views { views, buffers })
            }
        }
    }

    /// Whether to evaluate it may be most of what decoding it is: decompressing it.
    pub(crate) fn evaluates_by_decoding(&self) -> bool {
        matches!(&self.node, Node::Heap { .. })
    }

    /// Which strings are in a set. The answers matter for a selection only, if there is one.
    pub(crate) fn evaluate(&self, set: &ValueSet, selection: Option<&BooleanBuffer>) -> Result<BooleanBuffer> {
        match &self.node {
            Node::Constant(value) => Ok(bits::all(self.len, set.holds_bytes(value))),
            Node::Heap { lengths, heap } => {
                let lengths: Scratch<u32> = lengths.decode_scratch(None)?;
                // There is one empty value only, so that its length tells it.
                if set.byte_lengths().as_deref() == Some(&[0]) {
                    return Ok(bits::map_bits(&lengths, |len| len == 0));
                }
                let vectors = heap.vectors_with(&lengths, set, selection)?;
                if !vectors.contains(&true) {
                    return Ok(bits::all(self.len, false));
                }
                let (bytes, wanted) = heap.decompress(&lengths, Some(&vectors))?;
                Ok(rows::evaluate(set, &lengths, &bytes, wanted))
            }
            Node::Dictionary { distinct, codes } => {
                let holds = distinct.evaluate(set, None)?;
                if !holds.has_true() {
                    return Ok(bits::all(self.len, false));
                }
                match codes.evaluate(&ValueSet::of_codes(holds.clone()))? {
                    Some(answer) => Ok(answer),
                    None => {
                        let codes: Scratch<u32> = codes.decode_scratch(None)?;
                        Ok(bits::map_bits(&codes, |code| {
                            let code = code as usize;
                            code < holds.len() && holds.value(code)
                        }))
                    }
                }
            }
        }
    }

    /// Which strings can be in a set, judged without decompressing them; none if that says nothing.
    pub(crate) fn candidates(&self, set: &ValueSet) -> Result<Option<BooleanBuffer>> {
        let Node::Heap { lengths, heap } = &self.node else { return Ok(None) };
        let of_lengths = set.byte_lengths();
        if of_lengths.is_none() && !(matches!(heap, Heap::Fsst(_)) && set.contained().is_some()) {
            return Ok(None);
        }
        let lengths: Scratch<u32> = lengths.decode_scratch(None)?;
        let vectors = heap.vectors_with(&lengths, set, None)?;
        let mut candidates = Words::zeros(lengths.len());
        for (i, lengths) in lengths.chunks(VECTOR).enumerate().filter(|(i, _)| is_wanted(Some(&vectors), *i)) {
            for (row, len) in lengths.iter().enumerate() {
                let may = of_lengths.as_ref().is_none_or(|of_lengths| of_lengths.contains(len));
                candidates.put(i * VECTOR + row, may);
            }
        }
        Ok(Some(candidates.finish()))
    }
}

impl Heap {
    fn total(&self) -> usize {
        match self {
            Self::Plain(heap) => heap.len(),
            Self::Fsst(fsst) => fsst.total,
            Self::Zstd(frame) => frame.total,
        }
    }

    /// The vectors of which a selected string can be in a set, judged without decompressing them.
    fn vectors_with(&self, lengths: &[u32], set: &ValueSet, selection: Option<&BooleanBuffer>) -> Result<Vec<bool>> {
        let of_lengths = set.byte_lengths();
        let by_length: Vec<bool> = lengths
            .chunks(VECTOR)
            .enumerate()
            .map(|(i, lengths)| {
                selection.is_none_or(|selection| selection.slice(i * VECTOR, lengths.len()).has_true())
                    && of_lengths.as_ref().is_none_or(|wanted| lengths.iter().any(|len| wanted.contains(len)))
            })
            .collect();
        match (self, set.contained()) {
            (Self::Fsst(fsst), Some(needle)) if by_length.contains(&true) => {
                fsst.vectors_with(needle, Some(&by_length))
            }
            _ => Ok(by_length),
        }
    }

    /// The bytes of the wanted vectors, end to end, and which those are: all where all are decompressed as one.
    fn decompress<'w>(&self, lengths: &[u32], wanted: Wanted<'w>) -> Result<(Buffer, Wanted<'w>)> {
        let sizes = || lengths.chunks(VECTOR).map(|v| v.iter().map(|&len| u64::from(len)).sum::<u64>());
        let total: u64 = sizes().sum();
        if narrow(total)? != self.total() {
            return Err(EncodingError::corrupt(format!("strings of {total} bytes in a heap of {}", self.total())));
        }
        Ok(match self {
            Self::Plain(heap) => (heap.clone(), None),
            Self::Zstd(frame) => (Buffer::from_vec(frame.decompress()?), None),
            Self::Fsst(fsst) => {
                let wanted_sizes = sizes()
                    .enumerate()
                    .map(|(i, size)| is_wanted(wanted, i).then(|| narrow(size)).transpose())
                    .collect::<Result<Vec<_>>>()?;
                (Buffer::from_vec(fsst.decompress(&wanted_sizes)?), wanted)
            }
        })
    }

    fn decode(
        &self,
        lengths: &[u32],
        wanted: Wanted<'_>,
        selection: Option<&BooleanBuffer>,
        utf8: bool,
    ) -> Result<Views> {
        let (heap, wanted) = self.decompress(lengths, wanted)?;
        match selection {
            None => build::build(heap, lengths, utf8),
            Some(selection) => build::build_selected(heap, lengths, wanted, selection, utf8),
        }
    }
}
