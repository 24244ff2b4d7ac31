//! The groups of a column's postings in the file.

use std::sync::Arc;

use arrow_buffer::Buffer;
use plinth_encoding::EncodingError;
use plinth_encoding::postings::{GroupSource, Place};
use plinth_io::{Merged, Source};

use crate::error::FormatError;
use crate::wire::verify;

/// Groups that follow each other are read together, up to so many bytes.
const READ_MOST: u64 = 1 << 20;

/// Reads groups of postings.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) source: Arc<dyn Source>,
    /// For messages.
    pub(crate) place: String,
    /// Where the first one starts.
    pub(crate) offset: u64,
}

impl GroupSource for Groups {
    fn read(&self, groups: &[Place]) -> plinth_encoding::Result<Vec<Buffer>> {
        let range = |group: &Place| {
            let start = self.offset + group.offset;
            start..start + u64::from(group.len)
        };
        let mut merged = Merged::new(0, READ_MOST);
        let reads: Vec<usize> = groups.iter().map(|group| merged.add(&range(group))).collect();
        let fail = |e: FormatError| EncodingError::Fetch(Arc::new(e));
        let brought = self.source.read(merged.reads()).map_err(|e| fail(e.into()))?;
        groups
            .iter()
            .zip(reads)
            .map(|(group, read)| {
                let bytes = merged.part(read, &range(group), &brought);
                let bytes = bytes.ok_or_else(|| EncodingError::corrupt("a read returned too few bytes"))?;
                let Place { group: number, len, .. } = group;
                let offset = self.offset + group.offset;
                let place = format_args!("{} group {number} (offset {offset}, {len} bytes)", self.place);
                verify(self.source.name(), &place, &bytes, group.checksum).map_err(fail)?;
                Ok(bytes)
            })
            .collect()
    }
}
