//! Checking a whole file.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use crate::error::{FormatError, Result};
use crate::file::File;
use crate::footer::HEADER_MAGIC;

impl File {
    /// Reads the whole file: checks every checksum, decodes every value and compares counts. `progress` is called with
    /// the bytes of blocks and dictionaries read so far. Returns that number at the end.
    ///
    /// # Errors
    /// The first damage found, with column, row group, block and offset.
    pub fn verify(&self, threads: usize, progress: &(dyn Fn(u64) + Sync)) -> Result<u64> {
        let fail = |what: String| FormatError::Corrupt { file: self.name().to_owned(), what };
        let magic = 0..HEADER_MAGIC.len() as u64;
        let header = self.0.source.read(std::slice::from_ref(&magic))?;
        if header.first().map(|buffer| buffer.as_slice()) != Some(HEADER_MAGIC.as_slice()) {
            return Err(fail("header: the magic bytes are damaged".into()));
        }
        let done = AtomicU64::new(0);
        for stream in 0..self.0.footer.streams.len() {
            let bytes = self.0.stream_meta(stream)?.dictionary_bytes();
            progress(done.fetch_add(bytes, Relaxed) + bytes);
            if let Some(dictionary) = self.0.dictionary(stream)? {
                let name = &self.0.stream(stream).name;
                dictionary
                    .values()
                    .map_err(|e| FormatError::at(self.name(), format!("column {name:?}: dictionary"), e))?;
            }
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .build()
            .map_err(|e| FormatError::InvalidArgument(format!("cannot start {threads} threads: {e}")))?;
        let columns = self.schema().fields();
        let tasks: Vec<(usize, &str)> = (0..self.row_groups().len())
            .flat_map(|group| columns.iter().map(move |field| (group, field.name().as_str())))
            .collect();
        pool.install(|| {
            tasks.par_iter().try_for_each(|&(group, column)| {
                let mut scan = self.scan().select([column]).row_groups(group..group + 1).build()?;
                let mut rows = 0;
                for batch in &mut scan {
                    rows += batch?.num_rows() as u64;
                }
                let expected = self.row_groups().get(group).map_or(0, |group| group.rows);
                if rows != expected {
                    let what = format!("column {column:?}, row group {group}: {rows} rows of {expected}");
                    return Err(fail(what));
                }
                let bytes = scan.metrics().bytes_read.load(Relaxed);
                progress(done.fetch_add(bytes, Relaxed) + bytes);
                Ok(())
            })
        })?;
        Ok(done.into_inner())
    }
}
