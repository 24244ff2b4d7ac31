//! What an import needs to know of a Parquet file before reading it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetStatisticsPolicy;
use parquet::file::reader::Length;

use super::file::{Handle, ParquetFile};
use super::stored::{as_stored, meaning};
use super::told::check_types;
use crate::error::{IngestError, Result};
use crate::values::types::value_type;

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
        let (handle, metadata, meaning) = load(&file)?;
        let (path, bytes) = (&file.path, handle.len());
        let schema = Arc::new(value_schema(&meaning, binary_as_text));
        let mut row_groups = Vec::with_capacity(metadata.metadata().num_row_groups());
        for group in metadata.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows())
                .map_err(|_| IngestError::damaged(path, "damaged Parquet footer: a negative number of rows"))?;
            row_groups.push(RowGroup { rows, bytes: u64::try_from(group.compressed_size()).unwrap_or(0).min(bytes) });
        }
        Ok(Self { file, bytes, schema, row_groups })
    }
}

/// The columns of a file as they are handed on: text and binaries as views (or binaries as text), columns that are encoded by
/// dictionaries or runs as their values.
pub fn value_schema(file: &Schema, binary_as_text: bool) -> Schema {
    let fields = file
        .fields()
        .iter()
        .map(|field| Field::new(field.name(), value_type(field.data_type(), binary_as_text), field.is_nullable()));
    Schema::new(fields.collect::<Vec<_>>())
}

/// Opens a file and reads its footer; statistics and page indexes are left out. By the metadata columns are read as they are
/// stored; the schema says what they mean.
pub(super) fn load(file: &ParquetFile) -> Result<(Handle, ArrowReaderMetadata, Schema)> {
    let path = &file.path;
    let handle = file.open()?;
    // The parser of footers is a dependency's: a panic in it is an error of the file.
    let loaded = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let untold = ArrowReaderMetadata::load(&handle, reader_options().with_skip_arrow_metadata(true))?;
        check_types(untold.metadata())?;
        let decoded = ArrowReaderMetadata::try_new(Arc::clone(untold.metadata()), reader_options())?;
        let meaning = meaning(decoded.metadata(), decoded.schema());
        let stored = ArrowReaderMetadata::try_new(as_stored(decoded.metadata())?, reader_options())?;
        Ok((stored, meaning))
    }));
    let (metadata, meaning) =
        loaded.map_err(|_| IngestError::damaged(path, "damaged Parquet footer"))?.map_err(|e: ParquetError| {
            match one_line(&e) {
                what if what.contains("encrypt") => IngestError::damaged(
                    path,
                    "the Parquet file is encrypted, and such files can't be read; decrypt it first",
                ),
                what => IngestError::damaged(path, format!("not a readable Parquet file: {what}")),
            }
        })?;
    Ok((handle, metadata, meaning))
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
