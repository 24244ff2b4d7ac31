//! The rows of a table, file by file.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::SchemaRef;
use plinth_format::{FormatError, Result};

use crate::folder::TableFile;
use crate::widen::widen;

/// Gives all rows of some files, in order, as batches of the table's columns, each with the bytes of its file that it
/// stands for. Stops early when `take` answers false.
///
/// # Errors
/// If a file is damaged, or `take` fails.
pub fn read(
    files: &[TableFile],
    schema: &SchemaRef,
    mut take: impl FnMut(RecordBatch, u64) -> Result<bool>,
) -> Result<()> {
    for TableFile { file, identity, .. } in files {
        let (mut rows, mut told) = (0u128, 0u64);
        for batch in file.scan().batches()? {
            let batch = batch?;
            let columns = schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
                Some(column) => widen(column, field.data_type()),
                None => Ok(new_null_array(field.data_type(), batch.num_rows())),
            });
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let wide = RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_>>()?, &options)
                .map_err(|e| FormatError::InvalidArgument(format!("{}: {e}", file.name())))?;
            rows += batch.num_rows() as u128;
            let share = u128::from(identity.len) * rows / u128::from(file.num_rows().max(1));
            let share = u64::try_from(share).unwrap_or(identity.len);
            if !take(wide, share - told)? {
                return Ok(());
            }
            told = share;
        }
    }
    Ok(())
}
