//! Batches in the types that are written.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{ArrowError, SchemaRef};

use crate::error::{IngestError, Result};

/// A batch in the types of a schema, dictionaries resolved.
pub(super) fn plain(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let wrong = |e: &ArrowError| unwritable("", e);
    if batch.num_columns() != schema.fields().len() {
        let what = format!("{} columns where {} are expected", batch.num_columns(), schema.fields().len());
        return Err(wrong(&ArrowError::SchemaError(what)));
    }
    let columns = batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
        if array.data_type() == field.data_type() {
            return Ok(Arc::clone(array));
        }
        cast(array, field.data_type()).map_err(|e| unwritable(field.name(), &e))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(|e| wrong(&e))
}

/// A value or a type that can't be written.
pub(super) fn unwritable(column: &str, e: &ArrowError) -> IngestError {
    let what = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    IngestError::Unwritable { column: column.to_owned(), what }
}
