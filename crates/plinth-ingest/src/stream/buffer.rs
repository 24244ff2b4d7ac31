//! The part of a text file that is in memory: read at its end, split off at its beginning.

use std::io::{ErrorKind, Read};
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use plinth_core::sync::lock;
use plinth_profile::{Stage, scope};

use super::input::{Input, Opened};
use crate::error::{IngestError, Result};
use crate::format::{Compression, other_format};

/// Bytes that [`Buffer::sniff`] looks at, at most and at least.
const SNIFF: usize = 4_096;
const MAGIC: usize = 16;

/// Memory that is kept to be read into again: chunks, and bytes of each.
const SPARE: usize = 16;
const SPARE_BYTES: usize = 8 << 20;

/// Memory that was read into. To have new memory mapped and cleared takes longer than to read into it.
#[derive(Debug, Default)]
struct Spares(Mutex<Vec<Vec<u8>>>);

impl Spares {
    fn take(&self) -> Vec<u8> {
        lock(&self.0).pop().unwrap_or_default()
    }

    fn give(&self, memory: Vec<u8>) {
        let mut spares = lock(&self.0);
        if spares.len() < SPARE && (1..=SPARE_BYTES).contains(&memory.len()) {
            spares.push(memory);
        }
    }
}

/// Bytes that were split off a buffer. Their memory goes back to it.
#[derive(Debug)]
pub(crate) struct ChunkBytes {
    memory: Vec<u8>,
    len: usize,
    spares: Arc<Spares>,
}

impl Deref for ChunkBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.get(..self.len).unwrap_or_default()
    }
}

impl From<Vec<u8>> for ChunkBytes {
    fn from(memory: Vec<u8>) -> Self {
        Self { len: memory.len(), memory, spares: Arc::default() }
    }
}

impl Drop for ChunkBytes {
    fn drop(&mut self) {
        self.spares.give(std::mem::take(&mut self.memory));
    }
}

/// A window over a file.
pub(crate) struct Buffer {
    input: Arc<Input>,
    pub(crate) path: Arc<Path>,
    opened: Opened,
    /// Of the file as stored, what was split off so far accounts for.
    accounted: u64,
    /// Its bytes are the first `len` of this.
    memory: Vec<u8>,
    len: usize,
    spares: Arc<Spares>,
    /// Whether the file has no more.
    pub(crate) ended: bool,
    /// What lines end with.
    pub(crate) line_end: u8,
    /// The line of the first byte, counted from one.
    pub(crate) line: u64,
    /// Where the first byte is, in bytes of the uncompressed file.
    pub(crate) offset: u64,
}

/// What was split off.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) bytes: ChunkBytes,
    pub(crate) line: u64,
    pub(crate) offset: u64,
    /// Bytes of the file as stored that were read for it.
    pub(crate) stored: u64,
}

impl Buffer {
    pub(crate) fn open(input: Arc<Input>) -> Result<Self> {
        let opened = input.open()?;
        let path = Arc::from(input.path.as_path());
        let (memory, spares) = (Vec::new(), Arc::default());
        Ok(Self {
            input,
            path,
            opened,
            accounted: 0,
            memory,
            len: 0,
            spares,
            ended: false,
            line_end: b'\n',
            line: 1,
            offset: 0,
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.get(..self.len).unwrap_or_default()
    }

    /// Reads until there are `goal` bytes or the file ends.
    pub(crate) fn fill(&mut self, goal: usize) -> Result<()> {
        if self.ended || self.len >= goal {
            return Ok(());
        }
        if self.memory.len() < goal {
            self.memory.resize(goal, 0);
        }
        // What is read for it is charged apart.
        let decompress = self.input.is_compressed().then(|| scope(Stage::Decompress));
        let known = self.len;
        while self.len < goal {
            match self.opened.reader.read(self.memory.get_mut(self.len..goal).unwrap_or_default()) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => self.len += read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.input.read_error(&e)),
            }
        }
        if let Some(decompress) = decompress {
            decompress.bytes((self.len - known) as u64);
        }
        Ok(())
    }

    /// Looks at the beginning of the file, at least at `goal` bytes, for what is no text, and leaves a byte order mark out.
    pub(crate) fn sniff(&mut self, goal: usize) -> Result<()> {
        self.fill(goal.max(MAGIC))?;
        let head = self.memory.get(..self.len.min(SNIFF)).unwrap_or_default();
        let zeros = head.iter().filter(|b| **b == 0).count();
        let utf16 = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
        let what = if head.starts_with(b"PAR1") {
            "is a Parquet file; say so with --format parquet".to_owned()
        } else if let Some(compression) = Compression::of_magic(head) {
            format!("is compressed; its name must end in .{}", compression.extension())
        } else if let Some(what) = other_format(head) {
            what.to_owned()
        } else if utf16 || zeros * 4 >= head.len().max(1) {
            "is not UTF-8 but UTF-16 or binary; convert it first (iconv -f UTF-16 -t UTF-8)".to_owned()
        } else {
            if head.starts_with(&[0xef, 0xbb, 0xbf]) {
                self.memory.drain(..3);
                self.len -= 3;
                self.offset = 3;
            }
            return Ok(());
        };
        Err(IngestError::damaged(&self.path, what))
    }

    /// Takes `end` bytes off.
    pub(crate) fn split_to(&mut self, end: usize) -> Front {
        let end = end.min(self.len);
        let rest = self.memory.get(end..self.len).unwrap_or_default();
        let mut memory = self.spares.take();
        if memory.len() < rest.len() {
            memory.resize(rest.len(), 0);
        }
        memory.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.len = rest.len();
        let memory = std::mem::replace(&mut self.memory, memory);
        let bytes = ChunkBytes { memory, len: end, spares: Arc::clone(&self.spares) };
        let lines = memchr::memchr_iter(self.line_end, &bytes).count() as u64;
        let front = Front { line: self.line, offset: self.offset, stored: self.account(), bytes };
        self.line += lines;
        self.offset += end as u64;
        front
    }

    fn account(&mut self) -> u64 {
        let stored = self.opened.stored.load(Ordering::Relaxed);
        let new = stored.saturating_sub(self.accounted);
        self.accounted = stored;
        new
    }

    /// Leaves what was read for the last split to the next.
    pub(crate) fn unaccount(&mut self, stored: u64) {
        self.accounted = self.accounted.saturating_sub(stored);
    }
}
