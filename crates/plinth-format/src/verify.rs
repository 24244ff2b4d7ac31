//! Checking a whole file.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plinth_encoding::postings::Codes;
use rayon::prelude::*;

use crate::error::{FormatError, Result};
use crate::file::File;
use crate::footer::HEADER_MAGIC;
use crate::scan::ScanColumn;
use crate::types::Node;

impl File {
    /// Reads the whole file: checks every checksum, decodes every value, compares counts, and postings with codes. `progress` is called with
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
            self.0.details(stream)?;
            let bytes = self.0.stream_meta(stream)?.dictionary_bytes();
            progress(done.fetch_add(bytes, Relaxed) + bytes);
            for dictionary in 0..self.0.stream_meta(stream)?.dictionaries.len() {
                let values = self.0.dictionary(stream, dictionary)?.values();
                values.map_err(|e| FormatError::at(self.name(), self.0.dictionary_place(stream, dictionary), e))?;
            }
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .build()
            .map_err(|e| FormatError::InvalidArgument(format!("cannot start {threads} threads: {e}")))?;
        for column in &self.0.footer.tree.columns {
            for dictionary in 0..self.0.stream_meta(column.stream)?.dictionaries.len() {
                pool.install(|| self.verify_postings(column, dictionary))?;
            }
            let bytes = self.0.stream_meta(column.stream)?.postings_bytes();
            progress(done.fetch_add(bytes, Relaxed) + bytes);
        }
        let columns = self.schema().fields();
        let tasks: Vec<(usize, &str)> = (0..self.row_groups().len())
            .flat_map(|group| columns.iter().map(move |field| (group, field.name().as_str())))
            .collect();
        pool.install(|| {
            tasks.par_iter().try_for_each(|&(group, column)| {
                let mut scan = self.scan().select([column]).anew().row_groups(group..group + 1).build()?;
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

    /// Reads the lists of one of an indexed column's dictionaries, and checks that they say of its rows what its codes say: both
    /// have the same sum of a hash of each row and its code.
    fn verify_postings(&self, column: &Node, dictionary: usize) -> Result<()> {
        let Some(postings) = self.0.postings(column.stream, dictionary)? else { return Ok(()) };
        let chunks = &self.0.stream_meta(column.stream)?.chunks;
        let groups = (0..chunks.len()).filter(|&group| chunks[group].dictionary == Some(dictionary));
        let groups: Vec<usize> = groups.collect();
        let dictionary = self.0.dictionary(column.stream, dictionary)?;
        let place = format!("column {:?}: postings", column.name);
        let (mut listed, mut sum) = (0_u64, 0_u64);
        let all = Codes::run(0..u32::try_from(dictionary.len()).unwrap_or(u32::MAX));
        let read = postings.for_each(&all, |code, rows| {
            listed += rows.len() as u64;
            sum = rows.iter().fold(sum, |sum, &row| sum.wrapping_add(hash(row, code)));
            Ok(())
        });
        read.map_err(|e| FormatError::at(self.name(), &place, e))?;
        let coded = groups.into_par_iter().map(|group| -> Result<(u64, u64)> {
            let (mut coded, mut sum) = (0_u64, 0_u64);
            let mut scan = self.scan().select([column.name.as_str()]).row_groups(group..group + 1).build()?;
            while let Some(chunk) = scan.next_chunk()? {
                let Some(ScanColumn::Codes { ids, nulls, .. }) = chunk.columns.first() else { continue };
                for (i, (row, &code)) in (chunk.first_row..).zip(ids).enumerate() {
                    if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(i)) {
                        (coded, sum) = (coded + 1, sum.wrapping_add(hash(row, code)));
                    }
                }
            }
            Ok((coded, sum))
        });
        let add = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1.wrapping_add(b.1));
        let coded = coded.try_reduce(|| (0, 0), |a, b| Ok(add(a, b)))?;
        if coded == (listed, sum) {
            return Ok(());
        }
        let what = format!("{place}: the lists say other rows than the column's codes; import the data again");
        Err(FormatError::Corrupt { file: self.name().to_owned(), what })
    }
}

/// Mixes a row and a code (the finisher of MurmurHash3, twice).
fn hash(row: u64, code: u32) -> u64 {
    let mix = |mut n: u64| {
        n = (n ^ (n >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        n = (n ^ (n >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        n ^ (n >> 33)
    };
    mix(row ^ mix(u64::from(code) + 1))
}
