//! A stream's metadata: where its blocks are, their checksums and zone maps. One section a stream, read when the stream
//! is first needed, so that opening a wide table costs what its used columns cost.

use std::sync::Arc;

use plinth_encoding::expr::Scalar;
use plinth_encoding::summary::Order;
use plinth_encoding::{Bounds, Encoding, EncodingError, Result};

use crate::wire::{WireReader, WireWriter};

/// Blocks at least this long start at a multiple of [`LARGE_ALIGNMENT`], so that what they hold plainly is aligned in
/// memory as Arrow wants it; shorter ones at a multiple of [`SMALL_ALIGNMENT`], so that constants cost next to nothing.
const LARGE_BLOCK: u64 = 4096;
const LARGE_ALIGNMENT: u64 = 64;
const SMALL_ALIGNMENT: u64 = 8;

/// Values a block may hold, items of lists included: what a few bytes of constant may make a reader allocate.
pub(crate) const MOST_BLOCK_VALUES: u32 = 1 << 26;

/// Bytes a block's values may take in memory, where all are of one width: the same for widths that are many bytes.
pub(crate) const MOST_BLOCK_BYTES: u64 = 1 << 31;

/// A block's entry takes at least: length, nulls, encoding, checksum, zone.
pub(crate) const BLOCK_ENTRY: u64 = 12;

/// A dictionary's entry takes at least: its values, its index, the number of its blocks, whether it has postings.
const DICTIONARY_ENTRY: usize = 13;

/// A further section's entry takes at least: its kind, its place.
const EXTRA_ENTRY: usize = 11;

/// Bytes of a zone map's text bounds before they are cut.
const BLOCK_BOUND_BYTES: usize = 32;

/// Bytes of a whole column's text bounds before they are cut: statistics should be exact.
const COLUMN_BOUND_BYTES: usize = 1024;

/// Where a block of a given length and encoding starts when everything before `position` is taken: what is not plain has to be
/// decoded, and would lie no better for being aligned.
pub(crate) fn block_start(position: u64, len: u64, encoding: u8) -> u64 {
    let large = len >= LARGE_BLOCK && encoding == Encoding::Plain as u8;
    position.next_multiple_of(if large { LARGE_ALIGNMENT } else { SMALL_ALIGNMENT })
}

/// The smallest and largest value of a block, a chunk or a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zone {
    pub(crate) bounds: Bounds,
    /// Whether the smallest and the largest occur, rather than only bound.
    pub(crate) exact: (bool, bool),
}

impl Zone {
    pub(crate) fn exact(bounds: Bounds) -> Self {
        Self { bounds, exact: (true, true) }
    }

    /// The zone of two zones together.
    pub(crate) fn union(self, other: &Self) -> Self {
        let (min, min_exact) = if less(&other.bounds.min, &self.bounds.min) {
            (other.bounds.min.clone(), other.exact.0)
        } else {
            (self.bounds.min, self.exact.0)
        };
        let (max, max_exact) = if less(&self.bounds.max, &other.bounds.max) {
            (other.bounds.max.clone(), other.exact.1)
        } else {
            (self.bounds.max, self.exact.1)
        };
        Self { bounds: Bounds { min, max }, exact: (min_exact, max_exact) }
    }

    /// The zone with text bounds cut to `limit` bytes: a prefix is a lower bound, its successor an upper bound.
    fn cut(&self, limit: usize) -> Self {
        let mut zone = self.clone();
        if let Scalar::Bytes(min) = &self.bounds.min
            && min.len() > limit
        {
            zone.bounds.min = Scalar::Bytes(min[..limit].into());
            zone.exact.0 = false;
        }
        if let Scalar::Bytes(max) = &self.bounds.max
            && max.len() > limit
            && let Some(last) = max[..limit].iter().rposition(|&byte| byte < u8::MAX)
        {
            let mut successor = max[..=last].to_vec();
            successor[last] += 1;
            zone.bounds.max = Scalar::Bytes(successor.into());
            zone.exact.1 = false;
        }
        zone
    }
}

/// The order of a column's values; scalars of different kinds never meet.
pub(crate) fn less(a: &Scalar, b: &Scalar) -> bool {
    match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => a < b,
        (Scalar::Int(a), Scalar::Int(b)) => a < b,
        (Scalar::Float(a), Scalar::Float(b)) => a.total_cmp(b).is_lt(),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a < b,
        _ => false,
    }
}

