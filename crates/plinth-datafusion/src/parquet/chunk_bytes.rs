//! A column chunk's bytes on their way from storage to the page reader.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_buffer::Buffer;
use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use plinth_core::sync::lock;
use plinth_format::ScanMetrics;
use plinth_io::{Held, Io, Source};

/// Bytes that are read at once when a page header was not there.
const HEADER_BYTES: u64 = 16 << 10;

/// The bytes of a column chunk that are in memory. What was not read ahead is read when the decoder asks for it, so what is
/// read ahead is a matter of speed alone.
#[derive(Debug)]
pub(super) struct ChunkBytes {
    source: Arc<dyn Source>,
    metrics: Arc<ScanMetrics>,
    range: Range<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By offset in the file.
    pieces: BTreeMap<u64, Piece>,
    /// What was asked for ahead, sorted, apart from each other.
    asked: Vec<Range<u64>>,
    /// The last offset the decoder asked for: what ends before it is done with.
    position: u64,
}

#[derive(Clone, Debug)]
struct Piece {
    bytes: Buffer,
    /// The read that brought it holds memory for as long as one of its pieces is here.
    _held: Option<Arc<Held>>,
}

impl ChunkBytes {
    pub(super) fn new(source: Arc<dyn Source>, metrics: Arc<ScanMetrics>, range: Range<u64>) -> Self {
        let end = range.end.min(source.byte_len());
        let range = range.start.min(end)..end;
        Self { source, metrics, range, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// What of a range was not asked for yet.
    pub(super) fn missing(&self, wanted: Range<u64>, out: &mut Vec<Range<u64>>) {
        let mut start = wanted.start.max(self.range.start);
        let end = wanted.end.min(self.range.end);
        for asked in &self.lock().asked {
            if asked.start >= end {
                break;
            }
            if start < asked.start {
                out.push(start..asked.start);
            }
            start = start.max(asked.end);
        }
        if start < end {
            out.push(start..end);
        }
    }

    /// Notes that a range is on its way.
    pub(super) fn ask(&self, range: Range<u64>) {
        let mut state = self.lock();
        state.asked.push(range);
        state.asked.sort_by_key(|asked| asked.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(state.asked.len());
        for asked in state.asked.drain(..) {
            match merged.last_mut() {
                Some(last) if asked.start <= last.end => last.end = last.end.max(asked.end),
                _ => merged.push(asked),
            }
        }
        state.asked = merged;
    }

    /// Takes a piece that was read.
    pub(super) fn put(&self, offset: u64, bytes: Buffer, held: Option<Arc<Held>>) {
        if !bytes.is_empty() {
            self.lock().pieces.insert(offset, Piece { bytes, _held: held });
        }
    }

    /// Lets go of what the decoder has gone past.
    pub(super) fn trim(&self) {
        let mut state = self.lock();
        let position = state.position;
        state.pieces.retain(|offset, piece| offset + piece.bytes.len() as u64 > position);
    }

    /// The piece that holds a byte, from there on.
    fn piece(&self, at: u64) -> Option<(Buffer, bool)> {
        let state = self.lock();
        let (offset, piece) = state.pieces.range(..=at).next_back()?;
        let skipped = usize::try_from(at - offset).ok()?;
        (skipped < piece.bytes.len()).then(|| (piece.bytes.slice(skipped), piece._held.is_some()))
    }

    /// Reads bytes now.
    fn read_now(&self, range: Range<u64>) -> Result<Buffer> {
        self.metrics.bytes_read.fetch_add(range.end - range.start, Relaxed);
        let buffers =
            self.source.read(std::slice::from_ref(&range)).map_err(|e| ParquetError::External(Box::new(e)))?;
        let buffer = buffers.into_iter().next().unwrap_or_default();
        self.put(range.start, buffer.clone(), None);
        Ok(buffer)
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        let len = usize::try_from(range.end - range.start)?;
        let lent_out = || self.source.io().is_some_and(Io::is_lent_out);
        if let Some((piece, held)) = self.piece(range.start)
            && piece.len() >= len
        {
            let piece = piece.slice_with_length(0, len);
            // What needs no decompression stays where it was read, unless too much of that memory is with consumers.
            return Ok(if held && lent_out() { Bytes::copy_from_slice(&piece) } else { shared(piece) });
        }
        // It lies in several pieces, or in none.
        let mut out = Vec::with_capacity(len);
        let mut at = range.start;
        while at < range.end {
            let piece = match self.piece(at) {
                Some((piece, _)) => piece,
                None => {
                    let next = self.lock().pieces.range(at..).next().map_or(range.end, |(&offset, _)| offset);
                    self.read_now(at..next.min(range.end))?
                }
            };
            let taken = piece.len().min(usize::try_from(range.end - at)?);
            if taken == 0 {
                return Err(ParquetError::EOF("the file ends inside a column chunk".to_owned()));
            }
            out.extend_from_slice(piece.get(..taken).unwrap_or_default());
            at += taken as u64;
        }
        Ok(out.into())
    }

    fn at(&self, start: u64) -> Result<()> {
        if start < self.range.start || start > self.range.end {
            return Err(ParquetError::EOF(format!("offset {start} lies outside of the column chunk {:?}", self.range)));
        }
        let mut state = self.lock();
        state.position = start;
        Ok(())
    }
}

/// Arrow's buffer as one of the `bytes` crate, without a copy.
fn shared(buffer: Buffer) -> Bytes {
    struct Owned(Buffer);
    impl AsRef<[u8]> for Owned {
        fn as_ref(&self) -> &[u8] {
            self.0.as_slice()
        }
    }
    Bytes::from_owner(Owned(buffer))
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        self.range.end
    }
}

impl ChunkReader for ChunkBytes {
    type T = HeaderReader;

    fn get_read(&self, start: u64) -> Result<HeaderReader> {
        self.at(start)?;
        let here = match self.piece(start) {
            Some((piece, _)) => piece,
            None => self.read_now(start..self.range.end.min(start.saturating_add(HEADER_BYTES)))?,
        };
        let next = start + here.len() as u64;
        Ok(HeaderReader { here, at: 0, next, rest: Rest { source: Arc::clone(&self.source), end: self.range.end } })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.at(start)?;
        let end = start.checked_add(length as u64).filter(|&end| end <= self.range.end);
        let end = end.ok_or_else(|| ParquetError::EOF(format!("a page of {length} bytes ends beyond its chunk")))?;
        self.bytes(start..end)
    }
}

/// Reads on from an offset: a page header, the length of which is not known.
pub(super) struct HeaderReader {
    here: Buffer,
    /// Of which so many bytes were given out: a header is read a byte at a time.
    at: usize,
    /// The offset behind `here`.
    next: u64,
    rest: Rest,
}

struct Rest {
    source: Arc<dyn Source>,
    end: u64,
}

impl Read for HeaderReader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.here.len() && self.next < self.rest.end {
            let range = self.next..self.rest.end.min(self.next.saturating_add(HEADER_BYTES));
            let buffers = self.rest.source.read(std::slice::from_ref(&range)).map_err(std::io::Error::other)?;
            (self.here, self.at) = (buffers.into_iter().next().unwrap_or_default(), 0);
            self.next = range.end;
        }
        let left = self.here.get(self.at..).unwrap_or_default();
        if let ([to], [from, ..]) = (&mut *out, left) {
            *to = *from;
            self.at += 1;
            return Ok(1);
        }
        let taken = out.len().min(left.len());
        if let (Some(to), Some(from)) = (out.get_mut(..taken), left.get(..taken)) {
            to.copy_from_slice(from);
        }
        self.at += taken;
        Ok(taken)
    }
}

impl fmt::Debug for HeaderReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderReader").field("next", &self.next).finish_non_exhaustive()
    }
}
