//! Files cut into pieces that hold whole records.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::csv::{Boundaries, Dialect, Fields, without_line_end};
use super::stream::{Input, Opened};
use crate::error::{IngestError, Result};
use crate::format::Compression;

/// Bytes of an oversized record that are kept, at most.
pub(crate) const EXCERPT: usize = 512;

/// Columns a file may have, known or passed over.
const COLUMNS: usize = 1_000_000;

/// Bytes of the longest line end.
const LINE_END: usize = 2;

/// Bytes that [`Cutter::sniff`] needs at least.
const SNIFF: usize = 16;

/// Some records of a file.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) path: Arc<Path>,
    /// The file's columns, where the format names or counts them once for the file.
    pub(crate) names: Option<Arc<[String]>>,
    /// The line of the first record, counted from one.
    pub(crate) line: u64,
    /// Where the first record is, in bytes of the uncompressed file.
    pub(crate) offset: u64,
    /// Bytes of the file as stored that were read for it.
    pub(crate) stored: u64,
    /// Whole records; of an oversized record its beginning.
    pub(crate) bytes: Vec<u8>,
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
    /// Whether records have fields by position; if so, whether the first record names them.
    pub(crate) header: Option<bool>,
}

/// Cuts some inputs, one after the other. Ends after an error.
pub(crate) struct Splitter {
    inputs: std::vec::IntoIter<Arc<Input>>,
    cutting: Cutting,
    open: Option<Cutter>,
}

impl Splitter {
    pub(crate) fn new(inputs: Vec<Arc<Input>>, cutting: Cutting) -> Self {
        Self { inputs: inputs.into_iter(), cutting, open: None }
    }

    fn step(&mut self) -> Result<Option<Piece>> {
        loop {
            let cutter = match &mut self.open {
                Some(cutter) => cutter,
                none => match self.inputs.next() {
                    Some(input) => none.insert(Cutter::open(input, self.cutting)?),
                    None => return Ok(None),
                },
            };
            match cutter.piece()? {
                Some(piece) => return Ok(Some(piece)),
                None => self.open = None,
            }
        }
    }
}

impl Iterator for Splitter {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.inputs = Vec::new().into_iter();
            self.open = None;
        }
        step.transpose()
    }
}

/// Cuts one file.
struct Cutter {
    input: Arc<Input>,
    path: Arc<Path>,
    cutting: Cutting,
    opened: Opened,
    /// Of the file as stored, what pieces account for.
    accounted: u64,
    /// Starts with a record.
    buffer: Vec<u8>,
    ended: bool,
    boundaries: Boundaries,
    scanned: usize,
    line: u64,
    offset: u64,
    names: Option<Arc<[String]>>,
    /// Whether any piece was handed out.
    given: bool,
}

impl Cutter {
    fn open(input: Arc<Input>, cutting: Cutting) -> Result<Self> {
        let opened = input.open()?;
        let mut this = Self {
            path: Arc::from(input.path.as_path()),
            input,
            cutting,
            opened,
            accounted: 0,
            buffer: Vec::new(),
            ended: false,
            boundaries: Boundaries::new(cutting.dialect),
            scanned: 0,
            line: 1,
            offset: 0,
            names: None,
            given: false,
        };
        this.fill(cutting.target.max(SNIFF))?;
        this.sniff()?;
        if cutting.header.is_some() {
            this.read_names()?;
        }
        Ok(this)
    }

