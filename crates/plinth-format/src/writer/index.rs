//! Inverting columns: from the codes of rows to the rows of each code, in bounded memory.
//!
//! The codes are read back from the file, for only there the rows have their order. They are counted first, which says how
//! the lists are cut into groups. Then groups are gathered in passes, several side by side: each pass goes over all codes and
//! puts the rows of those that it is for where they belong (a counting sort), as many as fit into its share of memory.

use std::ops::Range;

use arrow_buffer::{NullBuffer, ScalarBuffer};
use plinth_encoding::postings::{Directory, MOST_ROWS, Share, encode, plan};
use plinth_encoding::{Block, Effort, Physical, Values};
use plinth_io::Output;
use plinth_profile::{Profiler, Stage};
use rayon::prelude::*;

use super::stream::{ColumnWriter, StoredChunk, StreamWriter};
use super::{WriterOptions, write_section};
use crate::error::{FormatError, Result};
use crate::meta::{ChunkMeta, DictionaryMeta, PostingsMeta};
use crate::types::{Logical, Tree};
use crate::wire::checksum;

/// Least rows that a pass gathers, however little memory there is.
const LEAST_ROWS: u64 = 1 << 16;

/// Checks that columns can be indexed.
pub(super) fn check(tree: &Tree, columns: &[String]) -> Result<()> {
    for name in columns {
        let fail = |what: &str| Err(FormatError::InvalidArgument(format!("column {name:?} can't be indexed: {what}")));
        let Some(node) = tree.columns.iter().find(|node| &node.name == name) else {
            return fail("there is no such column");
        };
        match node.logical {
            Logical::Struct => return fail("it is a struct; index columns of single values"),
            Logical::List | Logical::FixedList(_) | Logical::Map { .. } => {
                return fail("it holds lists; index columns of single values");
            }
            Logical::Null | Logical::Bool | Logical::FixedBinary(0) => {
                return fail(&format!("a {} has no dictionary; scans of it are fast as they are", node.type_name()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes the postings of all columns that are to have some: their coded chunks are in the file, with the row groups in this
/// order, each of so many rows.
pub(super) fn write_all(
    columns: &mut [ColumnWriter],
    order: &[usize],
    rows: impl Fn(usize) -> u64,
    output: &mut dyn Output,
    options: &WriterOptions,
) -> Result<()> {
    for stream in columns.iter_mut().flat_map(|column| &mut column.streams).filter(|stream| stream.indexed) {
        let mut first_row = 0;
        let mut chunks = vec![Vec::new(); stream.dictionaries.len()];
        for &group in order {
            if let Some(StoredChunk::Written(chunk)) = stream.chunks.get(group)
                && let Some(chunks) = chunk.dictionary.and_then(|dictionary| chunks.get_mut(dictionary))
            {
                chunks.push((first_row, chunk));
            }
            first_row += rows(group);
        }
        if first_row > MOST_ROWS {
            let what = format!("column {:?} has too many rows to be indexed; write smaller files", stream.name);
            return Err(FormatError::InvalidArgument(what));
        }
        let each = stream.dictionaries.iter().zip(chunks);
        let postings = each
            .map(|(dictionary, chunks)| Coded { stream, dictionary, chunks, rows: first_row }.invert(output, options));
        let postings = postings.collect::<Result<Vec<_>>>()?;
        for (dictionary, postings) in stream.dictionaries.iter_mut().zip(postings) {
            dictionary.postings = Some(postings);
        }
    }
    Ok(())
}

/// The codes of one of a column's dictionaries in the file.
struct Coded<'a> {
    stream: &'a StreamWriter,
    dictionary: &'a DictionaryMeta,
    /// Each with its first row.
    chunks: Vec<(u64, &'a ChunkMeta)>,
    rows: u64,
}

/// Groups that are gathered in one go.
struct Pass<'a> {
    shares: &'a [Share],
    rows: u64,
}

impl Coded<'_> {
    fn invert(&self, output: &mut dyn Output, options: &WriterOptions) -> Result<PostingsMeta> {
        let lengths = self.count(self.dictionary.values as usize, output, options)?;
        let shares = plan(&lengths, self.rows);
        let mut directory = Directory::default();
        let offset = output.position();
        let passes = self.passes(&shares, options);
        let profiler = Profiler::current();
        for side_by_side in passes.chunks(options.threads.max(1)) {
            options.check_cancelled()?;
            let groups: Vec<Vec<Vec<u8>>> = side_by_side
                .par_iter()
                .map(|pass| {
                    let _build = profiler.scope(Stage::Build.of("postings"));
                    self.gather(pass, &lengths, output).map(|rows| pass.encode(&lengths, &rows, options.effort))
                })
                .collect::<Result<_>>()?;
            let shares = side_by_side.iter().flat_map(|pass| pass.shares);
            for (share, group) in shares.zip(groups.iter().flatten()) {
                let len = u32::try_from(group.len()).map_err(|_| self.fail("a group of postings exceeds 4 GiB"))?;
                output.write_all(group)?;
                directory.push(share.first, len, share.rows, checksum(group));
            }
        }
        let directory = write_section(output, &directory.write())?;
        Ok(PostingsMeta { offset, bytes: directory.offset - offset, directory })
    }

    fn fail(&self, what: impl std::fmt::Display) -> FormatError {
        FormatError::InvalidArgument(format!("column {:?}: {what}", self.stream.name))
    }

    /// How many rows each code has.
    fn count(&self, codes: usize, output: &dyn Output, options: &WriterOptions) -> Result<Vec<u64>> {
        let each = self.chunks.len().div_ceil(options.threads.max(1)).max(1);
        let profiler = Profiler::current();
        let counted = self.chunks.par_chunks(each).map(|chunks| -> Result<Vec<u64>> {
            let _count = profiler.scope(Stage::Build.of("postings"));
            let mut lengths = vec![0_u64; codes];
            self.for_each_block(chunks, output, |_, codes, nulls| {
                let mut count = |code: u32| lengths.get_mut(code as usize).map(|length| *length += 1);
                match nulls {
                    None => codes.iter().try_for_each(|&code| count(code)),
                    Some(nulls) => nulls.valid_indices().try_for_each(|row| count(*codes.get(row)?)),
                }
            })?;
            Ok(lengths)
        });
        let sum = |mut sum: Vec<u64>, lengths: Vec<u64>| {
            sum.iter_mut().zip(lengths).for_each(|(sum, length)| *sum += length);
            sum
        };
        Ok(counted.try_reduce_with(|a, b| Ok(sum(a, b))).transpose()?.unwrap_or_else(|| vec![0; codes]))
    }

    /// Shares out groups: to as many passes as there are threads, or as memory wants.
    fn passes<'a>(&self, shares: &'a [Share], options: &WriterOptions) -> Vec<Pass<'a>> {
        let threads = options.threads.max(1) as u64;
        let total: u64 = shares.iter().map(|share| share.rows).sum();
        let memory = options.dictionary_total_bytes as u64 / size_of::<u64>() as u64;
        let most = total.div_ceil(threads).min(memory / threads).max(LEAST_ROWS);
        let mut passes = Vec::new();
        let (mut from, mut rows) = (0, 0);
        for (i, share) in shares.iter().enumerate() {
            if rows + share.rows > most && i > from {
                passes.push(Pass { shares: &shares[from..i], rows });
                (from, rows) = (i, 0);
            }
            rows += share.rows;
        }
        if from < shares.len() {
            passes.push(Pass { shares: &shares[from..], rows });
        }
        passes
    }

    /// The rows of a pass's groups, list by list.
    fn gather(&self, pass: &Pass<'_>, lengths: &[u64], output: &dyn Output) -> Result<Vec<u64>> {
        let codes = pass.codes();
        let total = usize::try_from(pass.rows).map_err(|_| self.fail("more rows than memory can hold"))?;
        // Where the next row of each code goes. All other codes count as one more, whose rows go to a slot of no meaning, as do
        // rows of the first and the last code that belong to groups of other passes: there are no branches on codes.
        let span = codes.len();
        let mut next = Vec::with_capacity(span + 1);
        let skip = pass.shares.first().map_or(0, |share| share.skip);
        let mut at = 0_u64.wrapping_sub(skip);
        for &length in lengths.get(codes.clone()).unwrap_or_default() {
            next.push(at);
            at = at.wrapping_add(length);
        }
        next.push(pass.rows);
        let mut rows = vec![0_u64; total + 1];
        let mut put = |code: u32, row: u64| {
            let code = (code as usize).wrapping_sub(codes.start).min(span);
            let next = next.get_mut(code)?;
            let slot = usize::try_from(*next).map_or(total, |next| next.min(total));
            *next = next.wrapping_add(1);
            *rows.get_mut(slot)? = row;
            Some(())
        };
        self.for_each_block(&self.chunks, output, |first_row, codes, nulls| match nulls {
            None => (first_row..).zip(codes).try_for_each(|(row, &code)| put(code, row)),
            Some(nulls) => nulls.valid_indices().try_for_each(|row| put(*codes.get(row)?, first_row + row as u64)),
        })?;
        rows.truncate(total);
        Ok(rows)
    }

    /// Reads back the codes of chunks, block by block: with the first row of each, and which of its rows are null.
    fn for_each_block(
        &self,
        chunks: &[(u64, &ChunkMeta)],
        output: &dyn Output,
        mut each: impl FnMut(u64, &[u32], Option<&NullBuffer>) -> Option<()>,
    ) -> Result<()> {
        let wrong = || self.fail("codes read back are not those written");
        for (first_row, chunk) in chunks {
            let (Some(first), Some(last)) = (chunk.blocks.first(), chunk.blocks.last()) else { continue };
            let bytes = output.read(&(first.offset..last.range().end))?;
            let mut row = *first_row;
            for block in &chunk.blocks {
                let start = usize::try_from(block.offset - first.offset).map_err(|_| wrong())?;
                let column = Block::open(
                    Physical::CODES,
                    &bytes.slice_with_length(start, block.len as usize),
                    block.values as usize,
                )
                .and_then(|block| block.decode(None))
                .map_err(|e| self.fail(e))?;
                let Values::Fixed(codes) = column.values else { return Err(wrong()) };
                let codes = ScalarBuffer::<u32>::new(codes, 0, column.len);
                each(row, &codes, column.nulls.as_ref()).ok_or_else(wrong)?;
                row += u64::from(block.values);
            }
        }
        Ok(())
    }
}

impl Pass<'_> {
    /// The codes of its groups.
    fn codes(&self) -> Range<usize> {
        let (Some(first), Some(last)) = (self.shares.first(), self.shares.last()) else { return 0..0 };
        first.first as usize..last.first as usize + last.codes as usize
    }

    fn encode(&self, lengths: &[u64], rows: &[u64], effort: Effort) -> Vec<Vec<u8>> {
        let mut rest = rows;
        let here = |share: &Share| {
            let (here, after) = rest.split_at(usize::try_from(share.rows).unwrap_or(usize::MAX).min(rest.len()));
            rest = after;
            encode(share, lengths, here, effort)
        };
        self.shares.iter().map(here).collect()
    }
}
