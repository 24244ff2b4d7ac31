//! The records of a chunk of CSV, some at a time: where their fields end, and which of them can't be read.

use std::borrow::Cow;
use std::ops::Range;

use plinth_profile::{Stage, scope};

use super::field::{Field, without_line_end};
use super::framing::Chunk;
use crate::bits::Level;
use crate::bits::dialect::Dialect;
use crate::bits::fields::FieldScan;
use crate::error::{IngestError, Result};
use crate::stream::fault::Place;

/// Bytes that are looked at before their records are taken: few enough that they and their fields' ends stay in a core's
/// nearest cache.
const WINDOW: usize = 32 << 10;

/// Goes through the records of a chunk.
pub(super) struct Records<'a> {
    chunk: &'a Chunk,
    dialect: Dialect,
    /// All of it, if all of it is UTF-8.
    text: Option<&'a str>,
    /// Bytes that a record may have.
    limit: usize,
    scan: FieldScan,
    /// Where the next record starts.
    start: usize,
    /// Whether something may be wrong with the quotes of what was scanned.
    odd: bool,
    /// Lines before a byte, counted as far as they were needed.
    counted: (usize, u64),
}

/// Fields' ends and what they make up; its allocations are used again.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// The bytes after fields.
    ends: Vec<u32>,
    /// How many of these there are with the last of each record that is complete.
    complete: Vec<u32>,
    /// The records that have the right number of fields and nothing wrong with their quotes.
    pub(super) rows: Vec<Row>,
    /// The others, each with the number of rows before it.
    pub(super) broken: Vec<(usize, Range<usize>, Cow<'static, str>)>,
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Its first byte.
    start: u32,
    /// Which of the window's ends is that of its first field.
    first: u32,
}