/// Adds a zone to what is known of the zones before it. Once a part without bounds holds values, there are none.
pub(crate) fn widen(all: &mut Option<Option<Zone>>, zone: Option<&Zone>, has_values: bool) {
    if !has_values {
        return;
    }
    *all = Some(match (all.take(), zone) {
        (None, zone) => zone.cloned(),
        (Some(Some(before)), Some(zone)) => Some(before.union(zone)),
        _ => None,
    });
}

/// One block of a stream.
#[derive(Clone, Debug)]
pub(crate) struct BlockMeta {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Values in the block: rows, or items of lists.
    pub(crate) values: u32,
    pub(crate) nulls: u32,
    /// The outermost encoding's tag.
    pub(crate) encoding: u8,
    pub(crate) checksum: u64,
    /// Of the non-null values, or of their dictionary codes.
    pub(crate) zone: Option<Zone>,
}

impl BlockMeta {
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }
}

/// A stream's blocks of one row group, contiguous in the file.
#[derive(Clone, Debug)]
pub(crate) struct ChunkMeta {
    /// Which of the stream's dictionaries the blocks hold codes of; `None` if they hold values.
    pub(crate) dictionary: Option<usize>,
    pub(crate) blocks: Vec<BlockMeta>,
}

/// A checksummed piece of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) checksum: u64,
}

impl Section {
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }

    fn write(&self, out: &mut WireWriter) {
        out.varint(self.offset);
        out.varint(self.len);
        out.u64(self.checksum);
    }

    fn read(wire: &mut WireReader<'_>, file_len: u64) -> Result<Self> {
        let section = Self { offset: wire.varint()?, len: wire.varint_32()?, checksum: wire.u64()? };
        inside(section.offset, section.len, file_len)?;
        Ok(section)
    }
}

/// Where one of a stream's dictionaries is, the values of some of its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DictionaryMeta {
    pub(crate) values: u32,
    pub(crate) index: Section,
    pub(crate) blocks: Vec<Section>,
    /// Only where there is a value a row.
    pub(crate) postings: Option<PostingsMeta>,
}

/// Where a dictionary's postings are: the rows of each of its values, in the chunks of its codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostingsMeta {
    /// Where the first group starts.
    pub(crate) offset: u64,
    /// Bytes of all groups.
    pub(crate) bytes: u64,
    pub(crate) directory: Section,
}

/// What a further section of a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    /// A sketch of its distinct values, and the sums of its blocks.
    Details = 1,
}

/// All of a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamMeta {
    pub(crate) nulls: u64,
    pub(crate) values: u64,
    /// Bytes of the values in memory, in Arrow's layout.
    pub(crate) value_bytes: u64,
    /// Of all non-null values (never codes).
    pub(crate) zone: Option<Zone>,
    /// How the values follow each other.
    pub(crate) order: Order,
    /// Of integers, where it fits.
    pub(crate) sum: Option<i128>,
    /// Distinct values, about; exactly those of the dictionary, where one has all.
    pub(crate) distinct: Option<u64>,
    /// Further sections by what they hold ([`Extra`]): what a reader does not know it leaves alone.
    pub(crate) extras: Vec<(u64, Section)>,
    /// One after the other: a full one is closed, and the chunks after it have the next.
    pub(crate) dictionaries: Vec<DictionaryMeta>,
    /// What the writer wants said about the stream: why it has no further dictionaries.
    pub(crate) note: String,
    pub(crate) chunks: Vec<ChunkMeta>,
}

/// What the footer says about the shape of every stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// Rows of each row group.
    pub(crate) row_groups: &'a [u64],
    pub(crate) block_rows: u32,
    /// Whether the stream's blocks hold one value a row; below a list each block says how many it holds.
    pub(crate) one_value_a_row: bool,
    /// Bytes a value of the stream takes in memory, zero where they differ.
    pub(crate) value_width: usize,
}

impl StreamMeta {
    pub(crate) fn write(&self, one_value_a_row: bool) -> Vec<u8> {
        let mut out = WireWriter::default();
        out.varint(self.nulls);
        out.varint(self.values);
        out.varint(self.value_bytes);
        write_zone(self.zone.as_ref(), COLUMN_BOUND_BYTES, &mut out);
        let Order { ascends, descends, differs } = self.order;
        let known = u8::from(self.sum.is_some()) << 3 | u8::from(self.distinct.is_some()) << 4;
        out.u8(u8::from(ascends) | u8::from(descends) << 1 | u8::from(differs) << 2 | known);
        self.sum.into_iter().for_each(|sum| out.signed(sum));
        self.distinct.into_iter().for_each(|distinct| out.varint(distinct));
        out.len(self.extras.len());
        for (kind, section) in &self.extras {
            out.varint(*kind);
            section.write(&mut out);
        }
        out.len(self.dictionaries.len());
        self.dictionaries.iter().for_each(|dictionary| dictionary.write(&mut out));
        out.bytes(self.note.as_bytes());
        for chunk in &self.chunks {
            out.len(chunk.dictionary.map_or(0, |dictionary| dictionary + 1));
            out.varint(chunk.blocks.first().map_or(0, |block| block.offset));
            for block in &chunk.blocks {
                out.varint(block.len);
                if !one_value_a_row {
                    out.varint(block.values);
                }
                out.varint(block.nulls);
                out.u8(block.encoding);
                out.u64(block.checksum);
                write_zone(block.zone.as_ref(), BLOCK_BOUND_BYTES, &mut out);
            }
        }
        out.finish()
    }

