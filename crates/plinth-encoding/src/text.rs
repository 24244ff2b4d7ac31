//! Text and binaries in buffers of their own: views keep the buffers whole that they were picked from.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;

use crate::error::{EncodingError, Result};

/// Buffers so many times as large as the values in them are wasteful.
const WASTE: usize = 2;

/// The buffers of an array of views, and the bytes of its values that lie in buffers.
fn buffers(array: &ArrayRef) -> Option<(&[Buffer], usize)> {
    if let Some(text) = array.as_string_view_opt() {
        return Some((text.data_buffers(), text.total_buffer_bytes_used()));
    }
    let binary = array.as_binary_view_opt()?;
    Some((binary.data_buffers(), binary.total_buffer_bytes_used()))
}

/// The same values; those of views in one buffer that holds nothing else.
pub fn compact(array: &ArrayRef) -> ArrayRef {
    if let Some(text) = array.as_string_view_opt() {
        return Arc::new(text.gc());
    }
    match array.as_binary_view_opt() {
        Some(binary) => Arc::new(binary.gc()),
        None => Arc::clone(array),
    }
}

/// As [`compact`], of views whose buffers have more than `most` bytes and more than twice what the values need. `held` says
/// how many bytes a buffer counts: its length, or all that was allocated for it.
pub fn compact_wasteful(array: &ArrayRef, most: usize, held: impl Fn(&Buffer) -> usize) -> ArrayRef {
    let wasteful = buffers(array).is_some_and(|(buffers, used)| {
        let held: usize = buffers.iter().map(held).sum();
        held > most && held > WASTE * used
    });
    if wasteful { compact(array) } else { Arc::clone(array) }
}

/// A batch with each column as `compact` gives it: [`compact`], or the same under a condition.
///
/// # Errors
/// If that gives another type or another number of rows.
pub fn compact_batch(batch: &RecordBatch, compact: impl Fn(&ArrayRef) -> ArrayRef) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = batch.columns().iter().map(compact).collect();
    if columns.iter().zip(batch.columns()).all(|(after, before)| Arc::ptr_eq(after, before)) {
        return Ok(batch.clone());
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
        .map_err(|error| EncodingError::invalid(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
