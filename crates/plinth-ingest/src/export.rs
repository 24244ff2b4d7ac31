//! Record batches to foreign files.
//!
//! What is written here and read again with the same schema has equal values: floats are written with as few digits as
//! give the same float again, decimals in full, dates and times in ISO 8601 (in UTC where there is a zone), binaries in
//! hexadecimal. CSV leaves null empty and puts quotes around an empty text; NDJSON writes every key and has NaN and the
//! infinities as strings, for want of anything better.

mod output;
mod parquet;
mod plain;
mod sink;
mod text;

use std::io::Write;
use std::path::Path;

use arrow_schema::SchemaRef;
use plinth_io::AtomicFile;

use crate::error::{IngestError, Result};
use crate::format::{Compression, FileFormat, known, of_name};
use output::{Compressed, Output};
use parquet::ParquetSink;
use text::{Style, TextSink};

pub use sink::BatchSink;

/// How to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinkOptions {
    /// The format, whatever the extension.
    pub format: Option<FileFormat>,
    /// What separates the fields of CSV; a comma for CSV and a tab for TSV if nothing is said.
    pub delimiter: Option<u8>,
    /// Whether a file may replace one that exists.
    pub replace: bool,
}

/// Writes a file that appears when it is complete; its extensions say the format and the compression.
///
/// # Errors
/// If the name says no format, the format can't hold a column, or the file can't be created.
pub fn to_file(path: impl AsRef<Path>, schema: &SchemaRef, options: &SinkOptions) -> Result<Box<dyn BatchSink>> {
    let path = path.as_ref();
    let (format, compression) = of_name(path);
    let format = options.format.or(format).ok_or_else(|| IngestError::Option {
        what: format!("{}: its extension says no format; known: {}", path.display(), known()),
    })?;
    check(schema, format, compression)?;
    let output = Output::file(AtomicFile::create(path, options.replace)?);
    sink(output, schema, format, compression, options)
}

/// Writes to anything, such as standard output.
///
/// # Errors
/// If the format can't hold a column, or the output refuses.
pub fn to_writer(
    writer: impl Write + Send + 'static,
    schema: &SchemaRef,
    format: FileFormat,
    compression: Option<Compression>,
    options: &SinkOptions,
) -> Result<Box<dyn BatchSink>> {
    check(schema, format, compression)?;
    sink(Output::writer(Box::new(writer)), schema, format, compression, options)
}

fn check(schema: &SchemaRef, format: FileFormat, compression: Option<Compression>) -> Result<()> {
    if let (FileFormat::Parquet, Some(compression)) = (format, compression) {
        let what = format!("Parquet compresses its pages itself: leave .{} out", compression.extension());
        return Err(IngestError::Option { what });
    }
    if matches!(format, FileFormat::Csv | FileFormat::Tsv)
        && let Some(nested) = schema.fields().iter().find(|f| f.data_type().is_nested())
    {
        let what = format!("{format} can't hold nested values; export to NDJSON or Parquet, or leave it out");
        return Err(IngestError::Unwritable { column: nested.name().clone(), what });
    }
    Ok(())
}

fn sink(
    output: Output,
    schema: &SchemaRef,
    format: FileFormat,
    compression: Option<Compression>,
    options: &SinkOptions,
) -> Result<Box<dyn BatchSink>> {
    let style = match format {
        FileFormat::Parquet => return Ok(Box::new(ParquetSink::new(output, schema)?)),
        FileFormat::Csv => Style::Csv { delimiter: options.delimiter.unwrap_or(b',') },
        FileFormat::Tsv => Style::Csv { delimiter: options.delimiter.unwrap_or(b'\t') },
        FileFormat::Ndjson => Style::Ndjson,
    };
    Ok(Box::new(TextSink::new(Compressed::new(output, compression)?, schema, style)?))
}
