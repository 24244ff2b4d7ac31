//! JSON as one stream of batches: lines, values one after the other, arrays, and arrays within a document.
//!
//! One thread at a time reads, decompresses and cuts the files into pieces of whole records ([`cut`], over the bitmaps of
//! [`bits`]); pieces are walked through side by side, token by token, straight into columns ([`walk`], [`node`]), where records
//! of doubles are spelled alike many at a time ([`alike`]), and their batches handed over in order. What is around an array of rows is checked as it goes by ([`outer`]). Memory grows with
//! pieces and records, never with documents.

mod alike;
mod cut;
mod decode;
mod infer;
mod members;
mod node;
pub(crate) mod number;
mod outer;
pub(crate) mod path;
mod record;
mod rows;
mod string;
mod walk;

pub(crate) use node::width;
pub(crate) use record::{Fault, UnknownKeys};

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::ahead::Ahead;
use crate::bits::Level;
use crate::error::{IngestError, Result};
use crate::format::FileFormat;
use crate::open::{SourceOptions, Unknown};
use crate::text::feed::Feed;
use crate::text::out::{Decoded, Plan};
use crate::text::stream::Input;
use crate::text::{self, given_schema, start_error, unreadable};
use cut::{Cutter, Cutting};
use decode::{Decoder, Sampler};
use path::Root;
use record::Rules;
use rows::{Rows, extra_field};
use walk::Tools;

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
    let feed = |inputs: &[Arc<Input>], target: usize| {
        let cutting = Cutting { target: cutting.target.min(target), ..cutting.clone() };
        Feed::new(inputs.to_vec(), move |input| Cutter::open(input, cutting.clone()))
    };
    let unknown = if options.ignore_extra && options.schema.is_some() { Unknown::Report } else { options.json.unknown };
    let schema = match &options.schema {
        Some(schema) => given_schema(schema),
        None => text::infer(inputs, options, feed, || Sampler::new(cutting.record, cutting.level, cutting.depth))?,
    };
    let schema = if unknown == Unknown::Extra { with_extra(&schema)? } else { schema };
    let plan = Arc::new(Plan::new(Arc::clone(&schema), options));
    let rules = Rules { given: plan.given, unknown };
    let rows = || {
        let rows = Rows::new(&schema, rules, plan.record);
        rows.map_err(|column| unreadable(&schema, column, FileFormat::Ndjson))
    };
    let workers = (0..options.threads.clamp(1, 64))
        .map(|_| {
            let tools = Tools::new(cutting.depth);
            let tools = if options.json.validate { tools } else { tools.unchecked(cutting.level) };
            Ok(Decoder::new(Arc::clone(&plan), rows()?, cutting.level, tools))
        })
        .collect::<Result<Vec<_>>>()?;
    let ahead = Ahead::start(feed(inputs, usize::MAX), options.ahead_bytes, workers).map_err(start_error)?;
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
