//! The part of a text file that is in memory: read at its end, cut off at its beginning.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::stream::{Input, Opened};
use crate::error::{IngestError, Result};
use crate::format::Compression;

/// Bytes that [`Buffer::sniff`] looks at, at most and at least.
const SNIFF: usize = 4_096;
const MAGIC: usize = 16;

/// A window over a file.
pub(crate) struct Buffer {
    input: Arc<Input>,
    pub(crate) path: Arc<Path>,
    opened: Opened,
    /// Of the file as stored, what was cut off so far accounts for.
    accounted: u64,
    pub(crate) bytes: Vec<u8>,
    /// Whether the file has no more.
    pub(crate) ended: bool,
    /// The line of the first byte, counted from one.
    pub(crate) line: u64,
    /// Where the first byte is, in bytes of the uncompressed file.
    pub(crate) offset: u64,
}

/// What was cut off.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) bytes: Vec<u8>,
    pub(crate) line: u64,
    pub(crate) offset: u64,
    /// Bytes of the file as stored that were read for it.
    pub(crate) stored: u64,
}

impl Buffer {
    pub(crate) fn open(input: Arc<Input>) -> Result<Self> {
        let opened = input.open()?;
        let path = Arc::from(input.path.as_path());
        Ok(Self { input, path, opened, accounted: 0, bytes: Vec::new(), ended: false, line: 1, offset: 0 })
    }

    /// Reads until there are `goal` bytes or the file ends.
    pub(crate) fn fill(&mut self, goal: usize) -> Result<()> {
        let mut len = self.bytes.len();
        if self.ended || len >= goal {
            return Ok(());
        }
        self.bytes.resize(goal, 0);
        while len < goal {
            match self.opened.reader.read(self.bytes.get_mut(len..).unwrap_or_default()) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => len += read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.input.read_error(&e)),
            }
        }
        self.bytes.truncate(len);
        Ok(())
    }

    /// Looks at the beginning of the file, at least at `goal` bytes, for what is no text, and leaves a byte order mark out.
    pub(crate) fn sniff(&mut self, goal: usize) -> Result<()> {
        self.fill(goal.max(MAGIC))?;
        let head = self.bytes.get(..self.bytes.len().min(SNIFF)).unwrap_or_default();
        let zeros = head.iter().filter(|b| **b == 0).count();
        let utf16 = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
        let what = if head.starts_with(b"PAR1") {
            "is a Parquet file; say so with --format parquet".to_owned()
        } else if let Some(compression) = Compression::of_magic(head) {
            format!("is compressed; its name must end in .{}", compression.extension())
        } else if utf16 || zeros * 4 >= head.len().max(1) {
            "is not UTF-8 but UTF-16 or binary; convert it first (iconv -f UTF-16 -t UTF-8)".to_owned()
        } else {
            if head.starts_with(&[0xef, 0xbb, 0xbf]) {
                self.bytes.drain(..3);
                self.offset = 3;
            }
            return Ok(());
        };
        Err(IngestError::damaged(&self.path, what))
    }

    /// Takes `end` bytes off.
    pub(crate) fn cut(&mut self, end: usize) -> Cut {
        let rest = self.bytes.split_off(end.min(self.bytes.len()));
        let bytes = std::mem::replace(&mut self.bytes, rest);
        let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        let cut = Cut { line: self.line, offset: self.offset, stored: self.account(), bytes };
        self.line += lines;
        self.offset += cut.bytes.len() as u64;
        cut
    }

    fn account(&mut self) -> u64 {
        let stored = self.opened.stored.load(Ordering::Relaxed);
        let new = stored.saturating_sub(self.accounted);
        self.accounted = stored;
        new
    }

    /// Leaves what was read for the last cut to the next.
    pub(crate) fn unaccount(&mut self, stored: u64) {
        self.accounted = self.accounted.saturating_sub(stored);
    }
}
