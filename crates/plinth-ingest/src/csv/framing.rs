//! Framing: CSV in chunks that hold whole records.

use std::path::Path;
use std::sync::Arc;

use super::field::fields;
use super::field::without_line_end;
use super::sniff::{SniffOptions, columns, sniff};
use crate::bits::dialect::Dialect;
use crate::bits::fields::FieldScan;
use crate::bits::{BLOCK, Level};
use crate::error::{IngestError, Result, before};
use crate::stream::buffer::{Buffer, ChunkBytes, Front};
use crate::stream::feed::{Chunks, TextChunk};
use crate::stream::input::Input;
use crate::stream::output::EXCERPT;

/// Columns a file may have, known or passed over.
const COLUMNS: usize = 1_000_000;

/// Bytes of the longest line end.
const LINE_END: usize = 2;

/// Bytes by which the dialect is told.
const HEAD: usize = 64 << 10;

/// Bytes of a chunk, and of a record, at most: places in them are told in 32 bits.
const LARGEST: usize = 1 << 31;

/// How a file is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its columns.
    pub(crate) names: Vec<String>,
    pub(crate) dialect: Dialect,
}

/// Some records of a file.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) path: Arc<Path>,
    pub(crate) head: Arc<Head>,
    /// The line of the first record, counted from one.
    pub(crate) line: u64,
    /// Where the first record is, in bytes of the uncompressed file.
    pub(crate) offset: u64,
    /// Bytes of the file as stored that were read for it.
    pub(crate) stored: u64,
    /// Whole records; of an oversized record its beginning.
    pub(crate) bytes: ChunkBytes,
    /// The length of the one record that is too large to be read.
    pub(crate) oversized: Option<u64>,
}

impl TextChunk for Chunk {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// How to frame.
#[derive(Clone, Debug)]
pub(crate) struct FramingOptions {
    /// Bytes of a chunk, about.
    target: usize,
    /// Bytes of a record, at most.
    pub(crate) record: usize,
    sniff_options: SniffOptions,
    pub(crate) level: Level,
    /// Of the first columns of a file without a header.
    names: Arc<Vec<String>>,
}

impl FramingOptions {
    pub(crate) fn new(target: usize, record: usize, sniff_options: SniffOptions, level: Level) -> Self {
        let names = Arc::default();
        Self { target: target.clamp(1, LARGEST), record: record.clamp(1, LARGEST), sniff_options, level, names }
    }

    /// The same of files whose first columns have such names, unless a header says others.
    pub(crate) fn named(self, names: &[String]) -> Self {
        Self { names: Arc::new(names.to_vec()), ..self }
    }

    /// The same with chunks that are no larger than `target`.
    pub(crate) fn smaller(&self, target: usize) -> Self {
        Self { target: self.target.min(target), ..self.clone() }
    }
}

/// The chunks of one file.
pub(crate) struct Framer {
    options: FramingOptions,
    /// Starts with a record.
    buffer: Buffer,
    scan: FieldScan,
    scanned: usize,
    head: Arc<Head>,
    /// Whether any chunk was handed out.
    given: bool,
}

impl Framer {
    pub(crate) fn open(input: Arc<Input>, options: FramingOptions) -> Result<Self> {
        let mut buffer = Buffer::open(input)?;
        buffer.sniff(HEAD)?;
        let head = buffer.bytes().get(..buffer.bytes().len().min(HEAD)).unwrap_or_default();
        let whole = buffer.ended && head.len() == buffer.bytes().len();
        let (dialect, header) = sniff(head, whole, &options.sniff_options, options.level);
        buffer.line_end = dialect.line_end;
        let scan = FieldScan::new(options.level, dialect);
        let head = Arc::new(Head { names: Vec::new(), dialect });
        let mut this = Self { options, buffer, scan, scanned: 0, head, given: false };
        this.read_names(header)?;
        Ok(this)
    }

