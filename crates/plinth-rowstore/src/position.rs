//! Places in the log.

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

/// What the manifest knows of the log: frames and a file that no crash takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Where the newest file begins.
    pub(crate) begin: Position,
    /// What comes after the last frame that is known to be durable, in that file or before it.
    pub(crate) end: Position,
}

impl Known {
    /// A file in which there is no frame yet, all before it being durable.
    pub(crate) fn beginning(begin: Position) -> Self {
        Self { begin, end: begin }
    }

    /// Whether the log is the one that is known, as far as it was read.
    pub(crate) fn admits(&self, next: &Position) -> bool {
        [self.begin, self.end].iter().all(|at| at.sequence != next.sequence || at.previous == next.previous)
    }
}
