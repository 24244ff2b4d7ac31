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
use std::num::NonZero;
use std::path::Path;

use arrow_schema::SchemaRef;
use plinth_io::AtomicFile;

use crate::error::{IngestError, Result};
use crate::format::{Compression, FileFormat, known, of_name};
use output::Output;
use parquet::ParquetSink;
use text::{Style, TextSink};

pub use sink::BatchSink;

/// How to write.
#[derive(Clone, Debug, Default)]
pub struct SinkOptions {
    /// The format, whatever the extension.
    pub format: Option<FileFormat>,
    /// The compression of a file of text, whatever the extension; [`to_writer`] is told it apart.
    pub compression: Option<Compressed>,
    /// How CSV and TSV look.
    pub csv: CsvStyle,
    /// How dates and times look, as chrono's `strftime` has it; ISO 8601 if nothing is said.
    pub times: TimeStyle,
    /// Whether a file may replace one that exists.
    pub replace: bool,
    /// Most threads that make text; as many as the machine has if nothing is said.
    pub threads: Option<NonZero<usize>>,
}

/// Whether text is compressed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressed {
    /// As it is.
    Plain,
    /// So.
    With(Compression),
}

/// How CSV looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvStyle {
    /// What separates fields; a comma for CSV and a tab for TSV if nothing is said.
    pub delimiter: Option<u8>,
    /// Whether the first line has the names of the columns.
    pub header: bool,
    /// What stands for null. A text of these letters is put in quotes.
    pub null: String,
    /// What is around fields that could be taken for something else.
    pub quote: u8,
    /// What is before a quote within such a field; another quote if nothing is said.
    pub escape: Option<u8>,
}

impl Default for CsvStyle {
    fn default() -> Self {
        Self { delimiter: None, header: true, null: String::new(), quote: b'"', escape: None }
    }
}

/// How dates and times look in text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeStyle {
    /// Dates.
    pub date: Option<String>,
    /// Times of a day.
    pub time: Option<String>,
    /// Points in time, with a zone and without.
    pub timestamp: Option<String>,
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
    let compression = match options.compression {
        Some(Compressed::With(compression)) => Some(compression),
        Some(Compressed::Plain) => None,
        None => compression,
    };
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
        FileFormat::Csv => Style::csv(&options.csv, b',')?,
        FileFormat::Tsv => Style::csv(&options.csv, b'\t')?,
        FileFormat::Ndjson => Style::Ndjson,
    };
    let output = output::Compressed::new(output, compression)?;
    Ok(Box::new(TextSink::new(output, schema, style, options)?))
}
