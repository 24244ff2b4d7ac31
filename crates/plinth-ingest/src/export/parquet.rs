//! Batches to Parquet.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::output::{Output, write_error};
use super::plain::plain;
use super::sink::BatchSink;
use crate::error::{IngestError, Result};

/// Bytes of a row group under way at which it is written.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// Writes one Parquet file: zstd, dictionaries, and the Arrow types beside the Parquet ones.
pub(super) struct ParquetSink {
    schema: SchemaRef,
    writer: ArrowWriter<Output>,
}

impl ParquetSink {
    pub(super) fn new(output: Output, schema: &SchemaRef) -> Result<Self> {
        let level = ZstdLevel::try_new(3).map_err(|e| failed(&e))?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties)).map_err(|e| failed(&e))?;
        Ok(Self { schema: schema.clone(), writer })
    }
}

impl BatchSink for ParquetSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(&plain(batch, &self.schema)?).map_err(|e| failed(&e))?;
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
