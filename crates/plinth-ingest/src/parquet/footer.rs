//! What an import needs to know of a Parquet file before reading it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::ParquetStatisticsPolicy;

use crate::error::{IngestError, Result};
use crate::schema::value_type;

/// A file's rows, bytes and columns.
#[derive(Debug)]
pub(super) struct Footer {
    pub(super) path: PathBuf,
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
    pub(super) fn read(path: &Path, binary_as_text: bool) -> Result<Self> {
        let (file, metadata) = load(path)?;
        let bytes = file.metadata().map_err(|e| IngestError::os(path, "read the length of", e))?.len();
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
        Ok(Self { path: path.to_path_buf(), bytes, schema, row_groups })
    }
}

/// Opens a file and reads its footer; statistics and page indexes are left out.
pub(super) fn load(path: &Path) -> Result<(File, ArrowReaderMetadata)> {
    let file = File::open(path).map_err(|e| IngestError::os(path, "open", e))?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        return Err(IngestError::damaged(path, "is a directory, not a Parquet file"));
    }
    let options = reader_options();
    // The parser of damaged footers is somebody else's: a panic in it is an error of the file.
    let metadata = std::panic::catch_unwind(|| ArrowReaderMetadata::load(&file, options))
        .map_err(|_| IngestError::damaged(path, "damaged Parquet footer"))?
        .map_err(|e| IngestError::damaged(path, format!("not a readable Parquet file: {}", one_line(&e))))?;
    Ok((file, metadata))
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
