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
//! written when the missing one was durable already, or if the manifest [knows](Known) of more: it names each file before a frame
//! is written to it, and the last frame once the table is closed.

use std::sync::Arc;

use plinth_core::wire::{Reader, checksum};
use plinth_io::{Storage, StorageFile};

use crate::error::{Result, TableError};
use crate::manifest;
use crate::numbering::file_number;
use crate::position::{Known, Position};

/// Frames start at multiples of this.
const BLOCK: usize = 4096;

/// Bytes of a frame before its payload.
const HEADER: usize = 40;

/// The largest payload.
pub(crate) const MOST_PAYLOAD: usize = 1 << 30;

/// The name of a log file.
pub(crate) fn name(number: u64) -> String {
    format!("_log-{number:06}")
}

/// The number of a log file.
pub(crate) fn number(name: &str) -> Option<u64> {
    file_number(name.strip_prefix("_log-")?)
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
    /// What the manifest knows.
    known: Known,
}

impl Log {
    /// Begins a file, whose number is the position's, all before being durable. The manifest names it before anything is in
    /// it, and after it has its name: so a crash leaves no file that is named and not there.
    pub(crate) fn begin(storage: &Arc<dyn Storage>, next: Position, step: u64) -> Result<Self> {
        let file = storage.create(&name(next.file))?;
        storage.sync_names()?;
        let known = Known::beginning(next);
        manifest::note(&**storage, known)?;
        let (storage, durable) = (Arc::clone(storage), next.sequence);
        Ok(Self { storage, file, next, offset: 0, len: 0, durable, step, total: 0, known })
    }

    /// Appends a frame whose payload, of about so many bytes, `put` appends to what it is given; and makes it durable if told so.
    pub(crate) fn append(&mut self, about: usize, put: impl FnOnce(&mut Vec<u8>), sync: bool) -> Result<()> {
        let mut frame = Vec::with_capacity(size_of(about));
        frame.resize(HEADER, 0);
        put(&mut frame);
        let payload = frame.len() - HEADER;
        self.make_room(payload)?;
        let size = size_of(payload);
        let fields = [self.next.sequence, self.next.previous, self.durable, payload as u64];
        for (place, field) in frame.chunks_exact_mut(8).skip(1).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let seal = checksum(frame.get(8..).unwrap_or_default());
        if let Some(place) = frame.get_mut(..8) {
            place.copy_from_slice(&seal.to_le_bytes());
        }
        frame.resize(size, 0);
        self.file.write_at(self.offset, &frame)?;
        self.offset += size as u64;
        self.total += size as u64;
        self.next.sequence += 1;
        self.next.previous = seal;
        if sync { self.sync() } else { Ok(()) }
    }

    /// Makes the file longer ahead of the frames, if there is no room for one of a payload: to sync bytes of a file whose length
    /// stays the same is less work, and a full device is noticed before anything is written that counts.
    pub(crate) fn make_room(&mut self, payload: usize) -> Result<()> {
        if payload > MOST_PAYLOAD {
            return Err(TableError::invalid(format!("{payload} bytes in one commit; import them instead")));
        }
        let size = size_of(payload) as u64;
        if self.offset + size <= self.len {
            return Ok(());
        }
        let longer = (self.len.clamp(self.step.min(64 << 10), self.step)).max(size);
        // Where there is no room for more, that for one frame will do.
        self.lengthen(self.offset + longer).or_else(|_| self.lengthen(self.offset + size))
    }

    fn lengthen(&mut self, end: u64) -> Result<()> {
        let zeros = vec![0; usize::try_from(end.saturating_sub(self.len).min(1 << 20)).unwrap_or(0)];
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
        *self = Self { total: self.total, ..Self::begin(&self.storage, next, self.step)? };
        Ok(next)
    }

    /// Goes on after what was read.
    pub(crate) fn resume(storage: &Arc<dyn Storage>, read: &Replay, step: u64) -> Result<Self> {
        let log = Self::begin(storage, read.next, step)?;
        Ok(Self { total: read.bytes, ..log })
    }

    /// Makes all frames durable, and the manifest know it: so that damage to the last of them is told from its never having
    /// been written.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.sync()?;
        let known = Known { end: self.next, ..self.known };
        if known != self.known {
            manifest::note(&*self.storage, known)?;
            self.known = known;
        }
        Ok(())
    }

    /// A manifest was written that begins with the current file.
    pub(crate) fn forget(&mut self) {
        self.total = self.offset;
    }
}

/// Bytes of a frame.
fn size_of(payload: usize) -> usize {
    (HEADER + payload).next_multiple_of(BLOCK)
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
}

