//! CSV cut into pieces that hold whole records.

use std::path::Path;
use std::sync::Arc;

use super::buffer::{Buffer, Chunk, Cut};
use super::csv::{Boundaries, Dialect, Fields, without_line_end};
use super::feed::Pieces;
use super::out::EXCERPT;
use super::stream::Input;
use crate::error::{IngestError, Result};

/// Columns a file may have, known or passed over.
const COLUMNS: usize = 1_000_000;

/// Bytes of the longest line end.
const LINE_END: usize = 2;

/// Some records of a file.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) path: Arc<Path>,
    /// The file's columns.
    pub(crate) names: Arc<[String]>,
    /// The line of the first record, counted from one.
    pub(crate) line: u64,
    /// Where the first record is, in bytes of the uncompressed file.
    pub(crate) offset: u64,
    /// Bytes of the file as stored that were read for it.
    pub(crate) stored: u64,
    /// Whole records; of an oversized record its beginning.
    pub(crate) bytes: Chunk,
    /// The length of the one record that is too large to be read.
    pub(crate) oversized: Option<u64>,
}

/// How to cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cutting {
    /// Bytes of a piece, about.
    pub(crate) target: usize,
    /// Bytes of a record, at most.
    pub(crate) record: usize,
    /// How records end.
    pub(crate) dialect: Dialect,
    /// Whether the first record names the fields.
    pub(crate) header: bool,
}

/// Cuts one file.
pub(crate) struct Cutter {
    cutting: Cutting,
    /// Starts with a record.
    buffer: Buffer,
    boundaries: Boundaries,
    scanned: usize,
    names: Arc<[String]>,
    /// Whether any piece was handed out.
    given: bool,
}

impl Cutter {
    pub(crate) fn open(input: Arc<Input>, cutting: Cutting) -> Result<Self> {
        let buffer = Buffer::open(input)?;
        let boundaries = Boundaries::new(cutting.dialect);
        let mut this = Self { cutting, buffer, boundaries, scanned: 0, names: Arc::default(), given: false };
        this.buffer.sniff(cutting.target)?;
        this.check_line_ends()?;
        this.read_names()?;
        Ok(this)
    }

    fn check_line_ends(&self) -> Result<()> {
        let head = self.buffer.bytes();
        let carriage_returns = memchr::memchr2(b'\n', b'\r', head).is_some_and(|at| {
            let next = head.get(at + 1);
            head.get(at) == Some(&b'\r') && next.is_some_and(|b| *b != b'\n') && !head.contains(&b'\n')
        });
        if carriage_returns {
            let what = "has lines that end with CR alone; convert it first (tr '\\r' '\\n')";
            return Err(IngestError::damaged(&self.buffer.path, what));
        }
        Ok(())
    }

    /// Takes the header, or numbers the fields of the first record.
    fn read_names(&mut self) -> Result<()> {
        let header = self.cutting.header;
        let end = loop {
            match self.boundaries.next(self.buffer.bytes(), self.scanned, self.buffer.ended) {
                Ok(end) => break end,
                Err(scanned) => self.scanned = scanned,
            }
            if self.buffer.ended {
                break self.buffer.bytes().len();
            }
            if self.buffer.bytes().len() > self.cutting.record {
                let limit = self.cutting.record;
                return Err(IngestError::damaged(
                    &self.buffer.path,
                    format!("the first line is longer than {limit} bytes"),
                ));
            }
            self.buffer.fill(self.buffer.bytes().len().saturating_mul(2).max(64))?;
        };
        self.boundaries.quoted = false;
        self.scanned = 0;
        let record = without_line_end(self.buffer.bytes().get(..end).unwrap_or_default());
        let bad = |what: &str| {
            let excerpt = crate::error::excerpt(record);
            IngestError::damaged(&self.buffer.path, format!("line 1: {what}: {excerpt}"))
        };
        let text = std::str::from_utf8(record).map_err(|_| bad("not UTF-8 text"))?;
        let mut names: Vec<String> = Vec::new();
        // A file without a byte has no columns; a line without one has a column, if there are lines.
        if end > 0 {
            let mut fields = Fields::default();
            fields.parse(text, self.cutting.dialect, COLUMNS).map_err(bad)?;
            if fields.count() > COLUMNS {
                return Err(bad(&format!("{} columns where at most {COLUMNS} can be read", fields.count())));
            }
            let name = |(at, field): (usize, super::csv::Field<'_>)| match field.text {
                name if header && !name.is_empty() => name.to_owned(),
                _ => format!("column{}", at + 1),
            };
            names.extend(fields.iter(text).enumerate().map(name));
        }
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(IngestError::DuplicateColumn {
                path: self.buffer.path.display().to_string(),
                column: twice.clone(),
            });
        }
        self.names = names.into();
        if header {
            let header = self.cut(end);
            self.buffer.unaccount(header.stored);
            self.given = false;
        }
        Ok(())
    }

    /// Takes `end` bytes off the buffer.
    fn cut(&mut self, end: usize) -> Piece {
        let Cut { bytes, line, offset, stored } = self.buffer.cut(end);
        self.scanned = self.scanned.saturating_sub(bytes.len());
        self.given = true;
        Piece {
            path: Arc::clone(&self.buffer.path),
            names: Arc::clone(&self.names),
            line,
            offset,
            stored,
            bytes,
            oversized: None,
        }
    }

    /// Passes over the record the buffer starts with, which is larger than a record may be.
    fn oversized(&mut self) -> Result<Piece> {
        let excerpt = self.buffer.bytes().get(..EXCERPT.min(self.cutting.record)).unwrap_or_default().to_vec();
        let (line, offset) = (self.buffer.line, self.buffer.offset);
        loop {
            let end = self.boundaries.next(self.buffer.bytes(), self.scanned, self.buffer.ended);
            // What comes after a byte depends on the byte before it at most.
            let (taken, found) = match end {
                Ok(end) => (end, true),
                Err(_) if self.buffer.ended => (self.buffer.bytes().len(), true),
                Err(scanned) => {
                    self.scanned = scanned;
                    (scanned.saturating_sub(1), false)
                }
            };
            if found {
                self.scanned = taken;
                self.boundaries.quoted = false;
            }
            let mut piece = self.cut(taken);
            if found {
                (piece.line, piece.offset) = (line, offset);
                let line_end = piece.bytes.len() - without_line_end(&piece.bytes).len();
                piece.oversized = Some(self.buffer.offset - offset - line_end as u64);
                piece.bytes = excerpt.into();
                return Ok(piece);
            }
            self.buffer.fill(self.buffer.bytes().len() + self.cutting.target.max(64))?;
        }
    }
}

impl Pieces for Cutter {
    type Piece = Piece;

    fn piece(&mut self) -> Result<Option<Piece>> {
        let mut goal = self.cutting.target;
        loop {
            self.buffer.fill(goal)?;
            let (end, scanned) = self.boundaries.last(self.buffer.bytes(), self.scanned, self.buffer.ended);
            self.scanned = scanned;
            if self.buffer.ended {
                let everything = self.buffer.bytes().len();
                // A file of which there is only a header still says what columns it has.
                let wanted = everything > 0 || !self.given;
                return Ok(wanted.then(|| self.cut(everything)));
            }
            if let Some(end) = end {
                return Ok(Some(self.cut(end)));
            }
            if self.buffer.bytes().len() > self.cutting.record.saturating_add(LINE_END) {
                return self.oversized().map(Some);
            }
            goal = self
                .buffer
                .bytes()
                .len()
                .saturating_mul(2)
                .min(self.cutting.record.saturating_add(LINE_END + 1))
                .max(goal + 1);
        }
    }
}
