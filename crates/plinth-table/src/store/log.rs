//! The write-ahead log: what was committed since the manifest, in frames.
//!
//! A frame starts at a multiple of 4,096 bytes, is filled up to the next one with zeros, and is:
//!
//! | offset | what |
//! |---|---|
//! | 0 | checksum of the frame from byte 8 to the end of its payload |
//! | 8 | sequence: one more than that of the frame before |
//! | 16 | the checksum of the frame before |
//! | 24 | the first sequence that was not durable when this frame was written |
//! | 32 | length of the payload |
//! | 40 | the payload |
//!
//! So a block that holds committed rows is never written again, and frames chain: what an earlier use of the file left behind
//! can't be taken for the next frame. Files are numbered; the first frame of a file chains to the last valid one before it. A
//! file that was read back is never written to again: who opens the table begins a new one.
//!
//! Where frames end, either the log does, or it is damaged. It is damaged if a valid frame is found beyond that says it was
//! written when the missing one was durable already.

use std::sync::Arc;

use plinth_io::{Storage, StorageFile};

use super::error::{Result, TableError};
use super::wire::{Reader, checksum};

/// Frames start at multiples of this.
const BLOCK: usize = 4096;

/// Bytes of a frame before its payload.
const HEADER: usize = 40;

/// The largest payload.
pub(crate) const MOST_PAYLOAD: usize = 1 << 30;

/// The payload of a frame without commits.
const CLOSING: &[u8] = &[0];

/// The name of a log file.
pub(crate) fn name(number: u64) -> String {
    format!("_log-{number:06}")
}

/// The number of a log file.
pub(crate) fn number(name: &str) -> Option<u64> {
    name.strip_prefix("_log-")?.parse().ok()
}

/// Where a log goes on: what the next frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The file that it goes on in.
    pub(crate) file: u64,
    /// The next frame's sequence.
    pub(crate) sequence: u64,
    /// The checksum of the frame before.
    pub(crate) previous: u64,
}

/// The log while it is written.
#[derive(Debug)]
pub(crate) struct Log {
    storage: Arc<dyn Storage>,
    file: Box<dyn StorageFile>,
    next: Position,
    /// Where the next frame goes in the file.
    offset: u64,
    /// The file's length.
    len: u64,
    /// The first sequence that is not durable.
    durable: u64,
    /// Bytes that a file is made longer by, at most.
    step: u64,
    /// Bytes of all files since the manifest's.
    total: u64,
    /// Whether the last frame has no commits, or there is none.
    closed: bool,
}

impl Log {
    /// Begins a file, whose number is the position's.
    pub(crate) fn begin(storage: &Arc<dyn Storage>, next: Position, step: u64) -> Result<Self> {
        let file = storage.create(&name(next.file))?;
        storage.sync_names()?;
        let (storage, durable) = (Arc::clone(storage), next.sequence);
        Ok(Self { storage, file, next, offset: 0, len: 0, durable, step, total: 0, closed: true })
    }

    /// Appends a frame, and makes it durable if told so.
    pub(crate) fn append(&mut self, payload: &[u8], sync: bool) -> Result<()> {
        if payload.len() > MOST_PAYLOAD {
            return Err(TableError::invalid(format!("{} bytes in one commit; import them instead", payload.len())));
        }
        let size = (HEADER + payload.len()).next_multiple_of(BLOCK);
        let mut frame = Vec::with_capacity(size);
        frame.extend_from_slice(&[0; 8]);
        for field in [self.next.sequence, self.next.previous, self.durable, payload.len() as u64] {
            frame.extend_from_slice(&field.to_le_bytes());
        }
        frame.extend_from_slice(payload);
        let seal = checksum(frame.get(8..).unwrap_or_default());
        if let Some(place) = frame.get_mut(..8) {
            place.copy_from_slice(&seal.to_le_bytes());
        }
        frame.resize(size, 0);
        self.make_room(size as u64)?;
        self.file.write_at(self.offset, &frame)?;
        self.offset += size as u64;
        self.total += size as u64;
        self.next.sequence += 1;
        self.next.previous = seal;
        self.closed = false;
        if sync { self.sync() } else { Ok(()) }
    }

    /// Makes the file longer ahead of the frames: to sync bytes of a file whose length stays the same is less work.
    fn make_room(&mut self, size: u64) -> Result<()> {
        if self.offset + size <= self.len {
            return Ok(());
        }
        let longer = (self.len.clamp(self.step.min(64 << 10), self.step)).max(size);
        let zeros = vec![0; usize::try_from(longer.min(1 << 20)).unwrap_or(0)];
        let end = self.offset + longer;
        while self.len < end {
            let here = zeros.get(..usize::try_from(end - self.len).unwrap_or(usize::MAX)).unwrap_or(&zeros);
            self.file.write_at(self.len, here)?;
            self.len += here.len() as u64;
        }
        Ok(())
    }

