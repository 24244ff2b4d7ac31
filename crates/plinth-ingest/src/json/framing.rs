//! Framing: files in chunks that hold whole records, by quotes and brackets alone.
//!
//! Records are lines, values one after the other, or the elements of arrays that a path leads to. Where a chunk ends is
//! found in one pass over bitmaps, at a few bytes a cycle; what the records are worth is for others to say, side by side.

use std::path::Path;
use std::sync::Arc;

use super::flaw::Flaw;
use super::path::Root;
use super::path_reader::{Halt, PathReader};
use crate::bits::Level;
use crate::bits::brackets::{Between, Scan, Stop};
use crate::error::{IngestError, Result, before};
use crate::stream::buffer::{Buffer, ChunkBytes, Front};
use crate::stream::feed::{Chunks, TextChunk};
use crate::stream::input::Input;
use crate::stream::output::EXCERPT;

/// Bytes by which a document is told from lines.
const HEAD: usize = 64 << 10;

/// Bytes that are enough for a message.
const SHOWN: usize = 512;

/// Bytes of the longest line end.
const LINE_END: usize = 2;

/// Error of a step that is taken in another state than its own.
const OUT_OF_STATE: &str = "the framer of JSON is not in the state that its step is for";

/// What is in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A record a line.
    Lines,
    /// Values, with or without spaces between.
    Values,
    /// Elements of an array, a comma after each; of the `last` of the array after each but the last.
    Elements {
        /// Whether no comma is before it: then it may be empty.
        first: bool,
        /// Whether it ends here.
        last: bool,
    },
    /// The beginning of one record that is too large to be read, and its length.
    Oversized(u64),
}

/// Some records of a file.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) path: Arc<Path>,
    /// The line of the first byte, counted from one.
    pub(crate) line: u64,
    /// Where the first byte is, in bytes of the uncompressed file.
    pub(crate) offset: u64,
    /// Bytes of the file as stored that were read for it.
    pub(crate) stored: u64,
    pub(crate) bytes: ChunkBytes,
    pub(crate) framing: Framing,
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
    pub(crate) target: usize,
    /// Bytes of a record, at most.
    pub(crate) record: usize,
    /// Where the rows are; without one, the file's beginning says.
    pub(crate) root: Option<Root>,
    pub(crate) depth: usize,
    pub(crate) level: Level,
}

/// The chunks of one file.
pub(crate) struct Framer {
    options: FramingOptions,
    /// Starts between two records.
    buffer: Buffer,
    /// Bytes of the buffer that need not be looked at again.
    scanned: usize,
    state: State,
    /// Bytes as stored that went into no chunk yet.
    stored: u64,
}

enum State {
    Lines,
    Values(Scan),
    /// Around the rows.
    Outside(PathReader),
    /// In an array of rows; `first` if no comma is before what comes next.
    Elements {
        scan: Scan,
        reader: PathReader,
        first: bool,
    },
    /// What is wrong with what comes next.
    Broken(IngestError),
    Done,
}

impl Framer {
    pub(crate) fn open(input: Arc<Input>, options: FramingOptions) -> Result<Self> {
        let mut buffer = Buffer::open(input)?;
        buffer.sniff(HEAD)?;
        let outside = |root: Root| State::Outside(PathReader::new(root, options.depth));
        let state = match &options.root {
            Some(root) => outside(root.clone()),
            None => match shape(buffer.bytes(), options.level) {
                Shape::Array => outside(Root::default()),
                Shape::Lines => State::Lines,
                Shape::Values => State::Values(Scan::new(options.level, Between::Nothing)),
            },
        };
        Ok(Self { options, buffer, scanned: 0, state, stored: 0 })
    }

    /// Has the buffer hold `goal` bytes, and gives the length of what is to be looked at, and whether nothing follows that.
    fn view(&mut self, goal: usize) -> Result<(usize, bool)> {
        self.buffer.fill(goal)?;
        let len = goal.min(self.buffer.bytes().len());
        Ok((len, self.buffer.ended && len == self.buffer.bytes().len()))
    }

    /// What to look at next where `goal` bytes hold no boundary.
    fn further(&self, goal: usize) -> usize {
        let most = self.options.target.saturating_add(self.options.record).saturating_add(LINE_END + 1);
        goal.saturating_mul(2).min(most).max(goal.saturating_add(1))
    }

