//! What codes of a column stand for.

use std::sync::Arc;

use arrow_array::{ArrayRef, new_null_array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::Path;
use plinth_encoding::{Column, EncodingError, Values};
use plinth_profile::{Stage, scope};

use crate::assemble::leaf as leaf_array;
use crate::error::{FormatError, Result};
use crate::file::File;
use crate::shred::VIEW_BYTES;
use crate::types::Node;

/// The values of one of a column's dictionaries.
#[derive(Clone, Debug)]
pub struct CodeValues {
    /// The file's name.
    file: String,
    /// The column's.
    column: String,
    node: Node,
    dictionary: Arc<Dictionary>,
}

impl CodeValues {
    pub(super) fn new(file: &str, column: &str, node: &Node, dictionary: Arc<Dictionary>) -> Self {
        Self { file: file.to_owned(), column: column.to_owned(), node: node.clone(), dictionary }
    }

    /// The dictionary.
    pub fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// The values of some codes as an array of the column's type; null rows may hold any code.
    ///
    /// # Errors
    /// If a code is no value's, or the dictionary can't be read or is damaged.
    pub fn values(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
        from_codes(&self.node, codes, nulls.cloned(), |codes| self.dictionary.gather(codes)).map_err(|e| self.at(e))
    }

    /// The same for a moment: text lies in the dictionary's own buffers where all of it is decoded, and what is kept of the array keeps all of them.
    ///
    /// # Errors
    /// As [`CodeValues::values`].
    pub fn lent(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
        from_codes(&self.node, codes, nulls.cloned(), |codes| self.dictionary.gather_lent(codes))
            .map_err(|e| self.at(e))
    }

    fn at(&self, error: EncodingError) -> FormatError {
        FormatError::at(&self.file, format!("column {:?}: dictionary", self.column), error)
    }
}

impl File {
    /// The values of the one dictionary that all rows of a column are coded by; `None` if there is none, or another one, too.
    ///
    /// # Errors
    /// If there is no such column, or its metadata can't be read.
    pub fn sole_dictionary(&self, column: &Path) -> Result<Option<CodeValues>> {
        let (node, _) = self.0.node(column)?;
        if !node.is_leaf() {
            return Ok(None);
        }
        let meta = self.0.stream_meta(node.stream)?;
        if meta.dictionaries.len() != 1 || meta.chunks.iter().any(|chunk| chunk.dictionary.is_none()) {
            return Ok(None);
        }
        let dictionary = Arc::clone(self.0.dictionary(node.stream, 0)?);
        Ok(Some(CodeValues::new(self.name(), &self.0.stream(node.stream).name, node, dictionary)))
    }

    /// Whether all rows of a column are codes of dictionaries, of which there are several.
    ///
    /// # Errors
    /// If there is no such column, or its metadata can't be read.
    pub fn has_several_dictionaries(&self, column: &Path) -> Result<bool> {
        let (node, _) = self.0.node(column)?;
        if !node.is_leaf() {
            return Ok(false);
        }
        let meta = self.0.stream_meta(node.stream)?;
        Ok(meta.dictionaries.len() > 1 && meta.chunks.iter().all(|chunk| chunk.dictionary.is_some()))
    }
}

/// The values codes stand for. Null rows may hold any code, so they must not reach the dictionary.
pub(super) fn from_codes(
    node: &Node,
    ids: &[u32],
    nulls: Option<NullBuffer>,
    gathered: impl FnOnce(&[u32]) -> plinth_encoding::Result<Values>,
) -> plinth_encoding::Result<ArrayRef> {
    let len = ids.len();
    let gather = scope(Stage::Gather);
    gather.rows(len as u64);
    gather.bytes((len * node.physical().fixed_width().unwrap_or(VIEW_BYTES)) as u64);
    let values = match &nulls {
        Some(nulls) if nulls.null_count() == len => return Ok(new_null_array(&node.arrow_type(), len)),
        Some(nulls) => {
            let ids: ScalarBuffer<u32> =
                ids.iter().zip(nulls.iter()).map(|(&id, valid)| if valid { id } else { 0 }).collect();
            gathered(&ids)?
        }
        None => gathered(ids)?,
    };
    leaf_array(node, Column { len, values, nulls })
}
