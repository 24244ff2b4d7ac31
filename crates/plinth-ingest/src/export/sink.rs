//! What every writer of foreign files looks like to an export.

use arrow_array::RecordBatch;

use crate::error::Result;

/// Takes batches of one schema to a file.
pub trait BatchSink: Send {
    /// Appends rows.
    ///
    /// # Errors
    /// If a value can't be written or the output refuses.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Completes the output and says how many bytes it has. A file appears under its name now; without this, never.
    ///
    /// # Errors
    /// If the output refuses.
    fn finish(self: Box<Self>) -> Result<u64>;
}
