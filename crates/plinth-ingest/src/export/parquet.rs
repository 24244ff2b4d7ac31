//! Batches to Parquet.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::output::{Output, write_error};
use super::plain::{plain, unwritable};
use super::sink::BatchSink;
use crate::error::{IngestError, Result};
use crate::parquet::{as_written, written};

/// Bytes of a row group under way at which it is written.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// Writes one Parquet file: zstd, dictionaries, and the Arrow types beside the Parquet ones.
pub(super) struct ParquetSink {
    schema: SchemaRef,
    /// The types that the writer is given, where they are others.
    arrays: Option<SchemaRef>,
    writer: ArrowWriter<Output>,
}

impl ParquetSink {
    pub(super) fn new(output: Output, schema: &SchemaRef) -> Result<Self> {
        let level = ZstdLevel::try_new(3).map_err(|e| failed(&e))?;
        let mut properties = WriterProperties::builder().set_compression(Compression::ZSTD(level));
        let options = ArrowWriterOptions::new();
        let (options, arrays) = match written(schema).map_err(|e| failed(&e))? {
            None => (options, None),
            Some(written) => {
                let arrow = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&written.meant));
                properties = properties.set_key_value_metadata(Some(vec![arrow]));
                let options = options.with_skip_arrow_metadata(true).with_parquet_schema(written.stored);
                (options, Some(written.arrays))
            }
        };
        let options = options.with_properties(properties.build());
        let given = Arc::clone(arrays.as_ref().unwrap_or(schema));
        let writer = ArrowWriter::try_new_with_options(output, given, options).map_err(|e| failed(&e))?;
        Ok(Self { schema: schema.clone(), arrays, writer })
    }
}

/// A batch in the types that the writer is given.
fn as_given(batch: RecordBatch, arrays: Option<&SchemaRef>) -> Result<RecordBatch> {
    let Some(schema) = arrays else { return Ok(batch) };
    let columns = batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
        as_written(array, field.data_type())
            .map_err(|what| IngestError::Unwritable { column: field.name().clone(), what })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(|e| unwritable("", &e))
}

impl BatchSink for ParquetSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = as_given(plain(batch, &self.schema)?, self.arrays.as_ref())?;
        self.writer.write(&batch).map_err(|e| failed(&e))?;
        if self.writer.in_progress_size() > ROW_GROUP_BYTES {
            self.writer.flush().map_err(|e| failed(&e))?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.writer.into_inner().map_err(|e| failed(&e))?.complete()
    }
}

fn failed(e: &ParquetError) -> IngestError {
    if let ParquetError::External(inner) = e
        && let Some(io) = inner.downcast_ref::<std::io::Error>()
    {
        return write_error(io);
    }
    let what = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    IngestError::Option { what: format!("Parquet can't hold this: {what}") }
}
