//! CSV and NDJSON as one stream of batches.
//!
//! One thread at a time reads, decompresses and cuts the files into pieces of whole records ([`split`]); the pieces are
//! decoded side by side ([`node`]) and handed over in order.

mod csv;
mod decode;
mod infer;
mod json;
mod node;
mod scalar;
mod split;
pub(crate) mod stream;
mod time;

pub(crate) use decode::strict_text;

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Fields, Schema, SchemaRef};

use crate::ahead::Ahead;
use crate::error::{BadRecord, IngestError, Result};
use crate::format::FileFormat;
use crate::open::{CsvOptions, Rejects, Sample, SourceOptions};
use crate::rejects::RejectsFile;
use crate::schema::value_type;
use crate::source::{BatchSource, Position, Totals};
use csv::Dialect;
use decode::{Decoded, Decoder, Layout, Sampler};
use infer::{MEMORY, Objects};
use node::{Rows, Rules};
use split::{Cutting, Splitter};
use stream::Input;

/// Bytes of text in a piece, about.
const PIECE: usize = 2 << 20;

/// The same while a sample is taken.
const SAMPLE_PIECE: usize = 128 << 10;

/// Rows of each file a sample holds at least.
const SAMPLE_ROWS: u64 = 64;

/// Columns that a schema may be inferred to have.
const COLUMNS: usize = 10_000;

/// Text files, read one after the other.
pub(crate) struct TextSource {
    schema: SchemaRef,
    totals: Totals,
    position: Position,
    layout: Arc<Layout>,
    ahead: Ahead<Decoded, IngestError>,
    rejects: Option<RejectsFile>,
    pieces: bool,
}

impl TextSource {
    /// Infers the schema unless one is given, and starts to decode.
    pub(crate) fn open(inputs: Vec<Input>, format: FileFormat, options: &SourceOptions) -> Result<Self> {
        let inputs: Vec<Arc<Input>> = inputs.into_iter().map(Arc::new).collect();
        let cutting = cutting(format, options)?;
        let given = options.schema.is_some();
        let schema = match &options.schema {
            Some(schema) => given_schema(schema),
            None => Arc::new(Schema::new(infer(&inputs, cutting, options)?)),
        };
        let rules = Rules { given, ignore_extra: options.ignore_extra && given };
        let layout = Arc::new(Layout::new(Arc::clone(&schema), rules, cutting, options));
        let streamed = inputs.iter().any(|input| input.is_stream());
        if given && cutting.header.is_some() && !streamed {
            // Better now than after an hour.
            for input in &inputs {
                let first = Splitter::new(vec![Arc::clone(input)], Cutting { target: 4096, ..cutting }).next();
                if let Some(names) = first.transpose()?.and_then(|piece| piece.names) {
                    layout.columns(&input.path, &names)?;
                }
            }
            layout.check_all_seen()?;
        }
        let rows = || Rows::new(&schema, rules).map_err(|column| unreadable(&schema, &column, format));
        let workers = (0..options.threads.clamp(1, 64))
            .map(|_| Ok(Decoder::new(Arc::clone(&layout), rows()?)))
            .collect::<Result<Vec<_>>>()?;
        if let Some(nested) = schema.fields().iter().find(|f| format != FileFormat::Ndjson && f.data_type().is_nested())
        {
            return Err(unreadable(&schema, nested.name(), format));
        }
        let totals =
            Totals { rows: None, bytes: inputs.iter().map(|input| input.bytes()).sum(), files: inputs.len() as u64 };
        let rejects = match &options.rejects {
            Rejects::Error => None,
            Rejects::Collect { to, max } => Some(RejectsFile::create(to, *max)?),
        };
        let mut ahead = Ahead::start(Splitter::new(inputs, cutting), options.ahead_bytes, workers)
            .map_err(|e| IngestError::os(Path::new("reader"), "start a thread", e))?;
        if streamed {
            ahead.detach();
        }
        Ok(Self { schema, totals, position: Position::default(), layout, ahead, rejects, pieces: false })
    }
}

