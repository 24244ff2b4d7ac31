//! Batches of a table: their size, and where a column is.

use arrow_array::{Array, ArrayRef, RecordBatch};

use crate::error::{Result, TableError};

/// Bytes of a batch's rows, more or less.
pub(crate) fn memory(batch: &RecordBatch) -> u64 {
    let bytes = |array: &ArrayRef| array.to_data().get_slice_memory_size().unwrap_or(0) as u64;
    batch.columns().iter().map(bytes).sum()
}

/// Where a column of a table is.
pub(crate) fn column_of(schema: &arrow_schema::Schema, name: &str) -> Result<usize> {
    const NAMED: usize = 20;
    schema.index_of(name).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).take(NAMED).collect();
        TableError::invalid(format!("no column {name:?}; there are {}", names.join(", ")))
    })
}
