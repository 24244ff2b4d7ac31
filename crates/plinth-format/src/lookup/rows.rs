//! The rows of a question's matches, in order, from lists or from a scan.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use plinth_encoding::EncodingError;
use plinth_encoding::postings::{Codes, Postings};
use plinth_io::{MemoryBudget, Reservation};

use super::{Access, Asked, Matches};
use crate::error::{FormatError, Result};
use crate::scan::{Chunk, Scan};

/// Lists with more than one in so many rows are put in order by a bitmap, others by sorting.
const SPARSE: u64 = 64;

/// Numbers of rows, increasing. Stops after an error.
#[derive(Debug)]
pub struct Rows {
    from: From,
    /// The next of these.
    waiting: std::vec::IntoIter<u64>,
    used: Access,
    /// Of what waits.
    _memory: Option<Reservation>,
}

/// Where more rows come from.
#[derive(Debug)]
enum From {
    Nowhere,
    /// The other parts of one code's list.
    Parts {
        of: Arc<Asked>,
        code: u32,
        parts: Range<usize>,
    },
    Scan(Box<Scan>),
}

impl Rows {
    fn listed(rows: Vec<u64>, memory: Option<Reservation>) -> Self {
        Self { from: From::Nowhere, waiting: rows.into_iter(), used: Access::Postings, _memory: memory }
    }

    /// Whether they come from postings or from a scan.
    pub fn used(&self) -> Access {
        self.used
    }

    /// All that are left.
    ///
    /// # Errors
    /// If the file can't be read or is damaged.
    pub fn into_vec(mut self) -> Result<Vec<u64>> {
        let mut rows: Vec<u64> = std::mem::take(&mut self.waiting).collect();
        while self.more()? {
            rows.extend(self.waiting.by_ref());
        }
        Ok(rows)
    }

    /// Fetches more rows. False if there are none.
    fn more(&mut self) -> Result<bool> {
        let mut rows = Vec::new();
        match &mut self.from {
            From::Nowhere => return Ok(false),
            From::Parts { of, code, parts } => {
                let (Some(part), Some(postings)) = (parts.next(), &of.postings) else { return Ok(false) };
                postings.read_part(*code, part, &mut rows).map_err(|e| of.fail(e))?;
            }
            From::Scan(scan) => match Scan::next_chunk(scan)? {
                Some(chunk) => push(&chunk, &mut rows),
                None => return Ok(false),
            },
        }
        self.waiting = rows.into_iter();
        Ok(true)
    }
}

/// Appends the numbers of a chunk's rows.
fn push(chunk: &Chunk, rows: &mut Vec<u64>) {
    match &chunk.selection {
        Some(selection) => rows.extend(selection.set_indices().map(|row| chunk.first_row + row as u64)),
        None => rows.extend(chunk.first_row..chunk.first_row + chunk.rows as u64),
    }
}

impl Iterator for Rows {
    type Item = Result<u64>;

    fn next(&mut self) -> Option<Result<u64>> {
        loop {
            if let Some(row) = self.waiting.next() {
                return Some(Ok(row));
            }
            match self.more() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.from = From::Nowhere;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// The rows that hold one of the matching values.
pub(super) fn of(matches: &Matches) -> Result<Rows> {
    let of = &matches.of;
    let scan = || {
        let scan = matches.scan().project(Vec::new()).build()?;
        Ok(Rows {
            from: From::Scan(Box::new(scan)),
            waiting: Vec::new().into_iter(),
            used: Access::Scan,
            _memory: None,
        })
    };
    let (Access::Postings, Some(postings)) = (matches.choose()?, &of.postings) else { return scan() };
    if let ([run], true) = (matches.codes.runs(), of.elsewhere.is_empty())
        && run.len() == 1
    {
        let (code, mut parts, mut rows) = (run.start, postings.parts(run.start), Vec::new());
        if let Some(part) = parts.next() {
            postings.read_part(code, part, &mut rows).map_err(|e| of.fail(e))?;
        }
        let mut rows = Rows::listed(rows, None);
        if !parts.is_empty() {
            rows.from = From::Parts { of: Arc::clone(of), code, parts };
        }
        return Ok(rows);
    }
    let file = &of.column.file;
    match located(postings, &matches.codes, 0..file.num_rows(), file.0.io().budget()).map_err(|e| of.fail(e)) {
        Ok((mut rows, memory)) => {
            for groups in &of.elsewhere {
                let mut scan = matches.scan().project(Vec::new()).row_groups(groups.clone()).build()?;
                while let Some(chunk) = scan.next_chunk()? {
                    push(&chunk, &mut rows);
                }
            }
            if !of.elsewhere.is_empty() {
                // Two kinds of row groups, each in order.
                rows.sort();
            }
            Ok(Rows::listed(rows, Some(memory)))
        }
        Err(FormatError::Memory(_)) if of.access == Access::Auto => scan(),
        Err(error) => Err(error),
    }
}

/// The rows of codes that lie in a range of the file's, in order, and the memory they take.
pub(crate) fn located(
    postings: &Postings,
    codes: &Codes,
    within: Range<u64>,
    budget: &Arc<MemoryBudget>,
) -> plinth_encoding::Result<(Vec<u64>, Reservation)> {
    let span = within.end.saturating_sub(within.start);
    let dense = codes.len() > 1 && postings.count(codes)?.saturating_mul(SPARSE) > span;
    let mut memory = budget.open("row numbers");
    let mut grow = |bytes: u64| {
        let refused = |e| EncodingError::Fetch(Arc::new(FormatError::Memory(e)));
        memory.try_grow(bytes).map_err(refused)
    };
    let mut rows = Vec::new();
    let here = |list: &[u64]| {
        let from = list.partition_point(|&row| row < within.start);
        from..list.partition_point(|&row| row < within.end)
    };
    if dense {
        let len = usize::try_from(span).unwrap_or(usize::MAX);
        grow(span / 8)?;
        let mut bits = BooleanBufferBuilder::new(len);
        bits.append_n(len, false);
        postings.for_each(codes, |_, list| {
            for &row in &list[here(list)] {
                bits.set_bit(usize::try_from(row - within.start).unwrap_or(usize::MAX), true);
            }
            Ok(())
        })?;
        let bits: BooleanBuffer = bits.finish();
        let count = bits.count_set_bits();
        grow(count as u64 * size_of::<u64>() as u64)?;
        rows.reserve_exact(count);
        rows.extend(bits.set_indices().map(|row| within.start + row as u64));
    } else {
        postings.for_each(codes, |_, list| {
            let list = &list[here(list)];
            if rows.capacity() - rows.len() < list.len() {
                let more = rows.len().max(list.len());
                grow(more as u64 * size_of::<u64>() as u64)?;
                rows.reserve_exact(more);
            }
            rows.extend_from_slice(list);
            Ok(())
        })?;
        if codes.len() > 1 {
            rows.sort_unstable();
        }
    }
    Ok((rows, memory))
}
