//! The groups of a column's postings in the file.

use std::sync::Arc;

use arrow_buffer::Buffer;
use plinth_encoding::EncodingError;
use plinth_encoding::postings::{GroupSource, Place};
use plinth_io::Source;

use crate::error::FormatError;
use crate::file::verify;

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
        let mut reads: Vec<std::ops::Range<u64>> = Vec::new();
        let mut parts = Vec::with_capacity(groups.len());
        for group in groups {
            let start = self.offset + group.offset;
            let end = start + u64::from(group.len);
            match reads.last_mut() {
                Some(last) if last.end == start && end - last.start <= READ_MOST => last.end = end,
                _ => reads.push(start..end),
            }
            let from = reads.last().map_or(start, |read| read.start);
            parts.push((reads.len() - 1, usize::try_from(start - from).unwrap_or(usize::MAX)));
        }
        let fail = |e: FormatError| EncodingError::Fetch(Arc::new(e));
        let read = self.source.read(&reads).map_err(|e| fail(e.into()))?;
        groups
            .iter()
            .zip(parts)
            .map(|(group, (read_by, from))| {
                let bytes = read.get(read_by).filter(|bytes| from + group.len as usize <= bytes.len());
                let bytes = bytes.ok_or_else(|| EncodingError::corrupt("a read returned too few bytes"))?;
                let bytes = bytes.slice_with_length(from, group.len as usize);
                let Place { group: number, len, .. } = group;
                let offset = self.offset + group.offset;
                let place = format_args!("{} group {number} (offset {offset}, {len} bytes)", self.place);
                verify(self.source.name(), &place, &bytes, group.checksum).map_err(fail)?;
                Ok(bytes)
            })
            .collect()
    }
}
