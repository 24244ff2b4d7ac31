//! What the metadata knows about a column without reading a block.

use plinth_core::wire::Reader;
use plinth_encoding::EncodingError;
use plinth_encoding::expr::{Path, Scalar};
use plinth_encoding::sketch::Sketch;
use plinth_encoding::summary::Order;

use crate::error::{FormatError, Result};
use crate::file::{File, Inner};
use crate::meta::{Extra, StreamMeta};

/// How near to the truth a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// It is the value itself.
    Exact,
    /// Of bounds: no value lies beyond it. Of counts: about so many.
    Bound,
}

/// What the metadata knows about a column, over the whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// Null rows, exact.
    pub null_count: u64,
    /// Smallest non-null value in the column's physical terms (see [`Scalar`]); floats in total order.
    pub min: Option<(Scalar, Exactness)>,
    /// Largest.
    pub max: Option<(Scalar, Exactness)>,
    /// Distinct non-null values: exact where one dictionary has all of them, else an estimate. None of booleans.
    pub distinct_count: Option<(u64, Exactness)>,
    /// The sum of integers and decimals, in unscaled units, where it fits 128 bits; exact.
    pub sum: Option<i128>,
    /// How the rows' values follow each other, nulls left out.
    pub order: Order,
    /// Bytes the column takes in the file.
    pub stored_bytes: u64,
    /// Bytes of its values in memory as Arrow arrays.
    pub value_bytes: u64,
}

/// What is told of a column's values to those who ask for it, beside its metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnDetails {
    /// Of the distinct values; can be merged with that of another file. None of booleans, and of few values.
    pub sketch: Option<Sketch>,
    /// The sums of the integers of each block, row group by row group; none of other types, or if one does not fit.
    pub sums: Option<Vec<i128>>,
}

impl ColumnDetails {
    pub(crate) fn read(bytes: &[u8], meta: &StreamMeta) -> plinth_encoding::Result<Self> {
        let sketched = Self::flag(bytes.first().copied())?;
        let mut rest = bytes.get(1..).unwrap_or_default();
        let mut sketch = None;
        if sketched {
            let (read, len) = Sketch::read(rest)?;
            rest = rest.get(len..).unwrap_or_default();
            sketch = Some(read);
        }
        let wire = &mut Reader::new(rest);
        let summed = Self::flag(Some(wire.u8()?))?;
        let blocks = meta.chunks.iter().map(|chunk| chunk.blocks.len()).sum::<usize>();
        if summed && blocks > wire.left() {
            return Err(EncodingError::corrupt("fewer sums than blocks"));
        }
        let sums = 0..if summed { blocks } else { 0 };
        let sums = sums.map(|_| Ok(wire.signed_128()?)).collect::<plinth_encoding::Result<Vec<_>>>()?;
        let sums = summed.then_some(sums);
        wire.finish()?;
        Ok(Self { sketch, sums })
    }

    fn flag(byte: Option<u8>) -> plinth_encoding::Result<bool> {
        match byte {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(EncodingError::corrupt("neither yes nor no")),
        }
    }
}

/// Details that were read and are kept.
#[derive(Debug, Default)]
pub(crate) struct KnownDetails {
    sketch: Option<Sketch>,
    /// Of each row group, the sums of its blocks.
    sums: Option<Vec<Box<[i128]>>>,
}

impl File {
    /// What is told of a column or struct field beside its [statistics](File::statistics). Reads it each time.
    ///
    /// # Errors
    /// If there is no such column, or it can't be read or is damaged.
    pub fn details(&self, column: &Path) -> Result<ColumnDetails> {
        self.stream_details(self.0.node(column)?.0.stream)
    }

    pub(crate) fn stream_details(&self, stream: usize) -> Result<ColumnDetails> {
        self.0.details(stream)
    }

    /// The sketch of a column's or struct field's distinct values, if it has one. Read when it is first asked for.
    ///
    /// # Errors
    /// As [`File::details`].
    pub fn sketch(&self, column: &Path) -> Result<Option<&Sketch>> {
        Ok(self.0.known_details(self.0.node(column)?.0.stream)?.sketch.as_ref())
    }
}

impl Inner {
    /// The sum of the values of a stream's block, if it is told. Read when one is first asked for.
    pub(crate) fn block_sum(&self, stream: usize, group: usize, block: usize) -> Result<Option<i128>> {
        let sums = self.known_details(stream)?.sums.as_ref();
        Ok(sums.and_then(|sums| sums.get(group)?.get(block).copied()))
    }

    fn known_details(&self, stream: usize) -> Result<&KnownDetails> {
        let known = &self.stream(stream).details;
        if let Some(details) = known.get() {
            return Ok(details);
        }
        let ColumnDetails { sketch, sums } = self.details(stream)?;
        let chunks = self.stream_meta(stream)?.chunks.iter();
        let by_group = |sums: Vec<i128>| {
            let mut rest = sums.into_iter();
            chunks.map(|chunk| rest.by_ref().take(chunk.blocks.len()).collect()).collect()
        };
        let details = KnownDetails { sketch, sums: sums.map(by_group) };
        Ok(known.get_or_init(|| details))
    }

    fn details(&self, stream: usize) -> Result<ColumnDetails> {
        let meta = self.stream_meta(stream)?;
        let details = meta.extras.iter().find(|(kind, _)| *kind == Extra::Details as u64);
        let Some((_, section)) = details else { return Ok(ColumnDetails::default()) };
        let place = format!("column {:?}: details", self.stream(stream).name);
        let bytes = self.section(section, &place)?;
        ColumnDetails::read(&bytes, meta).map_err(|e| FormatError::at(self.source.name(), place, e))
    }
}
