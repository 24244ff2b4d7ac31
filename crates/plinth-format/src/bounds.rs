//! Where the values of row groups end.

use plinth_encoding::EncodingError;
use plinth_encoding::dictionary::keys;
use plinth_encoding::expr::{Path, Scalar};

use crate::error::{FormatError, Result};
use crate::file::File;
use crate::meta::less;

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
    pub fn row_group_bound(&self, column: &Path, group: usize, largest: bool) -> Result<Option<RowGroupBound>> {
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
