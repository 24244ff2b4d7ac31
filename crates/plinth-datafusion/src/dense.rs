//! Text that keeps much more than itself: views keep the buffers whole that they were picked from. A batch of sorted rows has
//! its text from all over; one of a scan may share a dictionary with all others. An operator that counts or gathers such batches has many
//! times their size.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use datafusion_common::{DataFusionError, Result};
use plinth_encoding::text::{compact_batch, compact_wasteful};

/// A batch whose text is copied together where it keeps more than so many bytes beside itself.
///
/// # Errors
/// Never, unless the batch was none.
pub fn dense(batch: RecordBatch, most: usize) -> Result<RecordBatch> {
    compact_batch(&batch, |column| compact_wasteful(column, most, Buffer::capacity))
        .map_err(|error| DataFusionError::Internal(error.to_string()))
}
