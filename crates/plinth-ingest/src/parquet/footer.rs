//! What an import needs to know of a Parquet file before reading it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::ParquetStatisticsPolicy;
use parquet::file::reader::Length;

use super::file::{Handle, ParquetFile};
use crate::error::{IngestError, Result};
use crate::schema::value_type;

/// A file's rows, bytes and columns.
#[derive(Debug)]
pub(super) struct Footer {
    pub(super) file: ParquetFile,
    /// Its length.
    pub(super) bytes: u64,
    /// Its columns in value types.
    pub(super) schema: SchemaRef,
    pub(super) row_groups: Vec<RowGroup>,
}

/// A row group's share of the file.
#[derive(Debug)]
pub(super) struct RowGroup {
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl Footer {
    /// Reads a file's footer.
    pub(super) fn read(file: ParquetFile, binary_as_text: bool) -> Result<Self> {
        let (handle, metadata) = load(&file)?;
        let (path, bytes) = (&file.path, handle.len());
        let fields =
            metadata.schema().fields().iter().map(|field| {
                Field::new(field.name(), value_type(field.data_type(), binary_as_text), field.is_nullable())
            });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut row_groups = Vec::with_capacity(metadata.metadata().num_row_groups());
        for group in metadata.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows())
                .map_err(|_| IngestError::damaged(path, "damaged Parquet footer: a negative number of rows"))?;
            row_groups.push(RowGroup { rows, bytes: u64::try_from(group.compressed_size()).unwrap_or(0).min(bytes) });
        }
        Ok(Self { file, bytes, schema, row_groups })
    }
}

/// Opens a file and reads its footer; statistics and page indexes are left out.
pub(super) fn load(file: &ParquetFile) -> Result<(Handle, ArrowReaderMetadata)> {
    let path = &file.path;
    let handle = file.open()?;
    let options = reader_options();
    // The parser of damaged footers is somebody else's: a panic in it is an error of the file.
    let metadata = std::panic::catch_unwind(AssertUnwindSafe(|| ArrowReaderMetadata::load(&handle, options)))
        .map_err(|_| IngestError::damaged(path, "damaged Parquet footer"))?
        .map_err(|e| IngestError::damaged(path, format!("not a readable Parquet file: {}", one_line(&e))))?;
    Ok((handle, metadata))
}

pub(super) fn reader_options() -> ArrowReaderOptions {
    ArrowReaderOptions::new()
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

/// A library's message without line breaks and without the name it starts with.
pub(super) fn one_line(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    ["Parquet error: ", "Parquet argument error: "]
        .iter()
        .fold(text.as_str(), |text, prefix| text.strip_prefix(prefix).unwrap_or(text))
        .to_owned()
}