impl BatchSource for TextSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(decoded) = self.ahead.next()? {
            self.pieces = true;
            self.position.bytes += decoded.stored;
            if let Some(rejects) = &mut self.rejects {
                decoded.bad.into_iter().try_for_each(|bad| rejects.add(bad))?;
            }
            if let Some(batch) = decoded.batch.filter(|batch| batch.num_rows() > 0) {
                self.position.rows += batch.num_rows() as u64;
                return Ok(Some(batch));
            }
        }
        if let Some(rejects) = &mut self.rejects {
            rejects.flush()?;
        }
        self.position.bytes = self.totals.bytes.unwrap_or(self.position.bytes);
        if self.pieces {
            self.layout.check_all_seen()?;
        }
        Ok(None)
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn position(&self) -> Position {
        self.position
    }

    fn rejects(&self) -> u64 {
        self.rejects.as_ref().map_or(0, RejectsFile::count)
    }
}

/// The types that a schema's values are handed on as.
pub(crate) fn given_schema(schema: &Schema) -> SchemaRef {
    let field = |f: &arrow_schema::FieldRef| {
        arrow_schema::Field::new(f.name(), value_type(f.data_type(), false), f.is_nullable())
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn unreadable(schema: &Schema, column: &str, format: FileFormat) -> IngestError {
    let data_type = schema.field_with_name(column).map(|f| f.data_type().to_string()).unwrap_or_default();
    IngestError::Unwritable {
        column: column.to_owned(),
        what: format!("{format} can't hold values of type {data_type}"),
    }
}

fn cutting(format: FileFormat, options: &SourceOptions) -> Result<Cutting> {
    let record = options.record_bytes.max(1);
    let target = options.piece_bytes.unwrap_or(PIECE).max(1);
    if format == FileFormat::Ndjson {
        return Ok(Cutting { target, record, dialect: Dialect { delimiter: b',', quote: None }, header: None });
    }
    let CsvOptions { delimiter, quote, header, .. } = &options.csv;
    let delimiter = delimiter.unwrap_or(if format == FileFormat::Tsv { b'\t' } else { b',' });
    let unfit = |byte: u8| !byte.is_ascii() || matches!(byte, b'\n' | b'\r' | 0);
    if unfit(delimiter) || quote.is_some_and(|quote| unfit(quote) || quote == delimiter) {
        let what = "delimiter and quote have to be two different ASCII characters, not line ends".to_owned();
        return Err(IngestError::Option { what });
    }
    Ok(Cutting { target, record, dialect: Dialect { delimiter, quote: *quote }, header: Some(*header) })
}

/// The columns of some files: from a few rows of each, or from everything.
fn infer(inputs: &[Arc<Input>], cutting: Cutting, options: &SourceOptions) -> Result<Fields> {
    let mut all = Objects::new(COLUMNS);
    let sampler = || Sampler::new(cutting, options.csv.nulls.clone());
    match options.sample {
        Sample::Rows(rows) => {
            let per_file = (rows / inputs.len().max(1) as u64).max(SAMPLE_ROWS);
            let cutting = Cutting { target: cutting.target.min(SAMPLE_PIECE), ..cutting };
            for input in inputs {
                let mut left = per_file;
                for piece in Splitter::new(vec![Arc::clone(input)], cutting) {
                    let piece = piece?;
                    left = left.saturating_sub(sampler().look(&piece, left, &mut all));
                    if left == 0 {
                        break;
                    }
                }
                check_width(&input.path, &all)?;
            }
        }
        Sample::Everything => {
            let workers = (0..options.threads.clamp(1, 64)).map(|_| sampler()).collect();
            let mut ahead = Ahead::start(Splitter::new(inputs.to_vec(), cutting), options.ahead_bytes, workers)
                .map_err(|e| IngestError::os(Path::new("reader"), "start a thread", e))?;
            while let Some(objects) = ahead.next()? {
                all.unite(objects);
                check_width(inputs.first().map_or(Path::new(""), |input| &input.path), &all)?;
            }
        }
    }
    let fields = all.fields();
    match inputs.first() {
        Some(first) if fields.is_empty() => Err(IngestError::damaged(&first.path, "no columns found; give a schema")),
        _ => Ok(fields),
    }
}

fn check_width(path: &Path, all: &Objects) -> Result<()> {
    if all.is_wide() {
        let memory = MEMORY >> 20;
        let what = format!("more than {COLUMNS} columns, or more keys than {memory} MiB hold; give a schema");
        return Err(IngestError::damaged(path, what));
    }
    Ok(())
}

/// What a bad record is to the caller: a surprise where only a sample was looked at.
fn bad_record(bad: BadRecord, surprise: bool) -> IngestError {
    if surprise { IngestError::Surprise(Box::new(bad)) } else { IngestError::Record(Box::new(bad)) }
}