    fn lines(&mut self) -> Result<Option<Chunk>> {
        let mut goal = self.options.target;
        loop {
            let (len, ended) = self.view(goal)?;
            if ended {
                self.state = State::Done;
                return Ok((len > 0).then(|| self.chunk(len, Framing::Lines)));
            }
            let new = self.buffer.bytes().get(self.scanned..len).unwrap_or_default();
            if let Some(end) = memchr::memrchr(b'\n', new) {
                return Ok(Some(self.chunk(self.scanned + end + 1, Framing::Lines)));
            }
            self.scanned = len;
            if len > self.options.record.saturating_add(LINE_END) {
                return self.oversized(None).map(Some);
            }
            goal = self.further(goal);
        }
    }

    fn values(&mut self) -> Result<Option<Chunk>> {
        match self.boundary()? {
            Stop::Boundary(end) => Ok(Some(self.chunk(end, Framing::Values))),
            // Only the end of the file is no boundary here.
            Stop::More(0) | Stop::End(_) => {
                self.state = State::Done;
                let len = self.buffer.bytes().len();
                Ok((len > 0).then(|| self.chunk(len, Framing::Values)))
            }
            Stop::More(_) => self.oversized(Some(Between::Nothing)).map(Some),
        }
    }

    fn elements(&mut self) -> Result<Option<Chunk>> {
        let State::Elements { first, .. } = &mut self.state else { return Err(IngestError::internal(OUT_OF_STATE)) };
        let first = std::mem::take(first);
        match self.boundary()? {
            Stop::Boundary(end) => Ok(Some(self.chunk(end, Framing::Elements { first, last: false }))),
            Stop::End(at) => {
                let chunk = self.chunk(at, Framing::Elements { first, last: true });
                if self.buffer.bytes().first() != Some(&b']') {
                    // After the records before it, so that these are the same however they are cut.
                    self.state = State::Broken(self.broken(Flaw { at: 0, what: "expected a comma or ]" }));
                    return Ok(Some(chunk));
                }
                let State::Elements { mut reader, .. } = std::mem::replace(&mut self.state, State::Done) else {
                    return Err(IngestError::internal(OUT_OF_STATE));
                };
                reader.close_rows();
                self.state = State::Outside(reader);
                // The bracket.
                self.discard(1);
                Ok(Some(chunk))
            }
            Stop::More(0) => {
                let len = self.buffer.bytes().len();
                if self.buffer.bytes().trim_ascii().is_empty() {
                    return Err(self.broken(Flaw { at: len, what: "the JSON ends too early" }));
                }
                Ok(Some(self.chunk(len, Framing::Elements { first, last: false })))
            }
            Stop::More(_) => self.oversized(Some(Between::Commas)).map(Some),
        }
    }

    /// A boundary to cut at. Without one, `More` is 0 at the end of the file and something else where the first record is too
    /// large.
    fn boundary(&mut self) -> Result<Stop> {
        let mut goal = self.options.target;
        loop {
            let (len, ended) = self.view(goal)?;
            let (State::Values(scan) | State::Elements { scan, .. }) = &mut self.state else {
                return Err(IngestError::internal(OUT_OF_STATE));
            };
            let view = self.buffer.bytes().get(..len).unwrap_or_default();
            // Late, so that chunks are large, but not so late that there is none.
            match scan.next(view, self.scanned, goal - goal / 16, ended) {
                Stop::More(at) => self.scanned = at,
                found => {
                    self.scanned = 0;
                    return Ok(found);
                }
            }
            if ended {
                // There may be boundaries early on, but what is left is a chunk as it is.
                return Ok(Stop::More(0));
            }
            if len > self.options.target.saturating_add(self.options.record) {
                return self.early_boundary(len);
            }
            goal = self.further(goal);
        }
    }

    /// The last boundary before a record that is too large.
    fn early_boundary(&mut self, len: usize) -> Result<Stop> {
        let (State::Values(scan) | State::Elements { scan, .. }) = &mut self.state else {
            return Err(IngestError::internal(OUT_OF_STATE));
        };
        let view = self.buffer.bytes().get(..len).unwrap_or_default();
        let mut again = fresh(scan, self.options.level);
        let mut found = Stop::More(1);
        let mut at = 0;
        loop {
            match again.next(view, at, at, true) {
                Stop::Boundary(next) => {
                    found = Stop::Boundary(next);
                    at = next;
                }
                // No record is too large: the array ends in bytes that were not looked at yet.
                Stop::End(end) if at == 0 => {
                    found = Stop::End(end);
                    break;
                }
                _ => break,
            }
        }
        *scan = fresh(scan, self.options.level);
        self.scanned = 0;
        Ok(found)
    }

