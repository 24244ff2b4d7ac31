//! The block: up to about 8,192 rows of one leaf column, encoded so that they can be decoded alone.
//!
//! # Layout
//! 1. Flags and nulls: module `validity`.
//! 2. The values, one for each row or, if *compacted*, one for each row that is not null; absent if all rows are null. They
//!    begin with a tag (`u8`, [`Encoding`]) and go on by the physical type and the tag:
//!    - `Int`: `ints`;
//!    - `Float`: `floats`;
//!    - `Bool`: `bools`;
//!    - `Wide` and `Fixed`: `fixed`;
//!    - `Bytes`: `strings`.
//!
//! Fields follow each other without padding, but for plain values of fixed width at depth zero, which begin at a multiple
//! of 64 bytes from the block's start; plain blocks of 4 KiB and more begin at a multiple of 64 of the file, others at a
//! multiple of 8. Slots of null rows that are not left out hold some value that costs little.

mod bools;
mod fixed;
mod input;
mod validity;

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

use input::Input;
use validity::Validity;

use crate::answers::Mask;
use crate::bitpack::VECTOR;
use crate::bits;
use crate::column::{Column, Values};
use crate::encoding::{Effort, Encoding};
use crate::error::{EncodingError, Result};
use crate::floats::Floats;
use crate::ints::{Ints, decode_ints};
use crate::physical::{IntKind, Physical};
use crate::recipe::{Choice, Recipe};
use crate::strings::Strings;
use crate::value_set::ValueSet;
use crate::views::Views;
use crate::wire::Reader;

/// How to encode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EncodeOptions {
    /// What to favour.
    pub effort: Effort,
}

/// What became of a block's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The outermost encoding.
    pub encoding: Encoding,
}

/// Appends one block to `out`; alignment inside it counts from its first byte. The same input gives the same bytes.
///
/// # Errors
/// If the values are not of the physical type or not `len` of them, or if their bytes are more than 2 GiB.
pub fn encode(physical: Physical, column: &Column, options: &EncodeOptions, out: &mut Vec<u8>) -> Result<Encoded> {
    encode_block(physical, column, options.effort, None, out)
}

/// As [`encode`] for a block of the same column as another: it is stored as that was without weighing all else, unless a glance
/// at the values speaks against it or they come out larger.
///
/// # Errors
/// As [`encode`].
pub fn encode_like(
    physical: Physical,
    column: &Column,
    options: &EncodeOptions,
    like: &Recipe,
    out: &mut Vec<u8>,
) -> Result<Encoded> {
    encode_block(physical, column, options.effort, Some(like), out)
}

fn encode_block(
    physical: Physical,
    column: &Column,
    effort: Effort,
    like: Option<&Recipe>,
    out: &mut Vec<u8>,
) -> Result<Encoded> {
    let start = out.len();
    let encoded = put_block(physical, column, effort, like, start, out);
    if encoded.is_err() {
        out.truncate(start);
    }
    encoded
}

