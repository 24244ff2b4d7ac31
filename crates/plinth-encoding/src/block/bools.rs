//! Booleans.
//!
//! - `Constant`: the value, `u8`, 0 or 1.
//! - `Plain`: `ceil(len / 8)` bytes, bit `i % 8` of byte `i / 8` for value `i`; spare bits are zero.
//! - `RunLength`: `runs` (varint, 1 to `len`), `first` (`u8`, 0 or 1, the value of the first run), a node of `runs` unsigned
//!   integers of 4 bytes ([`crate::ints`], depth 1), where the runs end, as in a run-length node; values alternate.

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::bits;
use crate::encoding::{Effort, Encoding, cost};
use crate::error::{EncodingError, Result};
use crate::ints::{Ints, encode_nested, runs::check_ends};
use crate::physical::IntKind;
use crate::scratch::Scratch;
use crate::value_set::ValueSet;
use crate::wire::{Reader, put_varint, wide};

/// Parsed values.
#[derive(Clone, Debug)]
pub(crate) struct Bools {
    len: usize,
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Constant(bool),
    Bitmap(Buffer),
    Runs { first: bool, ends: Ints },
}

pub(super) fn encode(values: &BooleanBuffer, effort: Effort, out: &mut Vec<u8>) {
    let set = values.count_set_bits();
    if set == 0 || set == values.len() {
        out.extend([Encoding::Constant.tag(), u8::from(set > 0)]);
        return;
    }
    let bitmap_size = values.len().div_ceil(8);
    let mut runs = vec![];
    if values.set_slices().take(bitmap_size).count() * 2 < bitmap_size {
        let (first, ends) = bits::runs_of(values);
        put_varint(&mut runs, wide(ends.len()));
        runs.push(u8::from(first));
        encode_nested(&ends, IntKind::U32, 1, effort, &mut runs);
        if cost(Encoding::RunLength, runs.len(), effort) < cost(Encoding::Plain, bitmap_size, effort) {
            out.push(Encoding::RunLength.tag());
            out.extend_from_slice(&runs);
            return;
        }
    }
    out.push(Encoding::Plain.tag());
    out.extend(
        values
            .iter()
            .collect::<Vec<bool>>()
            .chunks(8)
            .map(|chunk| chunk.iter().enumerate().fold(0_u8, |byte, (i, &bit)| byte | u8::from(bit) << i)),
    );
}

impl Bools {
    pub(super) fn parse(tag: Encoding, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let node = match tag {
            Encoding::Constant => Node::Constant(reader.u8()? != 0),
            Encoding::Plain => Node::Bitmap(reader.take(len.div_ceil(8))?),
            Encoding::RunLength => {
                let runs = reader.count(len, "runs")?;
                let first = reader.u8()? != 0;
                Node::Runs { first, ends: Ints::parse(IntKind::U32, runs, 1, reader)? }
            }
            _ => return Err(EncodingError::corrupt(format!("{} is no encoding of booleans", tag.name()))),
        };
        Ok(Self { len, node })
    }

    pub(super) fn encoding(&self) -> Encoding {
        match self.node {
            Node::Constant(_) => Encoding::Constant,
            Node::Bitmap(_) => Encoding::Plain,
            Node::Runs { .. } => Encoding::RunLength,
        }
    }

    pub(super) fn describe(&self) -> String {
        match &self.node {
            Node::Constant(_) | Node::Bitmap(_) => self.encoding().name().to_owned(),
            Node::Runs { ends, .. } => format!("run-length({}; ends {})", ends.len, ends.describe()),
        }
    }

    pub(super) fn decode(&self) -> Result<BooleanBuffer> {
        match &self.node {
            Node::Constant(value) => Ok(bits::all(self.len, *value)),
            Node::Bitmap(bytes) => bits::bitmap(bytes.clone(), self.len),
            Node::Runs { first, ends } => {
                let ends: Scratch<u32> = ends.decode_scratch(None)?;
                check_ends(&ends, self.len)?;
                Ok(bits::from_runs(*first, &ends, self.len))
            }
        }
    }

    pub(super) fn evaluate(&self, set: &ValueSet) -> Result<Option<BooleanBuffer>> {
        Ok(Some(match (set.holds_bool(false), set.holds_bool(true)) {
            (false, false) => bits::all(self.len, false),
            (true, true) => bits::all(self.len, true),
            (false, true) => self.decode()?,
            (true, false) => !&self.decode()?,
        }))
    }
}