    /// Passes over the record the buffer starts with, which is larger than a record may be. It is a line, or a value.
    fn oversized(&mut self, between: Option<Between>) -> Result<Chunk> {
        let excerpt = self.buffer.bytes().get(..EXCERPT.min(self.options.record)).unwrap_or_default().to_vec();
        let (line, offset) = (self.buffer.line, self.buffer.offset);
        let mut scan = between.map(|between| Scan::new(self.options.level, between));
        // What ends it, and the last bytes before that: a carriage return is part of a line's end.
        let mut before = 0;
        self.scanned = 0;
        loop {
            let bytes = self.buffer.bytes();
            let ended = self.buffer.ended;
            let stop = match &mut scan {
                None => match memchr::memchr(b'\n', bytes) {
                    Some(at) => Stop::Boundary(at + 1),
                    None => Stop::More(bytes.len()),
                },
                Some(scan) => scan.next(bytes, 0, 0, ended),
            };
            let (taken, end) = match (stop, between) {
                (Stop::Boundary(end), None) => {
                    let cr = end.checked_sub(2).and_then(|at| bytes.get(at)).map_or(before, |byte| *byte) == b'\r';
                    (end, Some((end - 1, usize::from(cr))))
                }
                (Stop::Boundary(end), Some(Between::Commas)) => (end, Some((end - 1, 0))),
                (Stop::Boundary(end), _) => (end, Some((end, 0))),
                (Stop::End(at), _) => (at, Some((at, 0))),
                (Stop::More(_), _) if ended => (bytes.len(), Some((bytes.len(), 0))),
                (Stop::More(at), _) => (at, None),
            };
            before = taken.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(before);
            let end = end.map(|(end, cr)| self.buffer.offset + end as u64 - cr as u64);
            self.discard(taken);
            if let (Stop::End(_), State::Elements { first, .. }) = (stop, &mut self.state) {
                *first = true;
            }
            if let Some(end) = end {
                let framing = Framing::Oversized(end.saturating_sub(offset));
                let (path, stored) = (Arc::clone(&self.buffer.path), std::mem::take(&mut self.stored));
                return Ok(Chunk { path, line, offset, stored, bytes: excerpt.into(), framing });
            }
            self.buffer.fill(self.buffer.bytes().len() + self.options.target.max(64))?;
        }
    }

    /// Goes on around the rows.
    fn outside(&mut self) -> Result<Option<Chunk>> {
        let mut goal = self.options.target;
        // Where the value starts that the path leads to, if it is no array.
        let mut value = None;
        loop {
            let (len, ended) = self.view(goal)?;
            let State::Outside(reader) = &mut self.state else { return Err(IngestError::internal(OUT_OF_STATE)) };
            let view = self.buffer.bytes().get(..len).unwrap_or_default();
            let halt = match reader.next(view, self.scanned) {
                Ok(halt) => halt,
                Err(flaw) => return Err(self.broken(flaw)),
            };
            match halt {
                Halt::Rows(at) => {
                    self.discard(at);
                    let scan = Scan::new(self.options.level, Between::Commas);
                    let State::Outside(reader) = std::mem::replace(&mut self.state, State::Done) else {
                        return Err(IngestError::internal(OUT_OF_STATE));
                    };
                    self.state = State::Elements { scan, reader, first: true };
                    return Ok(None);
                }
                Halt::Value(at) => {
                    self.discard(at);
                    value = Some(());
                    self.scanned = 1;
                    continue;
                }
                Halt::ValueEnd(end) => return Ok(Some(self.chunk(end, Framing::Values))),
                Halt::More if ended => {
                    if let Err(what) = reader.finish() {
                        return Err(self.broken(Flaw { at: len, what }));
                    }
                    let (in_value, missing) = (reader.is_in_value(), reader.missing().map(nowhere));
                    self.state = State::Done;
                    if let Some(what) = missing {
                        return Err(IngestError::damaged(&self.buffer.path, what));
                    }
                    return Ok(in_value.then(|| self.chunk(len, Framing::Values)));
                }
                Halt::More => self.scanned = len,
            }
            if value.is_none() {
                self.discard(len);
                continue;
            }
            if len > self.options.record {
                let what = format!(
                    "line {}: what --root leads to is no array and larger than the {} bytes a record may have (--max-record)",
                    self.buffer.line, self.options.record
                );
                return Err(IngestError::damaged(&self.buffer.path, what));
            }
            goal = self.further(goal);
        }
    }