    /// Reads until the buffer holds `goal` bytes or the file ends.
    fn fill(&mut self, goal: usize) -> Result<()> {
        let mut len = self.buffer.len();
        if self.ended || len >= goal {
            return Ok(());
        }
        self.buffer.resize(goal, 0);
        while len < goal {
            match self.opened.reader.read(self.buffer.get_mut(len..).unwrap_or_default()) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => len += read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.input.read_error(&e)),
            }
        }
        self.buffer.truncate(len);
        Ok(())
    }

    /// Looks at the beginning for what is no text, and leaves a byte order mark out.
    fn sniff(&mut self) -> Result<()> {
        let head = self.buffer.get(..self.buffer.len().min(4096)).unwrap_or_default();
        let zeros = head.iter().filter(|b| **b == 0).count();
        let utf16 = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
        let what = if head.starts_with(b"PAR1") {
            "is a Parquet file; say so with --format parquet".to_owned()
        } else if let Some(compression) = Compression::of_magic(head) {
            format!("is compressed; its name must end in .{}", compression.extension())
        } else if utf16 || zeros * 4 >= head.len().max(1) {
            "is not UTF-8 but UTF-16 or binary; convert it first (iconv -f UTF-16 -t UTF-8)".to_owned()
        } else if self.cutting.header.is_none() && head.trim_ascii_start().starts_with(b"[") {
            "is a JSON array, not one object a line; convert it first (jq -c '.[]')".to_owned()
        } else if memchr::memchr2(b'\n', b'\r', head).is_some_and(|at| {
            let next = head.get(at + 1);
            head.get(at) == Some(&b'\r') && next.is_some_and(|b| *b != b'\n') && !head.contains(&b'\n')
        }) {
            "has lines that end with CR alone; convert it first (tr '\\r' '\\n')".to_owned()
        } else {
            if head.starts_with(&[0xef, 0xbb, 0xbf]) {
                self.buffer.drain(..3);
                self.offset = 3;
            }
            return Ok(());
        };
        Err(IngestError::damaged(&self.path, what))
    }

    /// Takes the header, or numbers the fields of the first record.
    fn read_names(&mut self) -> Result<()> {
        let header = self.cutting.header == Some(true);
        let end = loop {
            match self.boundaries.next(&self.buffer, self.scanned, self.ended) {
                Ok(end) => break end,
                Err(scanned) => self.scanned = scanned,
            }
            if self.ended {
                break self.buffer.len();
            }
            if self.buffer.len() > self.cutting.record {
                let limit = self.cutting.record;
                return Err(IngestError::damaged(&self.path, format!("the first line is longer than {limit} bytes")));
            }
            self.fill(self.buffer.len().saturating_mul(2).max(64))?;
        };
        self.boundaries.quoted = false;
        self.scanned = 0;
        let record = without_line_end(self.buffer.get(..end).unwrap_or_default());
        let bad = |what: &str| {
            let excerpt = crate::error::excerpt(record);
            IngestError::damaged(&self.path, format!("line 1: {what}: {excerpt}"))
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
            return Err(IngestError::DuplicateColumn { path: self.path.display().to_string(), column: twice.clone() });
        }
        self.names = Some(names.into());
        if header {
            let header = self.cut(end);
            self.accounted -= header.stored;
            self.given = false;
        }
        Ok(())
    }

    /// The next piece, or `None` at the end of the file.
    fn piece(&mut self) -> Result<Option<Piece>> {
        let mut goal = self.cutting.target;
        loop {
            self.fill(goal)?;
            let (end, scanned) = self.boundaries.last(&self.buffer, self.scanned, self.ended);
            self.scanned = scanned;
            if self.ended {
                let everything = self.buffer.len();
                // A file of which there is only a header still says what columns it has.
                let wanted = everything > 0 || (self.names.is_some() && !self.given);
                return Ok(wanted.then(|| self.cut(everything)));
            }
            if let Some(end) = end {
                return Ok(Some(self.cut(end)));
            }
            if self.buffer.len() > self.cutting.record.saturating_add(LINE_END) {
                return self.oversized().map(Some);
            }
            goal =
                self.buffer.len().saturating_mul(2).min(self.cutting.record.saturating_add(LINE_END + 1)).max(goal + 1);
        }
    }

    /// Takes `end` bytes off the buffer.
    fn cut(&mut self, end: usize) -> Piece {
        let rest = self.buffer.split_off(end.min(self.buffer.len()));
        let bytes = std::mem::replace(&mut self.buffer, rest);
        self.scanned = self.scanned.saturating_sub(bytes.len());
        let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        let piece = Piece {
            path: Arc::clone(&self.path),
            names: self.names.clone(),
            line: self.line,
            offset: self.offset,
            stored: self.account(),
            bytes,
            oversized: None,
        };
        self.given = true;
        self.line += lines;
        self.offset += piece.bytes.len() as u64;
        piece
    }

    fn account(&mut self) -> u64 {
        let stored = self.opened.stored.load(Ordering::Relaxed);
        let new = stored.saturating_sub(self.accounted);
        self.accounted = stored;
        new
    }

    /// Passes over the record the buffer starts with, which is larger than a record may be.
    fn oversized(&mut self) -> Result<Piece> {
        let excerpt = self.buffer.get(..EXCERPT.min(self.cutting.record)).unwrap_or_default().to_vec();
        let (line, offset) = (self.line, self.offset);
        loop {
            let end = self.boundaries.next(&self.buffer, self.scanned, self.ended);
            // What comes after a byte depends on the byte before it at most.
            let (taken, found) = match end {
                Ok(end) => (end, true),
                Err(_) if self.ended => (self.buffer.len(), true),
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
                piece.oversized = Some(self.offset - offset - line_end as u64);
                piece.bytes = excerpt;
                return Ok(piece);
            }
            self.fill(self.buffer.len() + self.cutting.target.max(64))?;
        }
    }
}
