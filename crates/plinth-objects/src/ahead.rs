//! Metadata is read piece by piece, each of which may lie behind the last: then what follows is read along.
//!
//! A read that begins close behind the end of one before it brings more than it was asked for, twice as much each time, so that
//! a thousand sections cost as many requests as their bytes need doublings. A read that lies anywhere else brings itself.

use std::ops::Range;

use arrow_buffer::Buffer;
use plinth_io::Reservation;

/// What a read brings at first beyond what was asked for, and at most.
const STEPS: Range<u64> = 65_536..2_097_152;

/// A read follows another if it begins so close behind its end.
const CLOSE: u64 = 65_536;

/// Rows of reads that are followed at a time: each thread of a scan has its own.
const ROWS: usize = 4;

/// Bytes of a file in memory.
pub(crate) struct Window {
    from: u64,
    bytes: Buffer,
    _counted: Reservation,
}

impl Window {
    /// Bytes that begin at a position, and the memory that was asked for them.
    pub(crate) fn new(from: u64, bytes: Buffer, counted: Reservation) -> Self {
        Self { from, bytes, _counted: counted }
    }

    /// Some of its bytes, if it has them all.
    pub(crate) fn part(&self, range: &Range<u64>) -> Option<Buffer> {
        let start = usize::try_from(range.start.checked_sub(self.from)?).ok()?;
        let len = usize::try_from(range.end - range.start).ok()?;
        (start.checked_add(len)? <= self.bytes.len()).then(|| self.bytes.slice_with_length(start, len))
    }
}

/// Reads that follow each other.
#[derive(Default)]
struct Row {
    /// The end of the last.
    end: u64,
    /// What the next that asks the store brings beyond itself.
    step: u64,
    window: Option<Window>,
}

/// What was read along of a file.
#[derive(Default)]
pub(crate) struct Ahead {
    /// The one that was used last at the end.
    rows: Vec<Row>,
}

impl Ahead {
    /// Bytes that were read along.
    pub(crate) fn part(&mut self, range: &Range<u64>) -> Option<Buffer> {
        let of = |row: &Row| row.window.as_ref()?.part(range);
        let (at, bytes) = self.rows.iter().enumerate().find_map(|(at, row)| Some((at, of(row)?)))?;
        let mut row = self.rows.remove(at);
        row.end = row.end.max(range.end);
        self.rows.push(row);
        Some(bytes)
    }

    /// How many bytes beyond a range are to be read along, of a file that has so many.
    pub(crate) fn beyond(&mut self, range: &Range<u64>, len: u64) -> u64 {
        let follows = |row: &Row| range.start >= row.end && range.start - row.end <= CLOSE;
        let mut row = match self.rows.iter().position(follows) {
            Some(at) => self.rows.remove(at),
            None => Row::default(),
        };
        let step = row.step;
        row.step = (step * 2).clamp(STEPS.start, STEPS.end);
        (row.end, row.window) = (range.end, None);
        if self.rows.len() >= ROWS {
            self.rows.remove(0);
        }
        self.rows.push(row);
        step.min(len.saturating_sub(range.end))
    }

    /// Keeps what a read brought along, in the place of what was before it.
    pub(crate) fn keep(&mut self, asked: &Range<u64>, window: Window) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.end == asked.end) {
            row.window = Some(window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_follow_each_other_bring_twice_as_much_each_time() {
        let (mut ahead, len) = (Ahead::default(), 1 << 30);
        assert_eq!(ahead.beyond(&(1000..1400), len), 0);
        assert_eq!(ahead.beyond(&(5000..5400), len), 65_536);
        assert_eq!(ahead.beyond(&(70_000..70_001), len), 131_072);
        // Elsewhere, and back.
        assert_eq!(ahead.beyond(&(1 << 20..(1 << 20) + 5), len), 0);
        assert_eq!(ahead.beyond(&(210_000..210_001), len), 0);
        assert_eq!(ahead.beyond(&(72_000..72_005), len), 262_144);
        // Not beyond the end.
        assert_eq!(ahead.beyond(&(72_010..72_100), 72_150), 50);
        let steps: Vec<u64> = (0..9).map(|i| ahead.beyond(&(72_100 + i..72_101 + i), len)).collect();
        assert_eq!(steps.last(), Some(&2_097_152));
    }
}