    fn broken(&mut self, flaw: Flaw) -> IngestError {
        let Flaw { at, what } = flaw;
        // So that the message does not depend on how much was read; what can't be read is not in it.
        let _ = self.buffer.fill(at.saturating_add(SHOWN));
        let head = self.buffer.bytes().get(..at).unwrap_or_default();
        let line = self.buffer.line + memchr::memchr_iter(b'\n', head).count() as u64;
        let offset = self.buffer.offset + at as u64;
        let rest = before(self.buffer.bytes().get(at..).unwrap_or_default());
        let what = format!("line {line} (byte {offset}): broken JSON around the rows: {what}{rest}");
        IngestError::damaged(&self.buffer.path, what)
    }

    fn chunk(&mut self, end: usize, framing: Framing) -> Chunk {
        let Front { bytes, line, offset, stored } = self.buffer.split_to(end);
        self.scanned = self.scanned.saturating_sub(end);
        let stored = stored + std::mem::take(&mut self.stored);
        Chunk { path: Arc::clone(&self.buffer.path), line, offset, stored, bytes, framing }
    }

    fn discard(&mut self, end: usize) {
        self.stored += self.buffer.split_to(end).stored;
        self.scanned = self.scanned.saturating_sub(end);
    }
}

impl Chunks for Framer {
    type Chunk = Chunk;

    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            let chunk = match &self.state {
                State::Lines => self.lines()?,
                State::Values(_) => self.values()?,
                State::Outside(_) => self.outside()?,
                State::Elements { .. } => self.elements()?,
                State::Broken(error) => {
                    let error = error.clone();
                    self.state = State::Done;
                    return Err(error);
                }
                State::Done => return Ok(None),
            };
            if chunk.is_some() {
                return Ok(chunk);
            }
        }
    }
}

fn fresh(scan: &Scan, level: Level) -> Scan {
    Scan::new(level, scan.between())
}

fn nowhere(keys: &[String]) -> String {
    let keys = keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(", ");
    let instead =
        if keys.is_empty() { String::new() } else { format!("; there are {}", crate::error::excerpt(keys.as_bytes())) };
    format!("--root leads to nothing in it{instead}")
}

/// What a file's beginning says about the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Array,
    Lines,
    Values,
}

/// A bracket opens an array of rows, unless another value follows that array: then each of them is a row. Rows are on lines of
/// their own unless the first line has more than one of them, or less than one and the next line starts no other.
fn shape(bytes: &[u8], level: Level) -> Shape {
    let head = bytes.get(..bytes.len().min(HEAD)).unwrap_or_default().trim_ascii_start();
    let Some(open) = head.first().filter(|byte| matches!(byte, b'{' | b'[')) else { return Shape::Lines };
    let line = memchr::memchr(b'\n', head).unwrap_or(head.len());
    let rest = |at: usize| head.get(at..).unwrap_or_default().trim_ascii_start();
    let starts_alike = |at: usize| rest(at).first() == Some(open);
    let first = Scan::new(level, Between::Nothing).next(head, 0, 0, true);
    if *open == b'[' {
        return match first {
            Stop::Boundary(end) if !matches!(rest(end).first(), Some(b'[' | b'{')) => Shape::Array,
            Stop::Boundary(end) if end <= line && rest(end).len() == rest(line).len() => Shape::Lines,
            Stop::Boundary(_) => Shape::Values,
            _ => Shape::Array,
        };
    }
    match first {
        Stop::Boundary(end) if end <= line => {
            let rest = head.get(end..line).unwrap_or_default().trim_ascii_start();
            if rest.starts_with(b"{") { Shape::Values } else { Shape::Lines }
        }
        _ if line < head.len() && !starts_alike(line) => Shape::Values,
        _ => Shape::Lines,
    }
}