    /// Makes all frames durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.durable < self.next.sequence {
            self.file.sync()?;
            self.durable = self.next.sequence;
        }
        Ok(())
    }

    /// Whether there are frames that are not durable.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.durable < self.next.sequence
    }

    /// Bytes of frames since the last [`Log::forget`].
    pub(crate) fn bytes(&self) -> u64 {
        self.total
    }

    /// Goes on in a new file, all before being durable: where that begins.
    pub(crate) fn rotate(&mut self) -> Result<Position> {
        self.sync()?;
        let next = Position { file: self.next.file + 1, ..self.next };
        let (total, closed) = (self.total, self.closed);
        *self = Self { total, closed, ..Self::begin(&self.storage, next, self.step)? };
        Ok(next)
    }

    /// Goes on after what was read.
    pub(crate) fn resume(storage: &Arc<dyn Storage>, read: &Replay, step: u64) -> Result<Self> {
        let log = Self::begin(storage, read.next, step)?;
        Ok(Self { total: read.bytes, closed: read.closed, ..log })
    }

    /// Says, durably, that all frames were: so that damage to the last of them is told from its never having been written.
    pub(crate) fn close(&mut self) -> Result<()> {
        if !self.closed {
            self.sync()?;
            self.append(CLOSING, true)?;
            self.closed = true;
        }
        Ok(())
    }

    /// A manifest was written that begins with the current file.
    pub(crate) fn forget(&mut self) {
        self.total = self.offset;
    }
}

/// What is left of a log.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The sequence of the first frame.
    pub(crate) first: u64,
    /// Where to go on: in a file that does not exist yet.
    pub(crate) next: Position,
    /// Bytes of frames.
    pub(crate) bytes: u64,
    /// The files, of which there is at least one.
    pub(crate) files: Vec<String>,
    /// Whether the last frame has no commits, or there is none.
    pub(crate) closed: bool,
}

/// Reads a log from a position on, and hands over the payload of each frame with its place, for people.
pub(crate) fn replay(
    storage: &dyn Storage,
    start: Position,
    mut take: impl FnMut(u64, &[u8], &dyn Fn() -> (String, u64)) -> Result<()>,
) -> Result<Replay> {
    let mut numbers: Vec<u64> = storage.list()?.iter().filter_map(|name| number(name)).collect();
    numbers.retain(|&number| number >= start.file);
    numbers.sort_unstable();
    let (mut next, mut total, mut closed) = (start, 0, true);
    let mut files = Vec::new();
    // Where frames ended before the log did.
    let mut hole: Option<(String, u64)> = None;
    for (i, number) in numbers.iter().enumerate() {
        let name = name(*number);
        if *number != start.file + i as u64 {
            let what = format!("is missing, but {} is there; restore it", storage.path_of(&name));
            return Err(TableError::corrupt(storage.path_of(&self::name(start.file + i as u64)), what));
        }
        let source = storage.source(&name)?;
        let bytes = source.read(std::slice::from_ref(&(0..source.byte_len())))?.pop().unwrap_or_default();
        let bytes = bytes.as_slice();
        let mut offset = 0;
        while let Some(frame) = Frame::read(bytes, offset)
            && frame.sequence == next.sequence
            && frame.previous == next.previous
        {
            let place = || (storage.path_of(&name), offset as u64);
            take(frame.sequence, frame.payload, &place)?;
            closed = frame.payload == CLOSING;
            next = Position { file: next.file, sequence: frame.sequence + 1, previous: frame.seal };
            offset += frame.size();
            total += frame.size() as u64;
            hole = None;
        }
        // A file that begins with what is no frame is where they end, not the one before.
        let begins_badly =
            offset == 0 && bytes.iter().take(BLOCK).any(|&byte| byte != 0) && Frame::read(bytes, 0).is_none();
        if begins_badly || hole.is_none() {
            hole = Some((storage.path_of(&name), offset as u64));
        }
        // Beyond the hole: anything that knew of what is missing?
        for later in (offset..bytes.len()).step_by(BLOCK) {
            if let Some(frame) = Frame::header(bytes, later)
                && frame.durable > next.sequence
                && frame.sequence > next.sequence
                && Frame::read(bytes, later).is_some()
            {
                let (file, offset) = hole.unwrap_or_default();
                let what = format!(
                    "offset {offset}: the frame of commit {} is damaged, and later ones are there; restore the file",
                    next.sequence
                );
                return Err(TableError::corrupt(file, what));
            }
        }
        files.push(name);
    }
    let Some(last) = numbers.last() else {
        return Err(TableError::corrupt(storage.path_of(&name(start.file)), "is missing; restore it"));
    };
    next.file = last + 1;
    Ok(Replay { first: start.sequence, next, bytes: total, files, closed })
}

/// A frame as it is found.
struct Frame<'a> {
    seal: u64,
    sequence: u64,
    previous: u64,
    durable: u64,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    fn size(&self) -> usize {
        (HEADER + self.payload.len()).next_multiple_of(BLOCK)
    }

    /// What stands at an offset, unchecked.
    fn header(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let mut reader = Reader(bytes.get(offset..)?);
        let (seal, sequence) = (reader.u64()?, reader.u64()?);
        let (previous, durable) = (reader.u64()?, reader.u64()?);
        let len = usize::try_from(reader.u64()?).ok().filter(|&len| len <= MOST_PAYLOAD)?;
        Some(Self { seal, sequence, previous, durable, payload: reader.take(len)? })
    }

    /// A valid frame at an offset.
    fn read(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let frame = Self::header(bytes, offset)?;
        let sealed = bytes.get(offset + 8..offset + HEADER + frame.payload.len())?;
        (checksum(sealed) == frame.seal).then_some(frame)
    }
}
