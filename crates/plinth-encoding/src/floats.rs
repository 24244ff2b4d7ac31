//! IEEE 754 numbers of 2, 4 or 8 bytes, kept bit for bit.
//!
//! A block of floats begins with its tag:
//!
//! - `Alp` (4 and 8 bytes): see [`alp`].
//! - `Pco` (4 and 8 bytes): as in [`crate::ints::pcodec`], of `f32` or `f64`.
//! - any other: an [`crate::ints`] node at depth 0 of the bit patterns as unsigned integers of the same width.

pub(crate) mod alp;

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::bits;
use crate::encoding::{Effort, Encoding, cost};
use crate::error::{EncodingError, Result};
use crate::ints::pcodec::{self, Pco};
use crate::ints::{Ints, Wanted, decode_ints};
use crate::physical::IntKind;
use crate::recipe::Choice;
use crate::value_set::ValueSet;
use crate::wire::Reader;

/// Parsed floats.
#[derive(Clone, Debug)]
pub(crate) struct Floats {
    width: u8,
    len: usize,
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Bits(Ints),
    Alp(alp::Alp),
    Pco(Pco),
}

/// The share of the values that pco is tried on first.
const TRIED: usize = 4;

/// Writes floats, given as bit patterns.
pub(crate) fn encode(values: &[u64], width: u8, effort: Effort, start: usize, out: &mut Vec<u8>) {
    let kind = IntKind { width, signed: false };
    let mut best = vec![];
    // Written as if at the block's start: what the alignment of plain values adds there is no more than 63 bytes.
    crate::ints::encode(
        values,
        kind,
        0,
        if effort == Effort::Compact { Effort::Balanced } else { effort },
        0,
        &mut best,
    );
    let tag = |bytes: &[u8]| bytes.first().and_then(|&tag| Encoding::try_from(tag).ok()).unwrap_or(Encoding::Plain);
    let by_bits = tag(&best);
    let mut best_cost = cost(by_bits, best.len(), effort);
    if by_bits != Encoding::Constant && width >= 4 {
        if let Some(written) = alp::encode(values, width, effort, None) {
            let cost = cost(Encoding::Alp, written.len(), effort);
            if cost < best_cost {
                (best, best_cost) = (written, cost);
            }
        }
        // pco is slow to try, so under `Balanced` only where nothing else has done much.
        let promising = match effort {
            Effort::Plain | Effort::Fast => false,
            Effort::Balanced => best.len() * 10 > values.len() * usize::from(width) * 6,
            Effort::Compact => true,
        };
        // A part that does badly spares the rest.
        let part = values.get(..values.len() / TRIED).unwrap_or_default();
        let worth = |of: &[u8], parts: usize| cost(Encoding::Pco, of.len() * parts, effort) < best_cost;
        if promising
            && (effort == Effort::Compact || compress_pco(part, width).is_some_and(|file| worth(&file, TRIED)))
            && let Some(file) = compress_pco(values, width)
        {
            let mut written = vec![Encoding::Pco.tag()];
            pcodec::put(&file, &mut written);
            if cost(Encoding::Pco, written.len(), effort) < best_cost {
                best = written;
            }
        }
    }
    match tag(&best) {
        // Where plain values begin depends on the block.
        Encoding::Plain => crate::ints::encode_plain(values, kind, 0, start, out),
        _ => out.extend_from_slice(&best),
    }
}

/// Writes floats as others of their column were, if nothing speaks against it; else writes nothing and says so.
pub(crate) fn encode_as(
    like: &Choice,
    values: &[u64],
    width: u8,
    effort: Effort,
    start: usize,
    out: &mut Vec<u8>,
) -> bool {
    let at = out.len();
    match like.encoding {
        Encoding::Alp => match alp::encode(values, width, effort, like.inner.first()) {
            Some(written) => out.extend_from_slice(&written),
            None => return false,
        },
        Encoding::Pco => match compress_pco(values, width) {
            Some(file) => {
                out.push(Encoding::Pco.tag());
                pcodec::put(&file, out);
            }
            None => return false,
        },
        _ => {
            let effort = if effort == Effort::Compact { Effort::Balanced } else { effort };
            return crate::ints::encode_as(like, values, IntKind { width, signed: false }, 0, effort, start, out);
        }
    }
    let worth = out.len() - at < values.len() * usize::from(width);
    if !worth {
        out.truncate(at);
    }
    worth
}

#[allow(clippy::cast_possible_truncation, reason = "bit patterns of four bytes")]
fn compress_pco(values: &[u64], width: u8) -> Option<Vec<u8>> {
    if width == 8 {
        pcodec::compress(&values.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>())
    } else {
        pcodec::compress(&values.iter().map(|&bits| f32::from_bits(bits as u32)).collect::<Vec<_>>())
    }
}

impl Floats {
    pub(crate) fn parse(tag: Encoding, width: u8, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let node = match tag {
            Encoding::Alp if width >= 4 => Node::Alp(alp::Alp::parse(width, len, reader)?),
            Encoding::Pco if width >= 4 => Node::Pco(Pco::parse(reader)?),
            Encoding::Alp | Encoding::Pco => {
                return Err(EncodingError::corrupt(format!("{} of floats of {width} bytes", tag.name())));
            }
            _ => Node::Bits(Ints::parse_tagged(tag, IntKind { width, signed: false }, len, 0, reader)?),
        };
        Ok(Self { width, len, node })
    }

    pub(crate) fn encoding(&self) -> Encoding {
        match &self.node {
            Node::Bits(ints) => ints.encoding(),
            Node::Alp(_) => Encoding::Alp,
            Node::Pco(_) => Encoding::Pco,
        }
    }

    /// The encoding and those of the nodes within.
    pub(crate) fn choice(&self) -> Choice {
        match &self.node {
            Node::Bits(ints) => ints.choice(),
            Node::Alp(alp) => Choice { encoding: Encoding::Alp, inner: vec![alp.choice()] },
            Node::Pco(_) => Choice::of(Encoding::Pco),
        }
    }

    pub(crate) fn describe(&self) -> String {
        match &self.node {
            Node::Bits(ints) => ints.describe(),
            Node::Alp(alp) => format!("alp({})", alp.describe()),
            Node::Pco(_) => Encoding::Pco.name().to_owned(),
        }
    }

    /// Decodes to little-endian bytes.
    pub(crate) fn decode(&self, wanted: Wanted<'_>, selection: Option<&BooleanBuffer>) -> Result<Buffer> {
        fn finish<T: Copy + arrow_buffer::ArrowNativeType>(all: Vec<T>, selection: Option<&BooleanBuffer>) -> Buffer {
            Buffer::from_vec(bits::select(all, selection))
        }
        Ok(match (&self.node, self.width) {
            (Node::Bits(ints), _) => decode_ints(ints, wanted, selection)?,
            (Node::Alp(alp), 8) => finish(alp.decode::<f64>(wanted)?, selection),
            (Node::Alp(alp), _) => finish(alp.decode::<f32>(wanted)?, selection),
            (Node::Pco(pco), 8) => finish(pco.numbers::<f64>(self.len)?, selection),
            (Node::Pco(pco), _) => finish(pco.numbers::<f32>(self.len)?, selection),
        })
    }

    pub(crate) fn evaluate(&self, set: &ValueSet) -> Result<Option<BooleanBuffer>> {
        match &self.node {
            Node::Bits(ints)
                if matches!(ints.encoding(), Encoding::Constant | Encoding::RunLength | Encoding::Sparse) =>
            {
                ints.evaluate(set)
            }
            _ => Ok(None),
        }
    }
}