    pub(crate) fn read(bytes: &[u8], shape: Shape<'_>, file_len: u64) -> Result<Self> {
        let wire = &mut WireReader::new(bytes);
        let (nulls, values, value_bytes) = (wire.varint()?, wire.varint()?, wire.varint()?);
        let zone = read_zone(wire)?;
        let flags = wire.u8()?;
        let flag = |bit: u8| flags >> bit & 1 == 1;
        if flags >= 1 << 5 {
            return Err(EncodingError::corrupt("flags of a column that are not known"));
        }
        let order = Order { ascends: flag(0), descends: flag(1), differs: flag(2) };
        let sum = if flag(3) { Some(wire.signed_128()?) } else { None };
        let distinct = if flag(4) { Some(wire.varint()?) } else { None };
        let extras = 0..wire.count(EXTRA_ENTRY)?;
        let extras =
            extras.map(|_| Ok((wire.varint()?, Section::read(wire, file_len)?))).collect::<Result<Vec<_>>>()?;
        let dictionaries = 0..wire.count(DICTIONARY_ENTRY)?;
        let dictionaries = dictionaries
            .map(|_| DictionaryMeta::read(wire, file_len, shape.one_value_a_row))
            .collect::<Result<Vec<_>>>()?;
        let note = wire.text()?.to_owned();
        let chunks = shape
            .row_groups
            .iter()
            .map(|&rows| read_chunk(wire, rows, shape, file_len, dictionaries.len()))
            .collect::<Result<Vec<_>>>()?;
        wire.finish()?;
        let blocks = || chunks.iter().flat_map(|chunk: &ChunkMeta| &chunk.blocks);
        let counted = blocks().fold((0u64, 0u64), |(n, v), b| (n + u64::from(b.nulls), v + u64::from(b.values)));
        if counted != (nulls, values) {
            return Err(EncodingError::corrupt("the blocks' counts do not add up to the column's"));
        }
        Ok(Self { nulls, values, value_bytes, zone, order, sum, distinct, extras, dictionaries, note, chunks })
    }
}

impl DictionaryMeta {
    fn write(&self, out: &mut WireWriter) {
        out.varint(self.values);
        self.index.write(out);
        out.len(self.blocks.len());
        self.blocks.iter().for_each(|block| block.write(out));
        out.u8(u8::from(self.postings.is_some()));
        if let Some(postings) = &self.postings {
            out.varint(postings.offset);
            out.varint(postings.bytes);
            postings.directory.write(out);
        }
    }

    fn read(wire: &mut WireReader<'_>, file_len: u64, one_value_a_row: bool) -> Result<Self> {
        let values = wire.varint_32()?;
        let index = Section::read(wire, file_len)?;
        let blocks = (0..wire.count(10)?).map(|_| Section::read(wire, file_len)).collect::<Result<_>>()?;
        let postings = match wire.u8()? {
            0 => None,
            1 if one_value_a_row => Some(PostingsMeta::read(wire, file_len)?),
            _ => return Err(EncodingError::corrupt("no such kind of dictionary")),
        };
        Ok(Self { values, index, blocks, postings })
    }
}

impl PostingsMeta {
    fn read(wire: &mut WireReader<'_>, file_len: u64) -> Result<Self> {
        let (offset, bytes) = (wire.varint()?, wire.varint()?);
        if offset.checked_add(bytes).is_none_or(|end| end > file_len) {
            return Err(EncodingError::corrupt("postings lie beyond the end of the file"));
        }
        Ok(Self { offset, bytes, directory: Section::read(wire, file_len)? })
    }
}

