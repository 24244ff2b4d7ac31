//! Text as one stream of batches: CSV here, JSON in [`crate::json`].
//!
//! One thread at a time reads, decompresses and cuts the files into pieces of whole records ([`split`]); the pieces are
//! decoded side by side ([`decode`]) and handed over in order.

pub(crate) mod buffer;
mod csv;
mod decode;
pub(crate) mod feed;
pub(crate) mod infer;
mod lines;
pub(crate) mod out;
mod rows;
pub(crate) mod scalar;
mod split;
pub(crate) mod stream;
mod time;

pub(crate) use decode::strict_text;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use crate::ahead::Ahead;
use crate::error::{IngestError, Result};
use crate::format::FileFormat;
use crate::json::UnknownKeys;
use crate::open::{CsvOptions, Rejects, Sample, SourceOptions};
use crate::rejects::RejectsFile;
use crate::schema::value_type;
use crate::source::{BatchSource, Position, Totals};
use csv::Dialect;
use decode::{Decoder, Layout, Sampler};
use feed::{Feed, Pieces};
use infer::{Objects, check_width};
use out::{Decoded, Plan};
use rows::Rows;
use split::{Cutter, Cutting};
use stream::Input;

/// Bytes of text in a piece, about.
const PIECE: usize = 2 << 20;

/// The same while a sample is taken.
pub(crate) const SAMPLE_PIECE: usize = 128 << 10;

/// Rows of each file a sample holds at least.
pub(crate) const SAMPLE_ROWS: u64 = 64;

/// Columns that a schema may be inferred to have.
pub(crate) const COLUMNS: usize = 10_000;

/// Text files, read one after the other.
pub(crate) struct TextSource {
    totals: Totals,
    position: Position,
    plan: Arc<Plan>,
    ahead: Ahead<Decoded, IngestError>,
    rejects: Option<RejectsFile>,
    rejected: u64,
    unknown: UnknownKeys,
    pieces: bool,
}

impl TextSource {
    /// Infers the schema unless one is given, and starts to decode.
    pub(crate) fn open(inputs: Vec<Input>, format: FileFormat, options: &SourceOptions) -> Result<Self> {
        let inputs: Vec<Arc<Input>> = inputs.into_iter().map(Arc::new).collect();
        let rejects = match &options.rejects {
            Rejects::Error => None,
            Rejects::Collect { to, max } => Some(RejectsFile::create(to, *max)?),
        };
        let (plan, mut ahead) = match format {
            FileFormat::Ndjson => crate::json::start(&inputs, options)?,
            _ => start(&inputs, format, options)?,
        };
        if inputs.iter().any(|input| input.is_stream()) {
            ahead.detach();
        }
        let bytes = inputs.iter().map(|input| input.bytes()).sum();
        Ok(Self {
            totals: Totals { rows: None, bytes, files: inputs.len() as u64 },
            position: Position::default(),
            plan,
            ahead,
            rejects,
            rejected: 0,
            unknown: UnknownKeys::default(),
            pieces: false,
        })
    }
}

impl BatchSource for TextSource {
    fn schema(&self) -> &SchemaRef {
        &self.plan.schema
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(decoded) = self.ahead.next()? {
            self.pieces = true;
            self.position.bytes += decoded.stored;
            self.unknown.unite(decoded.unknown);
            self.rejected += decoded.bad.len() as u64;
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
            self.plan.check_all_seen()?;
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
        self.rejected
    }

    fn unknown_keys(&self) -> BTreeMap<String, u64> {
        self.unknown.counts().clone()
    }
}

/// Starts to decode CSV.
fn start(
    inputs: &[Arc<Input>],
    format: FileFormat,
    options: &SourceOptions,
) -> Result<(Arc<Plan>, Ahead<Decoded, IngestError>)> {
    let cutting = cutting(format, options)?;
    let schema = match &options.schema {
        Some(schema) => given_schema(schema),
        None => Arc::new(Schema::new(infer(inputs, cutting, options)?.fields())),
    };
    let plan = Arc::new(Plan::new(Arc::clone(&schema), options));
    let ignore_extra = options.ignore_extra && plan.given;
    let layout = Arc::new(Layout::new(Arc::clone(&plan), ignore_extra, cutting, options.csv.nulls.clone()));
    if plan.given && !inputs.iter().any(|input| input.is_stream()) {
        // Better now than after an hour.
        for input in inputs {
            let small = Cutting { target: 4096, ..cutting };
            if let Some(piece) = Cutter::open(Arc::clone(input), small)?.piece()? {
                layout.columns(&input.path, &piece.names)?;
            }
        }
        plan.check_all_seen()?;
    }
    let rows = || Rows::new(&schema, plan.given).map_err(|column| unreadable(&schema, &column, format));
    let workers = (0..options.threads.clamp(1, 64))
        .map(|_| Ok(Decoder::new(Arc::clone(&layout), rows()?)))
        .collect::<Result<Vec<_>>>()?;
    let ahead = Ahead::start(feed(inputs, cutting), options.ahead_bytes, workers).map_err(start_error)?;
    Ok((plan, ahead))
}

fn feed(inputs: &[Arc<Input>], cutting: Cutting) -> impl Iterator<Item = Result<split::Piece>> + Send + 'static {
    Feed::new(inputs.to_vec(), move |input| Cutter::open(input, cutting))
}

/// What it means that a thread could not be started.
pub(crate) fn start_error(e: std::io::Error) -> IngestError {
    IngestError::os(Path::new("reader"), "start a thread", e)
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
    let CsvOptions { delimiter, quote, header, .. } = &options.csv;
    let delimiter = delimiter.unwrap_or(if format == FileFormat::Tsv { b'\t' } else { b',' });
    let unfit = |byte: u8| !byte.is_ascii() || matches!(byte, b'\n' | b'\r' | 0);
    if unfit(delimiter) || quote.is_some_and(|quote| unfit(quote) || quote == delimiter) {
        let what = "delimiter and quote have to be two different ASCII characters, not line ends".to_owned();
        return Err(IngestError::Option { what });
    }
    Ok(Cutting { target, record, dialect: Dialect { delimiter, quote: *quote }, header: *header })
}

/// The columns of some files: from a few rows of each, or from everything.
fn infer(inputs: &[Arc<Input>], cutting: Cutting, options: &SourceOptions) -> Result<Objects> {
    let mut all = Objects::new(COLUMNS);
    let sampler = || Sampler::new(cutting, options.csv.nulls.clone());
    match options.sample {
        Sample::Rows(rows) => {
            let per_file = (rows / inputs.len().max(1) as u64).max(SAMPLE_ROWS);
            let cutting = Cutting { target: cutting.target.min(SAMPLE_PIECE), ..cutting };
            for input in inputs {
                let mut left = per_file;
                for piece in feed(std::slice::from_ref(input), cutting) {
                    left = left.saturating_sub(sampler().look(&piece?, left, &mut all));
                    if left == 0 {
                        break;
                    }
                }
                check_width(&input.path, &all)?;
            }
        }
        Sample::Everything => {
            let workers = (0..options.threads.clamp(1, 64)).map(|_| sampler()).collect();
            let mut ahead = Ahead::start(feed(inputs, cutting), options.ahead_bytes, workers).map_err(start_error)?;
            while let Some(objects) = ahead.next()? {
                all.unite(objects);
                check_width(inputs.first().map_or(Path::new(""), |input| &input.path), &all)?;
            }
        }
    }
    match inputs.first() {
        Some(first) if all.is_empty() => Err(IngestError::damaged(&first.path, "no columns found; give a schema")),
        _ => Ok(all),
    }
}
