//! Text as one stream of batches: CSV here, JSON in [`crate::json`].
//!
//! One thread at a time reads, decompresses and cuts the files into pieces of whole records ([`split`]); the pieces are
//! decoded side by side ([`decode`]) and handed over in order.

pub(crate) mod buffer;
pub(crate) mod csv;
mod decode;
pub(crate) mod feed;
pub(crate) mod infer;
mod lines;
mod numbers;
pub(crate) mod out;
mod records;
pub(crate) mod rows;
pub(crate) mod scalar;
mod sniff;
mod split;
pub(crate) mod stream;
mod time;

pub(crate) use decode::strict_text;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Fields, Schema, SchemaRef};

use crate::ahead::{Ahead, Worker};
use crate::bits::Level;
use crate::error::{IngestError, Result};
use crate::format::FileFormat;
use crate::json::UnknownKeys;
use crate::open::{CsvOptions, Rejects, Sample, SourceOptions};
use crate::rejects::RejectsFile;
use crate::schema::value_type;
use crate::source::{BatchSource, Position, Totals};
use decode::{Decoder, Layout, Sampler};
use feed::{Feed, Pieces};
use numbers::Numbers;
use out::{Decoded, Plan};
use rows::Rows;
use sniff::Sniffing;
use split::{Cutter, Cutting};
use stream::Input;

/// Bytes of text in a piece, about.
const PIECE: usize = 2 << 20;

/// The same while a sample is taken.
const SAMPLE_PIECE: usize = 128 << 10;

/// Rows of each file a sample holds at least.
const SAMPLE_ROWS: u64 = 64;

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
    pub(crate) fn open(inputs: Vec<Arc<Input>>, format: FileFormat, options: &SourceOptions) -> Result<Self> {
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
    let CsvOptions { nulls, thousands, decimal, .. } = &options.csv;
    let numbers = Numbers { thousands: *thousands, decimal: *decimal };
    let feed = |inputs: &[Arc<Input>], target: usize| {
        let cutting = cutting.smaller(target);
        Feed::new(inputs.to_vec(), move |input| Cutter::open(input, cutting.clone()))
    };
    let schema = match &options.schema {
        Some(schema) => given_schema(schema),
        None => infer(inputs, options, feed, || Sampler::new(cutting.clone(), nulls.clone(), numbers))?,
    };
    let plan = Arc::new(Plan::new(Arc::clone(&schema), options));
    let ignore_extra = options.ignore_extra && plan.given;
    let plain = nulls.iter().all(String::is_empty);
    let layout = Arc::new(Layout::new(Arc::clone(&plan), ignore_extra, plain, cutting.clone()));
    if plan.given && !inputs.iter().any(|input| input.is_stream()) {
        // Better now than after an hour.
        for input in inputs {
            if let Some(piece) = Cutter::open(Arc::clone(input), cutting.smaller(4096))?.piece()? {
                layout.columns(&input.path, &piece.head.names)?;
            }
        }
        plan.check_all_seen()?;
    }
    let rows = || {
        let rows = Rows::new(&schema, plan.given, nulls.clone(), numbers);
        rows.map_err(|column| unreadable(&schema, column, format))
    };
    let workers = (0..options.threads.clamp(1, 64))
        .map(|_| Ok(Decoder::new(Arc::clone(&layout), rows()?)))
        .collect::<Result<Vec<_>>>()?;
    let ahead = Ahead::start(feed(inputs, usize::MAX), options.ahead_bytes, workers).map_err(start_error)?;
    Ok((plan, ahead))
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

/// What it means that a column's type can't be read from text.
pub(crate) fn unreadable(schema: &Schema, column: String, format: FileFormat) -> IngestError {
    let data_type = schema.field_with_name(&column).map(|f| f.data_type().to_string()).unwrap_or_default();
    IngestError::Unwritable { column, what: format!("{format} can't hold values of type {data_type}") }
}

fn cutting(format: FileFormat, options: &SourceOptions) -> Result<Cutting> {
    let usual = if format == FileFormat::Tsv { b'\t' } else { b',' };
    let names = |schema: &SchemaRef| schema.fields().iter().map(|field| field.name().clone()).collect();
    let sniffing = Sniffing::new(&options.csv, usual, options.schema.as_ref().map(names));
    let sniffing = sniffing.map_err(|what| IngestError::Option { what: what.to_owned() })?;
    let level = options.level.unwrap_or_else(Level::best);
    Ok(Cutting::new(options.piece_bytes.unwrap_or(PIECE), options.record_bytes, sniffing, level))
}

/// What a schema is inferred from.
pub(crate) trait Samples: Default + Send + 'static {
    /// Takes another's values too.
    fn unite(&mut self, other: Self);
    /// Whether there are more columns than there may be.
    fn check(&self, path: &Path) -> Result<()>;
    /// The columns.
    fn fields(self) -> Result<Fields>;
}

/// Somebody who looks at pieces.
pub(crate) trait Look<P, S>: Worker<P, S, IngestError> {
    /// Takes at most `limit` records of a piece and says how many it took.
    fn look(&mut self, piece: &P, limit: u64, to: &mut S) -> u64;
}

/// The columns of some files: from a few rows of each, or from everything.
pub(crate) fn infer<P: Send + 'static, S: Samples, L: Look<P, S>, F: Iterator<Item = Result<P>> + Send + 'static>(
    inputs: &[Arc<Input>],
    options: &SourceOptions,
    feed: impl Fn(&[Arc<Input>], usize) -> F,
    sampler: impl Fn() -> L,
) -> Result<SchemaRef> {
    let mut all = S::default();
    match options.sample {
        Sample::Rows(rows) => {
            let per_file = (rows / inputs.len().max(1) as u64).max(SAMPLE_ROWS);
            for input in inputs {
                let mut left = per_file;
                for piece in feed(std::slice::from_ref(input), SAMPLE_PIECE) {
                    left = left.saturating_sub(sampler().look(&piece?, left, &mut all));
                    if left == 0 {
                        break;
                    }
                }
                all.check(&input.path)?;
            }
        }
        Sample::Everything => {
            let workers = (0..options.threads.clamp(1, 64)).map(|_| sampler()).collect();
            let feed = feed(inputs, usize::MAX);
            let mut ahead = Ahead::start(feed, options.ahead_bytes, workers).map_err(start_error)?;
            while let Some(samples) = ahead.next()? {
                all.unite(samples);
                all.check(inputs.first().map_or(Path::new(""), |input| &input.path))?;
            }
        }
    }
    let fields = all.fields()?;
    match inputs.first() {
        Some(first) if fields.is_empty() => Err(IngestError::damaged(&first.path, "no columns found; give a schema")),
        _ => Ok(Arc::new(Schema::new(fields))),
    }
}
