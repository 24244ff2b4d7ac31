//! The rows of a question's matches, in order, from lists or from a scan.

use std::ops::Range;
use std::sync::Arc;

use plinth_encoding::postings::Postings;
use plinth_io::Reservation;

use super::{Access, Asked, Matches};
use crate::error::{FormatError, Result};
use crate::scan::postings::located;
use crate::scan::{Chunk, Scan};

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
    /// The other parts of the list of one code of one of the dictionaries.
    Parts {
        of: Arc<Asked>,
        postings: Arc<Postings>,
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
            From::Parts { of, postings, code, parts } => {
                let Some(part) = parts.next() else { return Ok(false) };
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

impl Matches {
    /// The only code that matches, in the one dictionary that has one.
    fn one_code(&self) -> Option<(&Arc<Postings>, u32)> {
        let mut having = self.of.dictionaries.iter().zip(&self.codes.0).filter(|(_, codes)| !codes.is_empty());
        match (having.next()?, having.next()) {
            ((listed, codes), None) if codes.len() == 1 => Some((listed.postings.as_ref()?, codes.iter().next()?)),
            _ => None,
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
    let (Access::Postings, Some(listed)) = (matches.choose()?, of.listed(&matches.codes)) else { return scan() };
    if let (Some((postings, code)), true) = (matches.one_code(), of.elsewhere.is_empty()) {
        let (mut parts, mut rows) = (postings.parts(code), Vec::new());
        if let Some(part) = parts.next() {
            postings.read_part(code, part, &mut rows).map_err(|e| of.fail(e))?;
        }
        let mut rows = Rows::listed(rows, None);
        if !parts.is_empty() {
            rows.from = From::Parts { of: Arc::clone(of), postings: Arc::clone(postings), code, parts };
        }
        return Ok(rows);
    }
    let file = &of.column.file;
    match located(&listed, 0..file.num_rows(), file.0.io().budget()).map_err(|e| of.fail(e)) {
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
