//! What a file tells of its columns to those who ask for it, beside their metadata: sketches, and the sums of blocks.

use plinth_encoding::expr::Path;
use plinth_encoding::sketch::Sketch;

use crate::error::{FormatError, Result};
use crate::file::{File, Inner};
use crate::meta::Extra;
use crate::statistics::{ColumnDetails, KnownDetails};

impl File {
    /// What is told of a column or struct field beside its [statistics](File::statistics). Reads it each time.
    ///
    /// # Errors
    /// If there is no such column, or it can't be read or is damaged.
    pub fn details(&self, column: &Path) -> Result<ColumnDetails> {
        self.0.details(self.0.node(column)?.0.stream)
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

    /// Reads it each time.
    pub(crate) fn details(&self, stream: usize) -> Result<ColumnDetails> {
        let meta = self.stream_meta(stream)?;
        let details = meta.extras.iter().find(|(kind, _)| *kind == Extra::Details as u64);
        let Some((_, section)) = details else { return Ok(ColumnDetails::default()) };
        let place = format!("column {:?}: details", self.stream(stream).name);
        let bytes = self.section(section, &place)?;
        ColumnDetails::read(&bytes, meta).map_err(|e| FormatError::at(self.source.name(), place, e))
    }
}