/// Reads a log from a position on, and hands over the payload of each frame with its place, for people. What the manifest knows
/// of it must be there.
pub(crate) fn replay(
    storage: &dyn Storage,
    start: Position,
    known: &Known,
    mut take: impl FnMut(u64, &[u8], &dyn Fn() -> (String, u64)) -> Result<()>,
) -> Result<Replay> {
    let files = files(storage, start.file, known.begin.file)?;
    let (mut next, mut total) = (start, 0);
    // Where frames ended before the log did.
    let mut hole: Option<(String, u64)> = None;
    for (number, name) in &files {
        if *number == known.begin.file && next.sequence < known.begin.sequence {
            return Err(gone(hole, &next));
        }
        let source = storage.source(name)?;
        let bytes = source.read(std::slice::from_ref(&(0..source.byte_len())))?.pop().unwrap_or_default();
        let bytes = bytes.as_slice();
        let mut offset = 0;
        while let Some(frame) = Frame::read(bytes, offset).filter(|frame| frame.follows(&next)) {
            let place = || (storage.path_of(name), offset as u64);
            take(frame.sequence, frame.payload, &place)?;
            next = Position { file: next.file, sequence: frame.sequence + 1, previous: frame.seal };
            if !known.admits(&next) {
                let what = format!(
                    "offset {offset}: the frame of commit {} is another than the manifest knows",
                    frame.sequence
                );
                return Err(TableError::corrupt(storage.path_of(name), format!("{what}; restore the file")));
            }
            offset += frame.size();
            total += frame.size() as u64;
            hole = None;
        }
        let here = (storage.path_of(name), offset as u64);
        if *number == known.begin.file && next.sequence < known.end.sequence {
            return Err(gone(Some(here), &next));
        }
        // A file that begins with what is no frame is where they end, not the one before.
        let begins_badly =
            offset == 0 && bytes.iter().take(BLOCK).any(|&byte| byte != 0) && Frame::read(bytes, 0).is_none();
        if begins_badly || hole.is_none() {
            hole = Some(here);
        }
        if Frame::any_that_knew(&next, bytes, offset) {
            return Err(gone(hole, &next));
        }
    }
    let last = files.last().map_or(start.file, |(number, _)| *number);
    next.file = last.saturating_add(1);
    let files = files.into_iter().map(|(_, name)| name).collect();
    Ok(Replay { first: start.sequence, next, bytes: total, files })
}

/// The files from one on, of which at least those up to the newest that is known must be there, and none may lack in between.
fn files(storage: &dyn Storage, first: u64, newest: u64) -> Result<Vec<(u64, String)>> {
    let mut there: Vec<u64> = storage.list()?.iter().filter_map(|name| number(name)).collect();
    there.retain(|&number| number >= first);
    there.sort_unstable();
    let last = there.last().copied().unwrap_or(first).max(newest);
    let mut files = Vec::with_capacity(there.len());
    for (i, number) in (first..=last).enumerate() {
        let name = name(number);
        if there.get(i) != Some(&number) {
            let by = match there.get(i) {
                Some(&later) => format!("{} is there", storage.path_of(&self::name(later))),
                None => "the manifest names it".to_owned(),
            };
            return Err(TableError::corrupt(storage.path_of(&name), format!("is missing, but {by}; restore it")));
        }
        files.push((number, name));
    }
    Ok(files)
}

/// A frame that had been durable is not there.
fn gone(place: Option<(String, u64)>, next: &Position) -> TableError {
    let (file, offset) = place.unwrap_or_default();
    let what = format!("offset {offset}: the frame of commit {} is damaged or cut off", next.sequence);
    TableError::corrupt(file, format!("{what}, though it had been durable; restore the file"))
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
        size_of(self.payload.len())
    }

    /// Whether it is the next one.
    fn follows(&self, next: &Position) -> bool {
        (self.sequence, self.previous) == (next.sequence, next.previous)
    }

    /// Whether there is a valid one, from an offset on, that was written when the next one had been durable.
    fn any_that_knew(next: &Position, bytes: &'a [u8], from: usize) -> bool {
        (from..bytes.len()).step_by(BLOCK).any(|offset| {
            let knew = |frame: &Self| frame.durable > next.sequence && frame.sequence > next.sequence;
            Self::header(bytes, offset).is_some_and(|frame| knew(&frame)) && Self::read(bytes, offset).is_some()
        })
    }

    /// What stands at an offset, unchecked.
    fn header(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let mut reader = Reader::new(bytes.get(offset..)?);
        let (seal, sequence) = (reader.u64().ok()?, reader.u64().ok()?);
        let (previous, durable) = (reader.u64().ok()?, reader.u64().ok()?);
        let len = usize::try_from(reader.u64().ok()?).ok().filter(|&len| len <= MOST_PAYLOAD)?;
        Some(Self { seal, sequence, previous, durable, payload: reader.take(len).ok()? })
    }

    /// A valid frame at an offset.
    fn read(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let frame = Self::header(bytes, offset)?;
        let sealed = bytes.get(offset + 8..offset + HEADER + frame.payload.len())?;
        (checksum(sealed) == frame.seal).then_some(frame)
    }
}