    /// Takes the header, or numbers the fields of the first record.
    fn read_names(&mut self, header: bool) -> Result<()> {
        let dialect = self.head.dialect;
        let mut end = self.first_record()?;
        // A blank line is a row where there is one column.
        let is_blank = |bytes: &[u8], end| without_line_end(bytes.get(..end).unwrap_or_default(), dialect).is_empty();
        if end > 0 && is_blank(self.buffer.bytes(), end) && self.is_wide() {
            while end > 0 && is_blank(self.buffer.bytes(), end) {
                let blank = self.chunk(end);
                self.buffer.unaccount(blank.stored);
                end = self.first_record()?;
            }
            self.given = false;
        }
        let line = self.buffer.line;
        let record = without_line_end(self.buffer.bytes().get(..end).unwrap_or_default(), dialect);
        let bad =
            |what: &str| IngestError::damaged(&self.buffer.path, format!("line {line}: {what}{}", before(record)));
        let text = std::str::from_utf8(record).map_err(|_| bad("not UTF-8 text"))?;
        // A file without a byte has no columns; a line without one has a column, if there are lines.
        let fields = if end > 0 { fields(text, dialect, self.options.level) } else { Vec::new() };
        if fields.len() > COLUMNS {
            return Err(bad(&format!("{} columns where at most {COLUMNS} can be read", fields.len())));
        }
        let mut names = Vec::with_capacity(fields.len());
        for (at, field) in fields.into_iter().enumerate() {
            let name = dialect.field(field).map_err(bad)?.text;
            names.push(match self.options.names.get(at).filter(|_| !header) {
                Some(given) => given.clone(),
                None if header && !name.is_empty() => name.into_owned(),
                None => format!("column{}", at + 1),
            });
        }
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(IngestError::DuplicateColumn {
                path: self.buffer.path.display().to_string(),
                column: twice.clone(),
                advice: "; rename one of them, or say --no-header if the first line is a row",
            });
        }
        self.head = Arc::new(Head { names, dialect });
        if header {
            let header = self.chunk(end);
            self.buffer.unaccount(header.stored);
            self.given = false;
        }
        Ok(())
    }

    /// Whether the first record that is not blank has several fields.
    fn is_wide(&self) -> bool {
        let bytes = self.buffer.bytes();
        let head = bytes.get(..bytes.len().min(HEAD)).unwrap_or_default();
        columns(head, self.buffer.ended && head.len() == bytes.len(), self.head.dialect, self.options.level) > 1
    }

    /// Where the record ends that the buffer starts with.
    fn first_record(&mut self) -> Result<usize> {
        let end = loop {
            match self.scan.first(self.buffer.bytes(), self.scanned, self.buffer.ended) {
                Ok(end) => break end,
                Err(scanned) => self.scanned = scanned,
            }
            if self.buffer.ended {
                break self.buffer.bytes().len();
            }
            if self.buffer.bytes().len() > self.options.record {
                let limit = self.options.record;
                return Err(IngestError::damaged(
                    &self.buffer.path,
                    format!("the first line is longer than {limit} bytes"),
                ));
            }
            self.buffer.fill(self.buffer.bytes().len().saturating_mul(2).max(64))?;
        };
        self.scan.restart();
        self.scanned = 0;
        Ok(end)
    }

    /// Takes `end` bytes off the buffer.
    fn chunk(&mut self, end: usize) -> Chunk {
        let Front { bytes, line, offset, stored } = self.buffer.split_to(end);
        self.scanned = self.scanned.saturating_sub(bytes.len());
        self.given = true;
        Chunk {
            path: Arc::clone(&self.buffer.path),
            head: Arc::clone(&self.head),
            line,
            offset,
            stored,
            bytes,
            oversized: None,
        }
    }

    /// Passes over the record the buffer starts with, which is larger than a record may be.
    fn oversized(&mut self) -> Result<Chunk> {
        let excerpt = self.buffer.bytes().get(..EXCERPT.min(self.options.record)).unwrap_or_default().to_vec();
        let (line, offset) = (self.buffer.line, self.buffer.offset);
        loop {
            let end = self.scan.first(self.buffer.bytes(), self.scanned, self.buffer.ended);
            // The last byte stays, as it may be part of the line's end.
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
                self.scan.restart();
            }
            let mut chunk = self.chunk(taken);
            if found {
                (chunk.line, chunk.offset) = (line, offset);
                let line_end = chunk.bytes.len() - without_line_end(&chunk.bytes, self.head.dialect).len();
                chunk.oversized = Some(self.buffer.offset - offset - line_end as u64);
                chunk.bytes = excerpt.into();
                return Ok(chunk);
            }
            self.buffer.fill(self.buffer.bytes().len() + self.options.target.max(64))?;
        }
    }
}

impl Chunks for Framer {
    type Chunk = Chunk;

    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        let mut goal = self.options.target;
        loop {
            self.buffer.fill(goal)?;
            let view = self.buffer.bytes().get(..goal).unwrap_or(self.buffer.bytes());
            let ended = self.buffer.ended && view.len() == self.buffer.bytes().len();
            let (end, scanned) = self.scan.last(view, self.scanned, ended);
            let len = view.len();
            self.scanned = scanned;
            if ended {
                // A file of which there is only a header still says what columns it has.
                let wanted = len > 0 || !self.given;
                return Ok(wanted.then(|| self.chunk(len)));
            }
            if let Some(end) = end {
                return Ok(Some(self.chunk(end)));
            }
            let most = self.options.record.saturating_add(LINE_END);
            if scanned > most {
                return self.oversized().map(Some);
            }
            // A part of a block at the end is not looked at.
            goal = goal.saturating_mul(2).min(most.saturating_add(2 * BLOCK)).max(goal + 1);
        }
    }
}
