//! What the metadata knows about a column without reading a block.

use plinth_core::wire::Reader;
use plinth_encoding::EncodingError;
use plinth_encoding::dictionary::keys;
use plinth_encoding::expr::{Path, Scalar};
use plinth_encoding::sketch::Sketch;
use plinth_encoding::summary::Order;

use crate::error::FormatError;
use crate::file::File;
use crate::meta::{StreamMeta, less};

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

/// Where the values of a column end in a row group, on one side.
#[derive(Clone, Debug, PartialEq)]
pub struct RowGroupBound {
    /// Whether rows are null.
    pub has_nulls: bool,
    /// A value that no other of the side lies beyond; none if all rows are null.
    pub value: Option<Scalar>,
}

impl File {
    /// How small, or how large, a column's values can be in a row group, in the column's physical terms; `None` if that is not known.
    ///
    /// # Errors
    /// If there is no such column or row group, or metadata or a dictionary can't be read.
    pub fn row_group_bound(
        &self,
        column: &Path,
        group: usize,
        largest: bool,
    ) -> Result<Option<RowGroupBound>, FormatError> {
        let (node, _) = self.0.node(column)?;
        // What is null because a struct around it is is not counted with the field's blocks.
        if !node.is_leaf() || column.parts().len() != 1 {
            return Ok(None);
        }
        let meta = self.0.stream_meta(node.stream)?;
        let chunk = meta.chunks.get(group);
        let chunk = chunk.ok_or_else(|| FormatError::InvalidArgument(format!("there is no row group {group}")))?;
        let has_nulls = chunk.blocks.iter().any(|block| block.nulls > 0);
        let mut value: Option<&Scalar> = None;
        for block in chunk.blocks.iter().filter(|block| block.nulls < block.values) {
            let Some(zone) = &block.zone else { return Ok(None) };
            let here = if largest { &zone.bounds.max } else { &zone.bounds.min };
            let beyond = |known| if largest { less(known, here) } else { less(here, known) };
            value = value.filter(|known| !beyond(known)).or(Some(here));
        }
        let value = match (value, chunk.dictionary) {
            (Some(Scalar::Int(code)), Some(dictionary)) => {
                let place = self.0.dictionary_place(node.stream, dictionary);
                let fail = |error| FormatError::at(self.name(), &place, error);
                let dictionary = self.0.dictionary(node.stream, dictionary)?;
                let code = u32::try_from(*code).map_err(|_| fail(EncodingError::corrupt("a code that is no code")))?;
                let mut key = Vec::new();
                dictionary.get(code, &mut key).map_err(fail)?;
                match keys::to_scalar(dictionary.physical(), &key) {
                    Some(value) => Some(value),
                    None => return Ok(None),
                }
            }
            (value, _) => value.cloned(),
        };
        Ok(Some(RowGroupBound { has_nulls, value }))
    }
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
        let sums = summed.then(|| (0..blocks).map(|_| wire.signed_128()).collect::<Result<Vec<_>, _>>()).transpose()?;
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