fn read_chunk(
    wire: &mut WireReader<'_>,
    rows: u64,
    shape: Shape<'_>,
    file_len: u64,
    dictionaries: usize,
) -> Result<ChunkMeta> {
    let dictionary = usize::try_from(wire.varint()?).unwrap_or(usize::MAX).checked_sub(1);
    if dictionary.is_some_and(|dictionary| dictionary >= dictionaries) {
        return Err(EncodingError::corrupt("a chunk of codes without a dictionary"));
    }
    let mut position = wire.varint()?;
    let block_rows = u64::from(shape.block_rows);
    // What the entries take bounds what `rows` can make us allocate.
    let count = rows.div_ceil(block_rows);
    if count > wire.left() as u64 / BLOCK_ENTRY {
        return Err(EncodingError::corrupt("fewer blocks than the row group's rows need"));
    }
    let mut blocks = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for i in 0..count {
        let len = wire.varint_32()?;
        let rows_here = (rows - i * block_rows).min(block_rows);
        let values = if shape.one_value_a_row {
            u32::try_from(rows_here).map_err(|_| EncodingError::corrupt("a block of too many rows"))?
        } else {
            wire.varint_32()?
        };
        let nulls = wire.varint_32()?;
        if values > MOST_BLOCK_VALUES || u64::from(values) * shape.value_width as u64 > MOST_BLOCK_BYTES {
            let what = format!("a block of {values} values of {} bytes; no writer makes such", shape.value_width);
            return Err(EncodingError::corrupt(what));
        }
        if nulls > values {
            return Err(EncodingError::corrupt(format!("a block of {values} values claims {nulls} nulls")));
        }
        let (encoding, checksum) = (wire.u8()?, wire.u64()?);
        let zone = read_zone(wire)?;
        if position > file_len {
            return Err(EncodingError::corrupt("a block lies beyond the end of the file"));
        }
        let offset = block_start(position, u64::from(len), encoding);
        inside(offset, len, file_len)?;
        position = offset + u64::from(len);
        blocks.push(BlockMeta { offset, len, values, nulls, encoding, checksum, zone });
    }
    Ok(ChunkMeta { dictionary, blocks })
}

fn inside(offset: u64, len: u32, file_len: u64) -> Result<()> {
    if offset.checked_add(u64::from(len)).is_none_or(|end| end > file_len) {
        return Err(EncodingError::corrupt(format!("{len} bytes at offset {offset} lie beyond the end of the file")));
    }
    Ok(())
}

fn write_zone(zone: Option<&Zone>, limit: usize, out: &mut WireWriter) {
    let Some(zone) = zone else { return out.u8(0) };
    let zone = zone.cut(limit);
    match (&zone.bounds.min, &zone.bounds.max) {
        (Scalar::Int(min), Scalar::Int(max)) => {
            out.u8(1);
            out.signed(*min);
            out.varint(max.wrapping_sub(*min).cast_unsigned());
        }
        (Scalar::Float(min), Scalar::Float(max)) => {
            out.u8(2);
            out.u64(min.to_bits());
            out.u64(max.to_bits());
        }
        (Scalar::Bytes(min), Scalar::Bytes(max)) => {
            out.u8(3);
            out.u8(u8::from(zone.exact.0) | u8::from(zone.exact.1) << 1);
            out.bytes(min);
            out.bytes(max);
        }
        (Scalar::Bool(min), Scalar::Bool(max)) => {
            out.u8(4);
            out.u8(u8::from(*min) | u8::from(*max) << 1);
        }
        _ => out.u8(0),
    }
}

fn read_zone(wire: &mut WireReader<'_>) -> Result<Option<Zone>> {
    let (min, max, exact) = match wire.u8()? {
        0 => return Ok(None),
        1 => {
            let min = wire.signed_128()?;
            (Scalar::Int(min), Scalar::Int(min.wrapping_add(wire.varint_128()?.cast_signed())), (true, true))
        }
        2 => (Scalar::Float(f64::from_bits(wire.u64()?)), Scalar::Float(f64::from_bits(wire.u64()?)), (true, true)),
        3 => {
            let flags = wire.u8()?;
            let (min, max) = (Arc::from(wire.bytes()?), Arc::from(wire.bytes()?));
            (Scalar::Bytes(min), Scalar::Bytes(max), (flags & 1 == 1, flags & 2 == 2))
        }
        4 => {
            let flags = wire.u8()?;
            (Scalar::Bool(flags & 1 == 1), Scalar::Bool(flags & 2 == 2), (true, true))
        }
        _ => return Err(EncodingError::corrupt("no such kind of zone map")),
    };
    if less(&max, &min) {
        return Err(EncodingError::corrupt("a zone map whose smallest value exceeds its largest"));
    }
    Ok(Some(Zone { bounds: Bounds { min, max }, exact }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