fn put_block(
    physical: Physical,
    column: &Column,
    effort: Effort,
    like: Option<&Recipe>,
    start: usize,
    out: &mut Vec<u8>,
) -> Result<Encoded> {
    let valid = column.nulls.as_ref().filter(|nulls| nulls.null_count() > 0).map(NullBuffer::inner);
    if u32::try_from(column.len).is_err() || valid.is_some_and(|valid| valid.len() != column.len) {
        return Err(EncodingError::invalid(format!("a column of {} rows with other nulls, or too long", column.len)));
    }
    let present = valid.map_or(column.len, BooleanBuffer::count_set_bits);
    if present == 0 {
        out.push(3);
        return Ok(Encoded { encoding: Encoding::AllNull });
    }
    let compacted = present * 2 < column.len;
    validity::encode(valid, compacted, effort, out);
    let input = Input { len: column.len, valid, compacted };
    let at = out.len();
    let stored = input.stored();
    // As another block was, if that does about as well.
    let follow = |out: &mut Vec<u8>, write: &dyn Fn(&Choice, &mut Vec<u8>) -> Result<bool>| match like {
        Some(like) if write(&like.choice, out)? => {
            let holds = like.holds(out.len() - at, stored);
            if !holds {
                out.truncate(at);
            }
            Ok::<_, EncodingError>(holds)
        }
        _ => Ok(false),
    };
    match (physical, &column.values) {
        (Physical::Bool, Values::Bool(values)) => bools::encode(&input.bools(values)?, effort, out),
        (Physical::Int { width, signed }, Values::Fixed(bytes)) => {
            let kind = IntKind { width, signed };
            if let Some(only) = input.only_int(bytes, kind) {
                crate::ints::put_constant(only, kind, out);
            } else {
                let values = input.ints(bytes, kind)?;
                if !follow(out, &|like, out| Ok(crate::ints::encode_as(like, &values, kind, 0, effort, start, out)))? {
                    crate::ints::encode(&values, kind, 0, effort, start, out);
                }
            }
        }
        (Physical::Float { width }, Values::Fixed(bytes)) => {
            let values = input.ints(bytes, IntKind { width, signed: false })?;
            if !follow(out, &|like, out| Ok(crate::floats::encode_as(like, &values, width, effort, start, out)))? {
                crate::floats::encode(&values, width, effort, start, out);
            }
        }
        (Physical::Wide { width }, Values::Fixed(bytes)) => {
            let bytes = input.fixed(bytes, usize::from(width))?;
            if !follow(out, &|like, out| Ok(fixed::encode_wide_as(like, &bytes, width, effort, start, out)))? {
                fixed::encode_wide(&bytes, width, effort, start, out)?;
            }
        }
        (Physical::Fixed { width }, Values::Fixed(bytes)) => {
            let width = width as usize;
            fixed::encode(&input.fixed(bytes, width)?, width, stored, effort, start, out)?;
        }
        (Physical::Bytes { .. }, Values::Views { views, buffers }) => {
            let values = input.strings(views, buffers)?;
            if !follow(out, &|like, out| crate::strings::encode_as(like, &values, effort, out))? {
                crate::strings::encode(&values, 0, effort, out)?;
            }
        }
        _ => return Err(EncodingError::invalid(format!("values in another layout than {physical:?} has"))),
    }
    let tag = out.get(at).copied().unwrap_or_default();
    Ok(Encoded { encoding: Encoding::try_from(tag)? })
}

/// A parsed block; its parts are slices of the bytes it was opened from.
#[derive(Clone, Debug)]
pub struct Block {
    physical: Physical,
    len: usize,
    validity: Validity,
    compacted: bool,
    stored: usize,
    features: u32,
    /// Bytes of the values as they are stored.
    value_bytes: usize,
    values: Stored,
}

/// What [`Block::narrowed`] makes of wide integers.
const NARROW: Physical = Physical::Int { width: 8, signed: true };

#[derive(Clone, Debug)]
enum Stored {
    Nothing,
    Bools(bools::Bools),
    Ints(Ints),
    Floats(Floats),
    Fixed(fixed::Fixed),
    Strings(Strings),
}

impl Block {
    /// Parses a block of `len` rows from exactly its bytes.
    ///
    /// # Errors
    /// If the bytes are no such block.
    pub fn open(physical: Physical, bytes: &Buffer, len: usize) -> Result<Self> {
        if u32::try_from(len).is_err() {
            return Err(EncodingError::corrupt(format!("a block of {len} rows")));
        }
        let mut reader = Reader::new(bytes);
        let (validity, compacted) = Validity::parse(len, &mut reader)?;
        let stored = if compacted { len - validity.null_count() } else { len };
        let value_bytes = reader.left();
        let values = if validity.is_all_null() {
            Stored::Nothing
        } else {
            let tag = reader.encoding()?;
            let reader = &mut reader;
            match physical {
                Physical::Bool => Stored::Bools(bools::Bools::parse(tag, stored, reader)?),
                Physical::Int { width, signed } => {
                    Stored::Ints(Ints::parse_tagged(tag, IntKind { width, signed }, stored, 0, reader)?)
                }
                Physical::Float { width } => Stored::Floats(Floats::parse(tag, width, stored, reader)?),
                Physical::Wide { width } => Stored::Fixed(fixed::Fixed::parse_wide(tag, width, stored, reader)?),
                Physical::Fixed { width } => Stored::Fixed(fixed::Fixed::parse(tag, width as usize, stored, reader)?),
                Physical::Bytes { .. } => Stored::Strings(Strings::parse(tag, stored, 0, reader)?),
            }
        };
        if reader.left() > 0 {
            return Err(EncodingError::corrupt(format!("{} bytes after a block's end", reader.left())));
        }
        Ok(Self { physical, len, validity, compacted, stored, features: reader.features(), value_bytes, values })
    }