fn offset(at: usize) -> u32 {
    // Chunks are shorter than that.
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Window {
    /// Where a field of a row is.
    #[inline(always)]
    pub(super) fn field(&self, row: Row, field: usize) -> Range<usize> {
        let first = row.first as usize + field;
        let end = self.ends.get(first).map_or(0, |end| *end as usize);
        let start = match field {
            0 => row.start as usize,
            _ => self.ends.get(first.wrapping_sub(1)).map_or(0, |end| *end as usize + 1),
        };
        start..end
    }

    /// Takes the ends that a block holds.
    #[inline(always)]
    fn push(&mut self, at: usize, fields: u64, records: u64) {
        let known = self.ends.len();
        let mut rest = records;
        while rest != 0 {
            let bit = rest & rest.wrapping_neg();
            let before = (fields & (bit | (bit - 1))).count_ones();
            self.complete.push(offset(known) + before);
            rest &= rest - 1;
        }
        let (mut rest, base) = (fields, offset(at));
        let mut places = [0_u32; 64];
        let count = fields.count_ones() as usize;
        for place in places.iter_mut().take(count) {
            *place = base + rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
        }
        self.ends.extend_from_slice(places.get(..count).unwrap_or_default());
    }
}

impl<'a> Records<'a> {
    pub(super) fn new(chunk: &'a Chunk, limit: usize, level: Level) -> Self {
        let structure = scope(Stage::Structure);
        structure.bytes(chunk.bytes.len() as u64);
        let dialect = chunk.head.dialect;
        Self {
            chunk,
            dialect,
            text: simdutf8::basic::from_utf8(&chunk.bytes).ok(),
            limit,
            scan: FieldScan::new(level, dialect),
            start: 0,
            odd: false,
            counted: (0, chunk.line),
        }
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> &'a [u8] {
        &self.chunk.bytes
    }

    /// A field as it is written.
    #[inline(always)]
    pub(super) fn spelled(&self, field: Range<usize>) -> &'a str {
        match self.text {
            Some(text) => text.get(field).unwrap_or_default(),
            // Records that are not UTF-8 are no rows.
            None => std::str::from_utf8(self.bytes().get(field).unwrap_or_default()).unwrap_or_default(),
        }
    }

    /// What a field of a row stands for.
    #[inline]
    pub(super) fn value(&self, field: Range<usize>) -> Field<'a> {
        let spelled = self.spelled(field);
        // Rows have no broken fields.
        self.dialect.field(spelled).unwrap_or(Field { text: spelled.into(), quoted: false })
    }

    /// Whether a field of a row is in quotes.
    #[inline(always)]
    pub(super) fn is_quoted(&self, field: &Range<usize>) -> bool {
        self.dialect.quote.is_some()
            && !field.is_empty()
            && self.bytes().get(field.start).copied() == self.dialect.quote
    }

    /// Finds the next records. Answers whether there are any.
    pub(super) fn next(&mut self, window: &mut Window, columns: usize) -> Result<bool> {
        window.ends.clear();
        window.complete.clear();
        window.rows.clear();
        window.broken.clear();
        let bytes = self.bytes();
        if self.start >= bytes.len() {
            return Ok(false);
        }
        let _structure = scope(Stage::Structure);
        // What was found of an unfinished record is found once more.
        self.scan.restart();
        let (mut odd, goal) = (false, self.start + WINDOW);
        let scanned = self.scan.run(bytes, self.start, true, |at, ends| {
            odd |= ends.odd;
            window.push(at, ends.fields, ends.records);
            at < goal || window.complete.is_empty()
        });
        self.odd = odd;
        let complete = window.complete.last().map_or(0, |last| *last as usize);
        let rest =
            complete.checked_sub(1).and_then(|last| window.ends.get(last)).map_or(self.start, |end| *end as usize + 1);
        if scanned >= bytes.len() && rest < bytes.len() {
            // The last record has no line end.
            window.ends.push(offset(bytes.len()));
            window.complete.push(offset(window.ends.len()));
            self.odd |= self.scan.is_unsound();
        }
        self.sort_out(window, columns)?;
        Ok(true)
    }

    /// Tells rows from what is none.
    fn sort_out(&mut self, window: &mut Window, columns: usize) -> Result<()> {
        let Window { ends, complete, rows, broken } = window;
        let feeds = self.dialect.line_end == b'\n';
        let careful = self.odd || self.text.is_none();
        let (mut start, mut first) = (self.start, 0_usize);
        for last in complete.iter().map(|last| *last as usize) {
            let count = last - first;
            let Some(end) = ends.get_mut(last.wrapping_sub(1)) else {
                return Err(IngestError::internal("a record of CSV ends behind its fields"));
            };
            let next = (*end as usize + 1).min(self.chunk.bytes.len());
            let byte = |at: usize| self.chunk.bytes.get(at).copied();
            // A carriage return before a line feed is part of the line's end.
            if feeds && *end as usize > start && byte(*end as usize) == Some(b'\n') {
                *end -= u32::from(byte(*end as usize - 1) == Some(b'\r'));
            }
            let end = *end as usize;
            let good = count == columns && end - start <= self.limit && !careful;
            // The only field of a record may be empty.
            let blank = columns != 1 && end == start;
            if good && !blank {
                rows.push(Row { start: offset(start), first: offset(first) });
            } else if !blank {
                match self.flaw(start..end, count, columns, ends, first) {
                    None => rows.push(Row { start: offset(start), first: offset(first) }),
                    Some(why) => broken.push((rows.len(), start..end, why)),
                }
            }
            (start, first) = (next, last);
        }
        self.start = start;
        Ok(())
    }

    /// What is wrong with a record.
    #[cold]
    fn flaw(
        &self,
        record: Range<usize>,
        count: usize,
        columns: usize,
        ends: &[u32],
        first: usize,
    ) -> Option<Cow<'static, str>> {
        if record.len() > self.limit {
            return Some(too_large(self.limit).into());
        }
        let bytes = self.bytes().get(record.clone()).unwrap_or_default();
        if let Err(e) = std::str::from_utf8(bytes) {
            return Some(format!("not UTF-8 text (at byte {} of the record)", e.valid_up_to()).into());
        }
        if self.odd {
            let mut start = record.start;
            for end in ends.iter().skip(first).take(count).map(|end| *end as usize) {
                let field = start..end.min(record.end);
                if self.is_quoted(&field)
                    && let Err(why) = self.dialect.field(self.spelled(field))
                {
                    return Some(why.into());
                }
                start = end + 1;
            }
        }
        (count != columns).then(|| format!("{count} fields where the file has {columns} columns").into())
    }

    /// The place of a record, for people.
    pub(super) fn place(&mut self, record: Range<usize>) -> Place<'a> {
        let (counted, line) = self.counted;
        let before = self.bytes().get(counted..record.start).unwrap_or_default();
        let line = line + memchr::memchr_iter(self.dialect.line_end, before).count() as u64;
        self.counted = (record.start.max(counted), line);
        let offset = self.chunk.offset + record.start as u64;
        let raw = without_line_end(self.bytes().get(record).unwrap_or_default(), self.dialect);
        Place { line, offset, raw, len: raw.len() as u64 }
    }

    /// A row's bytes.
    pub(super) fn extent(&self, window: &Window, row: Row, columns: usize) -> Range<usize> {
        row.start as usize..window.field(row, columns.saturating_sub(1)).end
    }
}

pub(super) fn too_large(limit: usize) -> String {
    format!(
        "larger than the {limit} bytes a record may have (--max-record); if it is many lines because of a quote, say --quote none"
    )
}
