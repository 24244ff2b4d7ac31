//! Rows that a writable table has in memory, as a file: so that one scan answers filters on all rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use plinth_format::{File, OpenOptions, Result, Writer, WriterOptions};
use plinth_io::{MemorySource, Output};

/// Bytes that were written.
#[derive(Debug, Default)]
struct Written(Vec<u8>);

impl Output for Written {
    fn position(&self) -> u64 {
        self.0.len() as u64
    }

    fn write_all(&mut self, bytes: &[u8]) -> plinth_io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&self, range: &Range<u64>) -> plinth_io::Result<Buffer> {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(at(range.start)..at(range.end));
        let beyond = || plinth_io::IoError::os("rows in memory", "read", std::io::ErrorKind::UnexpectedEof.into());
        bytes.map(Buffer::from_slice_ref).ok_or_else(beyond)
    }
}

/// A file of the rows of some batches of one schema; `None` if there are none.
///
/// # Errors
/// If a column can't be stored, which those of a table can, or there is no memory.
pub(crate) fn of(name: &str, batches: &[RecordBatch], options: &OpenOptions) -> Result<Option<File>> {
    let Some(first) = batches.first() else { return Ok(None) };
    let writer = WriterOptions { threads: 1, ..WriterOptions::default() };
    let mut writer = Writer::to_output(Written::default(), std::env::temp_dir(), &first.schema(), writer)?;
    for batch in batches {
        writer.write(batch)?;
    }
    let (written, _) = writer.complete()?;
    File::from_source_with(Arc::new(MemorySource::new(name, &written.0)), options).map(Some)
}