    /// What a reader must know of the format to read it: [`Encoding::features`] of all its encodings.
    pub fn features(&self) -> u32 {
        self.features
    }

    /// What its values are.
    pub fn physical(&self) -> Physical {
        self.physical
    }

    /// The outermost encoding.
    pub fn encoding(&self) -> Encoding {
        match &self.values {
            Stored::Nothing => Encoding::AllNull,
            Stored::Bools(values) => values.encoding(),
            Stored::Ints(values) => values.encoding(),
            Stored::Floats(values) => values.encoding(),
            Stored::Fixed(values) => values.encoding(),
            Stored::Strings(values) => values.encoding(),
        }
    }

    /// How the values are stored, for blocks of the same column; none if they are all null or truth values.
    pub fn recipe(&self) -> Option<Recipe> {
        let choice = match &self.values {
            Stored::Nothing | Stored::Bools(_) => return None,
            Stored::Ints(values) => values.choice(),
            Stored::Floats(values) => values.choice(),
            Stored::Fixed(values) => values.choice()?,
            Stored::Strings(values) => values.choice(),
        };
        Some(Recipe { choice, bytes: self.value_bytes, values: self.stored })
    }

    /// The encodings from the outside in, for people: `run-length(12 x bit-packed 3; ends delta(bit-packed 5))`.
    pub fn describe(&self) -> String {
        let values = match &self.values {
            Stored::Nothing => Encoding::AllNull.name().to_owned(),
            Stored::Bools(values) => values.describe(),
            Stored::Ints(values) => values.describe(),
            Stored::Floats(values) => values.describe(),
            Stored::Fixed(values) => values.describe(),
            Stored::Strings(values) => values.describe(),
        };
        match self.validity.describe() {
            None => values,
            Some(nulls) => format!("{values}, {nulls}"),
        }
    }

    /// Which rows are null.
    ///
    /// # Errors
    /// If the bytes contradict themselves.
    pub fn nulls(&self) -> Result<Option<NullBuffer>> {
        self.validity.nulls(self.len)
    }

    /// Decodes all rows, or those that `selection`, of the block's length, selects.
    ///
    /// # Errors
    /// If the bytes contradict themselves, or the selection has another length.
    pub fn decode(&self, selection: Option<&BooleanBuffer>) -> Result<Column> {
        self.check(selection)?;
        // Selecting everything is the same as not selecting, and cheaper.
        let selection = selection.filter(|selection| selection.count_set_bits() < self.len);
        let len = selection.map_or(self.len, BooleanBuffer::count_set_bits);
        let block_nulls = self.nulls()?;
        let nulls = match (&block_nulls, selection) {
            (Some(nulls), Some(selection)) => Some(NullBuffer::new(bits::filter_bits(nulls.inner(), selection))),
            (nulls, _) => nulls.clone(),
        };
        if len == 0 || matches!(self.values, Stored::Nothing) {
            return Ok(Column {
                len,
                values: self.defaults(len)?,
                nulls: nulls.filter(|nulls| nulls.null_count() > 0),
            });
        }
        let values = match (&block_nulls, self.compacted) {
            (Some(block_nulls), true) => {
                let stored = selection.map(|selection| bits::filter_bits(selection, block_nulls.inner()));
                let values = self.decode_stored(stored.as_ref())?;
                match &nulls {
                    Some(nulls) if nulls.null_count() > 0 => self.expand(values, nulls.inner())?,
                    _ => values,
                }
            }
            _ => self.decode_stored(selection)?,
        };
        Ok(Column { len, values, nulls: nulls.filter(|nulls| nulls.null_count() > 0) })
    }

