//! What the metadata knows about a column without reading a block.

use plinth_core::wire::Reader;
use plinth_encoding::EncodingError;
use plinth_encoding::expr::Scalar;
use plinth_encoding::sketch::Sketch;
use plinth_encoding::summary::Order;

use crate::meta::StreamMeta;

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
    /// Distinct non-null values: exact where one dictionary has all of them or rows are in their order and all differ, else an estimate. None of
    /// booleans.
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
    pub(crate) sketch: Option<Sketch>,
    /// Of each row group, the sums of its blocks.
    pub(crate) sums: Option<Vec<Box<[i128]>>>,
}
