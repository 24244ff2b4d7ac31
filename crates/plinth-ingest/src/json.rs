//! JSON as one stream of batches: lines, values one after the other, arrays, and arrays within a document.
//!
//! One thread at a time reads, decompresses and cuts the files into pieces of whole records ([`cut`], over the bitmaps of
//! [`bits`]); pieces are walked through side by side, token by token, straight into columns ([`walk`], [`node`]), where records
//! of doubles are spelled alike many at a time ([`alike`]), and their batches handed over in order. What is around an array of rows is checked as it goes by ([`outer`]). Memory grows with
//! pieces and records, never with documents.

mod alike;
pub(crate) mod bits;
mod cut;
mod decode;
mod infer;
mod members;
mod node;
mod number;
mod outer;
mod path;
mod record;
mod rows;
mod string;
mod walk;

pub(crate) use node::width;
pub(crate) use record::{Fault, UnknownKeys};

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::ahead::Ahead;
use crate::error::{IngestError, Result};
use crate::open::{Sample, SourceOptions, Unknown};
use crate::text::feed::Feed;
use crate::text::out::{Decoded, Plan};
use crate::text::stream::Input;
use crate::text::{SAMPLE_PIECE, SAMPLE_ROWS, given_schema, start_error};
use bits::Level;
use cut::{Cutter, Cutting};
use decode::{Decoder, Sampler};
use infer::Samples;
use path::Root;
use record::Rules;
use rows::{Rows, extra_field};

/// Bytes of text in a piece, about.
const PIECE: usize = 1 << 20;

/// The column of rows that are no objects.
const VALUE: &str = "value";

/// The column for keys that the others lack.
const EXTRA: &str = "_extra";

const TOO_DEEP: &str = "nested too deep";

/// What is wrong with a text, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// Infers the schema unless one is given, and starts to decode.
pub(crate) fn start(
    inputs: &[Arc<Input>],
    options: &SourceOptions,
) -> Result<(Arc<Plan>, Ahead<Decoded, IngestError>)> {
    let cutting = cutting(options)?;
    let unknown = if options.ignore_extra && options.schema.is_some() { Unknown::Report } else { options.json.unknown };
    let schema = match &options.schema {
        Some(schema) => given_schema(schema),
        None => infer(inputs, &cutting, options)?,
    };
    let schema = if unknown == Unknown::Extra { with_extra(&schema)? } else { schema };
    let plan = Arc::new(Plan::new(Arc::clone(&schema), options));
    let rules = Rules { given: plan.given, unknown };
    let rows = || {
        Rows::new(&schema, rules, plan.record).map_err(|column| {
            let data_type = schema.field_with_name(&column).map(|f| f.data_type().to_string()).unwrap_or_default();
            IngestError::Unwritable { column, what: format!("JSON can't hold values of type {data_type}") }
        })
    };
    let workers = (0..options.threads.clamp(1, 64))
        .map(|_| Ok(Decoder::new(Arc::clone(&plan), rows()?, cutting.level, cutting.depth)))
        .collect::<Result<Vec<_>>>()?;
    let ahead = Ahead::start(feed(inputs, cutting), options.ahead_bytes, workers).map_err(start_error)?;
    Ok((plan, ahead))
}

fn cutting(options: &SourceOptions) -> Result<Cutting> {
    let root = options.json.root.as_deref().map(|text| {
        Root::parse(text).map_err(|why| IngestError::Option {
            what: format!("{text:?} is no path to rows: {why}; write it as a.b, $.a.b[*] or /a/b"),
        })
    });
    Ok(Cutting {
        target: options.piece_bytes.unwrap_or(PIECE).max(1),
        record: options.record_bytes.max(1),
        root: root.transpose()?,
        depth: options.json.depth.max(1),
        level: options.level.unwrap_or_else(Level::best),
    })
}

fn feed(inputs: &[Arc<Input>], cutting: Cutting) -> impl Iterator<Item = Result<cut::Piece>> + Send + 'static {
    Feed::new(inputs.to_vec(), move |input| Cutter::open(input, cutting.clone()))
}

/// A schema with a column for keys that it lacks.
fn with_extra(schema: &SchemaRef) -> Result<SchemaRef> {
    match schema.field_with_name(EXTRA) {
        Ok(field) if field == &extra_field() => Ok(Arc::clone(schema)),
        Ok(_) => {
            let what = format!("column {EXTRA:?} is for unknown keys, as text that may be null");
            Err(IngestError::Option { what })
        }
        Err(_) => {
            let fields = schema.fields().iter().cloned().chain([Arc::new(extra_field())]);
            Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
        }
    }
}

/// The columns of some files: from a few rows of each, or from everything.
fn infer(inputs: &[Arc<Input>], cutting: &Cutting, options: &SourceOptions) -> Result<SchemaRef> {
    let mut all = Samples::default();
    let sampler = || Sampler::new(cutting.record, cutting.level, cutting.depth);
    match options.sample {
        Sample::Rows(rows) => {
            let per_file = (rows / inputs.len().max(1) as u64).max(SAMPLE_ROWS);
            let cutting = Cutting { target: cutting.target.min(SAMPLE_PIECE), ..cutting.clone() };
            for input in inputs {
                let mut left = per_file;
                for piece in feed(std::slice::from_ref(input), cutting.clone()) {
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
            let feed = feed(inputs, cutting.clone());
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