    fn check(&self, selection: Option<&BooleanBuffer>) -> Result<()> {
        if selection.is_some_and(|selection| selection.len() != self.len) {
            return Err(EncodingError::invalid(format!("a selection of another length than {} rows", self.len)));
        }
        Ok(())
    }

    /// The block as one of 64-bit integers, if it is of wider ones that are stored so; else as it is. [`Block::physical`] tells.
    #[must_use]
    pub fn narrowed(self) -> Self {
        let ints = if let Stored::Fixed(values) = &self.values { values.narrowed().cloned() } else { None };
        match ints {
            Some(ints) => Self { physical: NARROW, values: Stored::Ints(ints), ..self },
            None => self,
        }
    }

    /// The most bytes that decoding can take, all rows or some.
    pub fn decoded_at_most(&self) -> u64 {
        let len = self.len as u64;
        let values = match (&self.values, self.physical.fixed_width()) {
            (Stored::Strings(values), _) => 16 * len + values.heap_bytes() as u64,
            (_, Some(width)) => width as u64 * len,
            (_, None) => 16 * len,
        };
        // Buffers are rounded up to 64 bytes, a bitmap and its slices as well.
        values + len / 4 + 1024
    }

    /// Decodes stored values, or those that a selection over them selects.
    fn decode_stored(&self, selection: Option<&BooleanBuffer>) -> Result<Values> {
        let wanted = selection.and_then(wanted_vectors);
        let wanted = wanted.as_deref();
        Ok(match &self.values {
            Stored::Nothing => self.defaults(selection.map_or(self.stored, BooleanBuffer::count_set_bits))?,
            Stored::Bools(values) => {
                let values = values.decode()?;
                Values::Bool(selection.map_or_else(|| values.clone(), |s| bits::filter_bits(&values, s)))
            }
            Stored::Ints(values) => Values::Fixed(decode_ints(values, wanted, selection)?),
            Stored::Floats(values) => Values::Fixed(values.decode(wanted, selection)?),
            Stored::Fixed(values) => Values::Fixed(values.decode(wanted, selection)?),
            Stored::Strings(values) => {
                let utf8 = matches!(self.physical, Physical::Bytes { utf8: true });
                let Views { views, buffers } = values.decode(wanted, selection, utf8)?;
                Values::Views { views: ScalarBuffer::from(views), buffers }
            }
        })
    }

    /// `len` values of no meaning, for null rows.
    fn defaults(&self, len: usize) -> Result<Values> {
        Ok(match self.physical {
            Physical::Bool => Values::Bool(BooleanBuffer::new_unset(len)),
            Physical::Bytes { .. } => Values::Views { views: ScalarBuffer::from(vec![0_u128; len]), buffers: vec![] },
            _ => Values::Fixed(
                Buffer::from_vec(vec![0_u128; self.byte_len(len)?.div_ceil(16)])
                    .slice_with_length(0, self.byte_len(len)?),
            ),
        })
    }

    fn byte_len(&self, len: usize) -> Result<usize> {
        let width = self.physical.fixed_width().unwrap_or(0);
        len.checked_mul(width).ok_or_else(|| EncodingError::corrupt("a block too large for this machine"))
    }

