//! Parts of a file that a scan reads together: those that lie close to each other in one read.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_buffer::Buffer;
use plinth_io::{BackingStore, Held, Merged, Priority, Reading, Request, Source};

use super::ScanMetrics;
use crate::error::{FormatError, Result};

/// Ranges closer than this are read as one.
const READ_GAP: u64 = 16 << 10;

/// The most bytes that a read of several parts has.
pub const READ_MOST: u64 = 1 << 20;

/// Reads under way; `P` is what the caller calls a part.
#[derive(Debug)]
pub struct Reads<P> {
    reading: Reading,
    merged: Merged,
    /// Each read holds memory for as long as one of its parts is somewhere.
    held: Vec<Option<Arc<Held>>>,
    parts: Vec<ReadPart<P>>,
}

/// A part that one of the reads brings.
#[derive(Debug)]
struct ReadPart<P> {
    part: P,
    range: Range<u64>,
    read: usize,
}

/// A part that was read.
#[derive(Debug)]
pub struct Brought<P> {
    /// What it is.
    pub part: P,
    /// Where it is in the file.
    pub range: Range<u64>,
    /// What it holds.
    pub bytes: Buffer,
    /// The memory of the read that brought it.
    pub held: Option<Arc<Held>>,
}

impl<P> Reads<P> {
    /// Starts to read parts, which are in the order of their ranges; `None` if they are read ahead and there is no memory for
    /// it.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn start(
        source: &dyn Source,
        parts: impl IntoIterator<Item = (Range<u64>, P)>,
        priority: Priority,
        query_bytes: u64,
        metrics: &ScanMetrics,
    ) -> Result<Option<Self>> {
        // A source that is far knows what a request costs, and what it has begun to bring.
        let (gap, most) = if source.is_far() { (0, 0) } else { (READ_GAP, READ_MOST) };
        let mut merged = Merged::new(gap, most);
        let to_read = |(range, part)| ReadPart { part, read: merged.add(&range), range };
        let parts: Vec<_> = parts.into_iter().map(to_read).collect();
        let request = Request { ranges: merged.reads(), priority, query_bytes };
        let Some(reading) = source.start(&request)? else { return Ok(None) };
        metrics.bytes_read.fetch_add(merged.bytes(), Relaxed);
        let io = source.io();
        let hold = |range: &Range<u64>| io.map(|io| Arc::new(io.hold(range.end - range.start)));
        let held = merged.reads().iter().map(hold).collect();
        Ok(Some(Self { reading, merged, held, parts }))
    }

    /// The parts and where they are.
    pub fn parts(&self) -> impl Iterator<Item = (&P, &Range<u64>)> {
        self.parts.iter().map(|one| (&one.part, &one.range))
    }

    /// Where the bytes come from.
    pub fn below(&self) -> BackingStore {
        self.reading.below()
    }

    /// Waits for the parts.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn wait(self) -> Result<Vec<Brought<P>>> {
        let Self { reading, merged, held, parts } = self;
        let buffers = reading.wait()?;
        parts
            .into_iter()
            .map(|ReadPart { part, range, read }| {
                let bytes = merged.part(read, &range, &buffers);
                let bytes = bytes.ok_or_else(|| FormatError::internal("a read returned too few bytes"))?;
                Ok(Brought { part, range, bytes, held: held.get(read).cloned().flatten() })
            })
            .collect()
    }
}

impl<P> AsRef<Reading> for Reads<P> {
    fn as_ref(&self) -> &Reading {
        &self.reading
    }
}