    /// Spreads the values of rows that are not null over all rows.
    fn expand(&self, values: Values, valid: &BooleanBuffer) -> Result<Values> {
        Ok(match values {
            Values::Bool(stored) => Values::Bool(bits::expand_bits(&stored, valid)),
            Values::Views { views, buffers } => {
                Values::Views { views: ScalarBuffer::from(bits::expand_values(&views, valid)), buffers }
            }
            Values::Fixed(stored) => {
                let width = self.physical.fixed_width().unwrap_or(0);
                Values::Fixed(fixed::expand(&stored, width, valid, self.byte_len(valid.len())?))
            }
        })
    }

    /// Whether [`Block::evaluate`] has to do most of what [`Block::decode`] would do again: who needs both does better to decode.
    pub fn evaluates_by_decoding(&self) -> bool {
        match &self.values {
            Stored::Ints(values) => values.evaluates_by_decoding(),
            Stored::Strings(values) => values.evaluates_by_decoding(),
            _ => false,
        }
    }

    /// Which encoded values are in a set; none if decoding and [`crate::evaluate_column`] is as good.
    ///
    /// # Errors
    /// If the bytes contradict themselves.
    pub fn evaluate(&self, set: &ValueSet) -> Result<Option<Mask>> {
        self.evaluate_selected(set, None)
    }

    /// As [`Block::evaluate`] for the rows that `selection`, of the block's length, selects; others have any answer, but are
    /// null or not.
    ///
    /// # Errors
    /// As [`Block::evaluate`], or if the selection has another length.
    pub fn evaluate_selected(&self, set: &ValueSet, selection: Option<&BooleanBuffer>) -> Result<Option<Mask>> {
        self.check(selection)?;
        let (set, negated) = set.stripped();
        let stored = match &self.values {
            Stored::Nothing => Some(BooleanBuffer::new_unset(self.stored)),
            // A set of another type has none of the values.
            _ if !set.is_of(self.physical) => Some(BooleanBuffer::new_unset(self.stored)),
            Stored::Bools(values) => values.evaluate(set)?,
            Stored::Ints(values) => values.evaluate(set)?,
            Stored::Floats(values) => values.evaluate(set)?,
            Stored::Fixed(values) => values.evaluate(set)?,
            Stored::Strings(values) => {
                let selection = match (selection, self.nulls()?) {
                    (Some(selection), Some(nulls)) if self.compacted => {
                        Some(bits::filter_bits(selection, nulls.inner()))
                    }
                    (selection, _) => selection.cloned(),
                };
                Some(values.evaluate(set, selection.as_ref())?)
            }
        };
        let Some(stored) = stored else { return Ok(None) };
        let stored = if negated { !&stored } else { stored };
        Ok(Some(match self.nulls()? {
            None => Mask { is_true: stored, is_null: None },
            Some(nulls) => {
                let valid = nulls.inner();
                let is_true = if self.compacted {
                    bits::expand_bits(&stored, valid)
                } else if matches!(self.values, Stored::Nothing) {
                    BooleanBuffer::new_unset(self.len)
                } else {
                    &stored & valid
                };
                Mask { is_true, is_null: Some(!valid) }
            }
        }))
    }

    /// The rows that can be in a set, judged without decoding the values; none if that says nothing.
    ///
    /// # Errors
    /// If the bytes contradict themselves.
    pub fn candidates(&self, set: &ValueSet) -> Result<Option<BooleanBuffer>> {
        let (Stored::Strings(values), (set, false)) = (&self.values, set.stripped()) else { return Ok(None) };
        let Some(stored) = values.candidates(set)? else { return Ok(None) };
        Ok(Some(match self.nulls()? {
            Some(nulls) if self.compacted => bits::expand_bits(&stored, nulls.inner()),
            Some(nulls) => &stored & nulls.inner(),
            None => stored,
        }))
    }
}

/// Which vectors hold a selected row; none if all do.
fn wanted_vectors(selection: &BooleanBuffer) -> Option<Vec<bool>> {
    let wanted: Vec<bool> = (0..selection.len().div_ceil(VECTOR))
        .map(|i| {
            let from = i * VECTOR;
            selection.slice(from, (selection.len() - from).min(VECTOR)).has_true()
        })
        .collect();
    wanted.contains(&false).then_some(wanted)
}
